//! The parts of the comparison: which workloads, which peers, what is wanted.

use serde_json::{Value, json};

use super::contest::{self, Row};
use super::peer::Peer;
use super::roofline::Roof;
use super::tables::{Wanted, table};
use super::{Findings, Stage, memory, scaling};

/// The workloads of the comparison in f32.
const WORKLOADS: [&str; 11] = [
    "matmul_2048",
    "linear_gelu_512x1024x1024",
    "conv_bn_relu_4x128x28",
    "attention_4x8x256x64",
    "elementwise_chain_4M",
    "layernorm_softmax_4096x1024",
    "minilm_b8_s128",
    "bert_base_b1_s128",
    "resnet50_b1",
    "vit_b16_b1",
    "llama_8x512_b1_s128",
];
/// Those that are compared in bf16 too.
const IN_BF16: [&str; 5] =
    ["bert_base_b1_s128", "minilm_b8_s128", "resnet50_b1", "vit_b16_b1", "llama_8x512_b1_s128"];
/// Loss and gradients.
const TRAINING: [&str; 4] =
    ["bert_base_step_b8_s128", "resnet18_step_b16", "llama_60m_step_b4_s128", "lstm_step_b16_s64"];
/// Products: a large one, and the four shapes of a layer of BERT (rows, columns, inner).
const PRODUCTS: [&str; 5] = [
    "matmul_2048",
    "linear_128x2304x768",
    "linear_128x768x768",
    "linear_128x3072x768",
    "linear_128x768x3072",
];
const PRODUCT_IN_BF16: [&str; 1] = ["matmul_2048_bf16"];
const STARTED: &str = "bert_base_b1_s128";

/// How far an output in f32 may be from PyTorch's, as a part of its scale.
const APART: f64 = 1e-5;
/// The same for gradients, from those in f64.
const GRADIENTS_APART: f64 = 1e-3;
/// The same in bf16, where no peer is further off: a few units in the last place of the largest value.
const APART_IN_BF16: f64 = 1e-2;

/// A part of the comparison.
pub(super) struct Part {
    /// How it is asked for.
    pub(super) name: &'static str,
    /// Measures it.
    pub(super) measure: fn(&Stage) -> anyhow::Result<Findings>,
}

/// The parts, in order.
pub(super) const PARTS: [Part; 6] = [
    Part { name: "workloads", measure: workloads },
    Part { name: "gemm", measure: products },
    Part { name: "bf16", measure: in_bf16 },
    Part { name: "training", measure: training },
    Part { name: "memory", measure: needs },
    Part { name: "scaling", measure: scaled },
];

/// Workloads that some peers and ours run.
struct Group<'a> {
    workloads: &'a [&'a str],
    engines: &'a [&'a str],
    precision: &'a str,
}

impl Group<'_> {
    fn hold(&self, stage: &Stage) -> anyhow::Result<Vec<Row>> {
        let names = stage.chosen(self.workloads);
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let asked =
            |engine: &&&str| stage.engines.is_empty() || stage.engines.iter().any(|asked| asked == *engine);
        let engines: Vec<&str> = self.engines.iter().filter(asked).copied().collect();
        let onnx = engines.iter().any(|engine| engine.starts_with("ort") || engine.starts_with("openvino"));
        stage.export(&names, onnx)?;
        let start = |engine: &&str| Peer::start(&stage.python, engine, &stage.work, stage.threads);
        let mut peers = engines.iter().map(start).collect::<anyhow::Result<Vec<_>>>()?;
        names
            .iter()
            .map(|name| {
                let ours = stage.ours(name, self.precision, stage.threads);
                let row = contest::hold(name, &mut peers, &ours, stage.rounds, stage.seconds)?;
                let times = |ms: Option<f64>| ms.map_or("-".to_owned(), |ms| format!("{ms:.2} ms"));
                let best = times(row.best().map(|best| best.1));
                eprintln!("{name}: best peer {best}, ours {}", times(row.our_median()));
                Ok(row)
            })
            .collect()
    }
}

fn rows_json(rows: &[Row]) -> Value {
    rows.iter().map(Row::json).collect()
}

/// The eleven workloads in f32 by everybody.
fn workloads(stage: &Stage) -> anyhow::Result<Findings> {
    let engines = ["eager", "compile", "ort", "openvino", "xla"];
    let rows = Group { workloads: &WORKLOADS, engines: &engines, precision: "model" }.hold(stage)?;
    let roof = Roof::measure(&stage.warpt, "f32", &stage.work, &stage.chosen(&WORKLOADS))?;
    let text = table(&rows, Some(&roof), Wanted { each: Some(0.9), mean: Some(1.1) });
    Ok(Findings {
        text: format!("{text}\n{}\n", roof.text()),
        json: rows_json(&rows),
        picture: None,
        wrong: rows.iter().filter_map(|row| row.wrong(APART)).collect(),
    })
}

/// Matrix products beside MKL in PyTorch, and the large one in bf16.
fn products(stage: &Stage) -> anyhow::Result<Findings> {
    let mut rows = Group { workloads: &PRODUCTS, engines: &["eager"], precision: "model" }.hold(stage)?;
    let mut wrong: Vec<String> = rows.iter().filter_map(|row| row.wrong(APART)).collect();
    let mut text = table(&rows, None, Wanted { each: Some(0.95), mean: None });
    let bf16 = Group { workloads: &PRODUCT_IN_BF16, engines: &["eager"], precision: "model" }.hold(stage)?;
    if !bf16.is_empty() {
        text += &format!("\n{}", table(&bf16, None, Wanted { each: Some(1.1), mean: None }));
        wrong.extend(bf16.iter().filter_map(|row| row.wrong(APART_IN_BF16)));
        rows.extend(bf16);
    }
    Ok(Findings { text, json: rows_json(&rows), picture: None, wrong })
}

/// The models in bf16.
fn in_bf16(stage: &Stage) -> anyhow::Result<Findings> {
    let engines = ["eager-bf16", "compile-bf16", "autocast-bf16", "openvino-bf16"];
    let rows = Group { workloads: &IN_BF16, engines: &engines, precision: "bf16" }.hold(stage)?;
    // Rounding to bf16 costs every engine digits; ours must not lose more of them than others do.
    let bound = |row: &Row| APART_IN_BF16.max(2.0 * row.peers_distance());
    Ok(Findings {
        text: table(&rows, None, Wanted { each: None, mean: Some(0.9) }),
        json: rows_json(&rows),
        picture: None,
        wrong: rows.iter().filter_map(|row| row.wrong(bound(row))).collect(),
    })
}

/// Training steps.
fn training(stage: &Stage) -> anyhow::Result<Findings> {
    // A sum near zero on the other side of a ReLU changes gradients in every engine.
    let bound = |row: &Row| GRADIENTS_APART.max(2.0 * row.peers_distance());
    let rows =
        Group { workloads: &TRAINING, engines: &["eager", "compile"], precision: "model" }.hold(stage)?;
    Ok(Findings {
        text: table(&rows, None, Wanted { each: Some(0.95), mean: Some(1.1) }),
        json: rows_json(&rows),
        picture: None,
        wrong: rows.iter().filter_map(|row| row.wrong(bound(row))).collect(),
    })
}

/// Peaks of memory, and the time to import and compile.
fn needs(stage: &Stage) -> anyhow::Result<Findings> {
    let names = stage.chosen(&WORKLOADS);
    stage.export(&names, false)?;
    let ours = |name| stage.ours(name, "model", stage.threads);
    let peaks = names
        .iter()
        .map(|name| memory::peak(&stage.python, name, &ours(name)))
        .collect::<anyhow::Result<Vec<_>>>()?;
    let starts = stage
        .chosen(&[STARTED])
        .into_iter()
        .map(|name| memory::start(name, &ours(name)))
        .collect::<anyhow::Result<Vec<_>>>()?;
    let sentences: Vec<String> = starts.iter().map(memory::Start::text).collect();
    Ok(Findings {
        text: format!("{}\n{}\n", memory::table(&peaks), sentences.join("\n")),
        json: json!({
            "peaks": peaks.iter().map(memory::Peak::json).collect::<Vec<_>>(),
            "starts": starts.iter().map(memory::Start::json).collect::<Vec<_>>(),
        }),
        picture: None,
        wrong: Vec::new(),
    })
}

/// Time against size and threads.
fn scaled(stage: &Stage) -> anyhow::Result<Findings> {
    let points = scaling::measure(stage)?;
    Ok(Findings {
        text: scaling::table(&points),
        json: points.iter().map(scaling::Point::json).collect(),
        picture: Some(("scaling.svg", scaling::plot(&points))),
        wrong: Vec::new(),
    })
}

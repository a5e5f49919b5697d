//! Import of a large model: how long it takes, and how much memory.
//!
//! `cargo bench -p warpforge-snakegrinder [-- MODEL.pt2 …]`. Without a file an archive of BERT-large's size is made: as many
//! parameters in as many products, its weights holes in the file. Each file is imported in a process of its own, so that
//! the peak of its memory is that of one file.

#[path = "../tests/common/zip.rs"]
mod zip;

use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use serde_json::{Value, json};
use warpforge_snakegrinder::{ImportOptions, open};
use zip::Zip;

type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

const REPEATS: usize = 9;
/// Tells a process that it is to measure one file.
const ONE: &str = "WARPFORGE_BENCH_ONE";
const LAYERS: usize = 24;
/// The products of one layer, as sizes of what goes in and what comes out.
const PRODUCTS: [(usize, usize); 6] =
    [(1024, 1024), (1024, 1024), (1024, 1024), (1024, 1024), (1024, 4096), (4096, 1024)];

fn main() -> Outcome {
    // Cargo adds `--bench`.
    let named: Vec<PathBuf> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).map(PathBuf::from).collect();
    if std::env::var_os(ONE).is_some() {
        return named.iter().try_for_each(|file| measure(file));
    }
    let folder = tempfile::tempdir()?;
    let files = if named.is_empty() { vec![synthesised(folder.path())?] } else { named };
    for file in files {
        let status = Command::new(std::env::current_exe()?).arg(&file).env(ONE, "1").status()?;
        if !status.success() {
            return Err(format!("{} ended with {status}", file.display()).into());
        }
    }
    Ok(())
}

fn measure(file: &Path) -> Outcome {
    let mut times = Vec::with_capacity(REPEATS);
    let (mut weights, mut bytes) = (0, 0);
    for _ in 0..REPEATS {
        let start = Instant::now();
        let imported = open(file)?.import(&ImportOptions::default())?;
        times.push(start.elapsed().as_secs_f64() * 1e3);
        weights = imported.weights.len();
        bytes = imported.weights.values().map(|tensor| tensor.bytes().len()).sum();
    }
    times.sort_unstable_by(f64::total_cmp);
    let (least, median, most) = (times[0], times[REPEATS / 2], times[REPEATS - 1]);
    let peak = peak_bytes().map_or("unknown".to_owned(), |peak| format!("{:.0} MB", peak / 1e6));
    println!(
        "{}, {weights} weights of {:.0} MB\n  open and import: median {median:.1} ms of {REPEATS} ({least:.1} to {most:.1})\n  \
         peak memory of the process, mapped pages included: {peak}",
        file.display(),
        bytes as f64 / 1e6
    );
    Ok(())
}

/// The most memory that this process has had, where the system tells.
fn peak_bytes() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().trim_end_matches(" kB").parse::<f64>().ok()? * 1024.0)
}

/// An archive with the products of BERT-large's layers in a chain.
fn synthesised(folder: &Path) -> Outcome<PathBuf> {
    let products = PRODUCTS.repeat(LAYERS);
    let path = folder.join("size_of_bert_large.pt2");
    let mut file = std::fs::File::create(&path)?;
    let mut zip = Zip::default();
    for (name, text) in [
        ("archive_format", "pt2".to_owned()),
        ("archive_version", "0".to_owned()),
        ("byteorder", "little".to_owned()),
        ("models/model.json", program(&products).to_string()),
        ("data/weights/model_weights_config.json", config(&products).to_string()),
        ("data/constants/model_constants_config.json", json!({"config": {}}).to_string()),
    ] {
        let crc = crc32fast::hash(text.as_bytes());
        file.write_all(&zip.header(&format!("model/{name}"), crc, text.len() as u32))?;
        file.write_all(text.as_bytes())?;
    }
    for (at, (from, to)) in products.iter().enumerate() {
        let size = (from * to * size_of::<f32>()) as u32;
        file.write_all(&zip.header(&format!("model/data/weights/weight_{at}"), 0, size))?;
        file.seek(SeekFrom::Current(i64::from(size)))?;
    }
    file.write_all(&zip.end())?;
    Ok(path)
}

fn meta(sizes: [usize; 2]) -> Value {
    let number = |value: usize| json!({"as_int": value});
    json!({
        "dtype": 7, "layout": 7, "storage_offset": number(0),
        "sizes": sizes.map(number), "strides": [number(sizes[1]), number(1)]
    })
}

fn config(products: &[(usize, usize)]) -> Value {
    let weights = products.iter().enumerate().map(|(at, &(from, to))| {
        let entry =
            json!({"path_name": format!("weight_{at}"), "use_pickle": false, "tensor_meta": meta([to, from])});
        (format!("layer.{at}.weight"), entry)
    });
    json!({"config": weights.collect::<serde_json::Map<_, _>>()})
}

fn program(products: &[(usize, usize)]) -> Value {
    const ROWS: usize = 128;
    let tensor = |name: &str| json!({"as_tensor": {"name": name}});
    let mut values = serde_json::Map::from_iter([("x".to_owned(), meta([ROWS, products[0].0]))]);
    let (mut inputs, mut specs, mut nodes) = (Vec::new(), Vec::new(), Vec::new());
    let mut last = "x".to_owned();
    for (at, &(from, to)) in products.iter().enumerate() {
        let (weight, product) = (format!("p_{at}"), format!("linear_{at}"));
        values.insert(weight.clone(), meta([to, from]));
        values.insert(product.clone(), meta([ROWS, to]));
        inputs.push(tensor(&weight));
        specs.push(
            json!({"parameter": {"arg": {"name": weight}, "parameter_name": format!("layer.{at}.weight")}}),
        );
        nodes.push(json!({
            "target": "torch.ops.aten.linear.default", "name": product, "metadata": {}, "outputs": [tensor(&product)],
            "inputs": [
                {"name": "input", "arg": tensor(&last), "kind": 1}, {"name": "weight", "arg": tensor(&weight), "kind": 1}
            ]
        }));
        last = product;
    }
    inputs.push(tensor("x"));
    specs.push(json!({"user_input": {"arg": tensor("x")}}));
    json!({
        "schema_version": {"major": 8, "minor": 0},
        "graph_module": {
            "graph": {"inputs": inputs, "outputs": [tensor(&last)], "nodes": nodes, "tensor_values": values},
            "signature": {"input_specs": specs, "output_specs": [{"user_output": {"arg": tensor(&last)}}]}
        },
        "range_constraints": {}
    })
}

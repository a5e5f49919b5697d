//! A plan: a description with a preset chosen and everything that is left out filled in.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::file::File;
use super::{Accuracy, Activations, Architecture, Format, Generated, OptimizerName, ScheduleShape, Source};

/// What the command line says instead of the description.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overrides {
    /// A folder with the model's weights.
    pub model: Option<PathBuf>,
    /// A file or folder of data to train on.
    pub data: Option<PathBuf>,
    /// How often the data are gone through.
    pub epochs: Option<u64>,
    /// Examples of a batch.
    pub batch_size: Option<usize>,
    /// Updates.
    pub steps: Option<u64>,
    /// The seed of weights and data order.
    pub seed: Option<u32>,
    /// Processes that share each batch.
    pub ranks: Option<usize>,
}

/// What is to be done. As JSON it is what PyTorch's pass reads, and what the golden run's manifest has.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The benchmark's name.
    pub benchmark: String,
    /// The preset.
    pub preset: Option<String>,
    /// The model.
    pub model: Model,
    /// What is trained in the place of the model's own weights.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adapter: Option<Adapter>,
    /// The data.
    pub data: Data,
    /// How much of it.
    pub training: Training,
    /// The optimizer.
    pub optimizer: Optimizer,
    /// The learning rate's schedule.
    pub schedule: Schedule,
    /// What the golden run keeps.
    pub record: Record,
    /// What the trained model is judged by.
    pub metrics: Metrics,
    /// Tolerances that differ from the usual ones, as the text of a file of tolerances.
    pub tolerances: Option<String>,
}

/// The model of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Model {
    pub architecture: Architecture,
    pub config: serde_json::Map<String, serde_json::Value>,
    pub weights: Option<Source>,
    pub factory: Option<String>,
    pub dropout: f64,
    pub licence: String,
}

/// Adapters of low rank beside linear layers that stay as they are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Adapter {
    /// Columns of the first factor, rows of the second.
    pub rank: usize,
    /// The product of both is scaled by this over the rank.
    pub alpha: f64,
    /// The last parts of the names of the layers.
    pub targets: Vec<String>,
}

/// The data of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Data {
    pub format: Format,
    pub train: Option<Source>,
    pub eval: Option<Source>,
    pub vocabulary: Option<Source>,
    pub generated: Option<Generated>,
    pub factory: Option<String>,
    pub lowercase: bool,
    pub max_length: usize,
    pub stride: usize,
    pub n_best: usize,
    pub max_answer_length: usize,
    pub limit_train: Option<usize>,
    pub limit_eval: Option<usize>,
    #[serde(default)]
    pub bos_token: Option<String>,
    #[serde(default)]
    pub eos_token: Option<String>,
    #[serde(default)]
    pub pad_token: Option<String>,
    /// Whether examples that are longer than a sequence are left out.
    #[serde(default)]
    pub skip_long: bool,
    pub licence: String,
    /// Whether the files are to be kept in the run's folder.
    #[serde(default)]
    pub copy: bool,
}

/// How much is trained.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Training {
    pub epochs: u64,
    pub steps: Option<u64>,
    pub batch_size: usize,
    pub eval_batch_size: usize,
    pub accumulate: u64,
    pub seed: u32,
    #[serde(default = "one")]
    pub ranks: usize,
}

fn one() -> usize {
    1
}

/// The optimizer of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Optimizer {
    pub name: OptimizerName,
    pub lr: f64,
    pub betas: [f64; 2],
    pub eps: f64,
    pub weight_decay: f64,
    pub no_decay: Vec<String>,
    pub clip: Option<f64>,
    pub momentum: f64,
    pub dampening: f64,
    pub nesterov: bool,
}

/// The learning rate's schedule.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Schedule {
    pub shape: ScheduleShape,
    /// Updates; below 1, a part of all of them.
    pub warmup: f64,
    pub every: u64,
    /// Epochs after which the rate is smaller.
    #[serde(default)]
    pub milestones: Vec<u64>,
    pub gamma: f64,
}

/// What the golden run keeps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Steps between two that are looked at.
    pub every: u64,
    /// What is kept of them.
    pub activations: Activations,
    /// Whether a second run in f64 measures the noise floor.
    pub noise: bool,
}

/// What the trained model is judged by.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Metrics {
    /// Classification.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accuracy: Option<Accuracy>,
}

/// Fills in what a description leaves out, and refuses what cannot be.
pub(super) fn resolve(
    file: File,
    preset: Option<&str>,
    folder: &Path,
    overrides: &Overrides,
) -> Result<Plan, String> {
    let missing = |key: &str| format!("`{key}` is missing");
    let source = |source: Source| match source {
        Source::Path(path) => Source::Path(folder.join(path)),
        other => other,
    };
    let factory = |text: String| match text.rsplit_once(':') {
        Some((file, name)) if file.ends_with(".py") => format!("{}:{name}", folder.join(file).display()),
        _ => text,
    };
    let own = overrides.data.clone().map(Source::Path);
    let plan = Plan {
        benchmark: file.name.ok_or_else(|| missing("name"))?,
        preset: preset.map(str::to_owned),
        model: Model {
            architecture: file.model.architecture.ok_or_else(|| missing("model.architecture"))?,
            config: file.model.config.unwrap_or_default(),
            weights: overrides.model.clone().map(Source::Path).or(file.model.weights.map(source)),
            factory: file.model.factory.map(factory),
            dropout: file.model.dropout.unwrap_or(0.0),
            licence: file.model.licence.ok_or_else(|| missing("model.licence"))?,
        },
        adapter: match (file.adapter.rank, file.adapter.alpha, file.adapter.targets) {
            (Some(rank), Some(alpha), Some(targets)) => Some(Adapter { rank, alpha, targets }),
            (None, None, None) => None,
            _ => return Err("[adapter] needs `rank`, `alpha` and `targets`".to_owned()),
        },
        data: Data {
            format: file.data.format.ok_or_else(|| missing("data.format"))?,
            train: own.clone().or(file.data.train.map(source)),
            eval: file.data.eval.map(source).filter(|_| own.is_none()),
            vocabulary: file.data.vocabulary.map(source),
            generated: file.data.generated.filter(|_| own.is_none()),
            factory: file.data.factory.map(factory),
            lowercase: file.data.lowercase.unwrap_or(true),
            max_length: file.data.max_length.unwrap_or(384),
            stride: file.data.stride.unwrap_or(128),
            n_best: file.data.n_best.unwrap_or(20),
            max_answer_length: file.data.max_answer_length.unwrap_or(30),
            limit_train: file.data.limit_train,
            limit_eval: file.data.limit_eval,
            bos_token: file.data.bos_token,
            eos_token: file.data.eos_token,
            pad_token: file.data.pad_token,
            skip_long: file.data.skip_long.unwrap_or(false),
            licence: match &overrides.data {
                Some(path) => licence_of(path),
                None => file.data.licence.ok_or_else(|| missing("data.licence"))?,
            },
            copy: false,
        },
        training: Training {
            epochs: overrides.epochs.or(file.training.epochs).unwrap_or(1),
            steps: overrides.steps.or(file.training.steps.filter(|_| overrides.epochs.is_none())),
            batch_size: overrides
                .batch_size
                .or(file.training.batch_size)
                .ok_or_else(|| missing("training.batch_size"))?,
            eval_batch_size: file
                .training
                .eval_batch_size
                .or(file.training.batch_size)
                .ok_or_else(|| missing("training.batch_size"))?,
            accumulate: file.training.accumulate.unwrap_or(1),
            seed: overrides.seed.or(file.training.seed).unwrap_or(0),
            ranks: overrides.ranks.unwrap_or(1),
        },
        optimizer: {
            let name = file.optimizer.name.ok_or_else(|| missing("optimizer.name"))?;
            Optimizer {
                name,
                lr: file.optimizer.lr.ok_or_else(|| missing("optimizer.lr"))?,
                betas: file.optimizer.betas.unwrap_or([0.9, 0.999]),
                eps: file.optimizer.eps.unwrap_or(1e-8),
                weight_decay: file.optimizer.weight_decay.unwrap_or(
                    if matches!(name, OptimizerName::Adamw | OptimizerName::Adamw8bit) { 0.01 } else { 0.0 },
                ),
                no_decay: file.optimizer.no_decay.unwrap_or_default(),
                clip: file.optimizer.clip,
                momentum: file.optimizer.momentum.unwrap_or(0.0),
                dampening: file.optimizer.dampening.unwrap_or(0.0),
                nesterov: file.optimizer.nesterov.unwrap_or(false),
            }
        },
        schedule: Schedule {
            shape: file.schedule.shape.unwrap_or(ScheduleShape::Constant),
            warmup: file.schedule.warmup.unwrap_or(0.0),
            every: file.schedule.every.unwrap_or(1),
            milestones: file.schedule.milestones.unwrap_or_default(),
            gamma: file.schedule.gamma.unwrap_or(0.1),
        },
        record: Record {
            every: file.record.every.unwrap_or(100),
            activations: file.record.activations.unwrap_or(Activations::Modules),
            noise: file.record.noise.unwrap_or(false),
        },
        metrics: Metrics { accuracy: file.metrics.accuracy },
        tolerances: file.tolerances.map(|table| table.to_string()),
    };
    check(&plan)?;
    Ok(plan)
}

/// The licence of a file that the command line names: that of Alpaca goes by its name, others are the user's to know.
fn licence_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    match name.contains("alpaca") {
        true => "CC BY-NC 4.0".to_owned(),
        false => "as the user's own data say".to_owned(),
    }
}

/// Refuses adapters that cannot be trained.
fn check_adapter(plan: &Plan) -> Result<(), String> {
    let Some(Adapter { rank, alpha, targets }) = &plan.adapter else {
        return Err("`adapter.rank` is missing: the weights of a quantized model stay as they are".to_owned());
    };
    if *rank == 0 || *alpha <= 0.0 || !alpha.is_finite() || targets.is_empty() {
        return Err("`adapter` needs a rank and an alpha above 0, and targets".to_owned());
    }
    if plan.training.ranks > 1 {
        return Err("adapters are trained by one rank; leave --ranks out".to_owned());
    }
    if plan.record.noise {
        return Err("`record.noise`: a quantized model has no run in f64".to_owned());
    }
    Ok(())
}

/// Refuses detectors that cannot be trained.
fn check_detection(plan: &Plan) -> Result<(), String> {
    let Plan { data, training, schedule, record, .. } = plan;
    if data.generated.is_none() && !matches!(data.train, Some(Source::Path(_))) {
        return Err("`data.train` is missing: a folder of COCO, or --data, or `data.generated`".to_owned());
    }
    if training.ranks > 1 {
        return Err("a detector is trained by one rank; leave --ranks out".to_owned());
    }
    if record.activations != Activations::None {
        return Err("`record.activations`: of a detector, gradients are kept; say \"none\"".to_owned());
    }
    let milestones = &schedule.milestones;
    if schedule.shape == ScheduleShape::Milestones && !milestones.is_sorted_by(|a, b| a < b) {
        return Err(format!("`schedule.milestones` {milestones:?} do not ascend"));
    }
    Ok(())
}

/// Refuses what cannot be.
fn check(plan: &Plan) -> Result<(), String> {
    let Plan { model, data, training, optimizer, schedule, record, .. } = plan;
    let positive: BTreeMap<&str, bool> = [
        ("training.epochs", training.epochs > 0),
        ("training.steps", training.steps != Some(0)),
        ("training.batch_size", training.batch_size > 0),
        ("training.eval_batch_size", training.eval_batch_size > 0),
        ("training.accumulate", training.accumulate > 0),
        ("optimizer.lr", optimizer.lr > 0.0 && optimizer.lr.is_finite()),
        ("schedule.every", schedule.every > 0),
        ("record.every", record.every > 0),
        ("data.n_best", data.n_best > 0),
        ("data.max_answer_length", data.max_answer_length > 0),
    ]
    .into();
    if let Some((key, _)) = positive.into_iter().find(|(_, fits)| !fits) {
        return Err(format!("`{key}` must be above 0"));
    }
    if training.ranks == 0 || !training.batch_size.is_multiple_of(training.ranks) {
        let (size, ranks) = (training.batch_size, training.ranks);
        return Err(format!("a batch of {size} examples has no {ranks} equal parts, one for each rank"));
    }
    if !(0.0..1.0).contains(&model.dropout) {
        return Err(format!("`model.dropout` {} is no probability below 1", model.dropout));
    }
    if data.format == Format::Squad && data.stride + 8 > data.max_length {
        return Err(format!(
            "`data.stride` {} leaves no room in windows of `data.max_length` {}",
            data.stride, data.max_length
        ));
    }
    if let Some(text) = &plan.tolerances {
        warpforge_golden::Tolerances::parse(text, "[tolerances]").map_err(|error| error.to_string())?;
    }
    let has = |what: bool, key: &str, why: &str| {
        if what { Ok(()) } else { Err(format!("`{key}` is missing: {why}")) }
    };
    match (model.architecture, data.format) {
        (Architecture::BertQuestionAnswering, Format::Squad) => {
            let given = data.generated.is_some() || (data.train.is_some() && data.eval.is_some());
            has(given, "data.train", "a file of SQuAD v1.1, with `data.eval`, or `data.generated`")?;
            let known = data.generated.is_some() || data.vocabulary.is_some() || model.weights.is_some();
            has(known, "data.vocabulary", "a vocab.txt, unless the weights' folder has one")
        }
        (Architecture::Factory, Format::Tensors) => {
            has(model.factory.is_some(), "model.factory", "a function, such as model.py:make")?;
            let given = data.factory.is_some() || (data.train.is_some() && data.eval.is_some());
            has(given, "data.train", "a safetensors file, with `data.eval`, or `data.factory`")?;
            has(plan.metrics.accuracy.is_some(), "metrics.accuracy", "the output and the labels to judge by")
        }
        (Architecture::LlamaCausalLm, Format::Instruct) => {
            let given = data.generated.is_some() || data.train.is_some();
            has(given, "data.train", "a JSONL file of instructions, or --data, or `data.generated`")?;
            let known = model.weights.is_some() || !model.config.is_empty();
            has(known, "model.weights", "a folder or a GGUF file, else a `model.config`")?;
            check_adapter(plan)
        }
        (Architecture::FasterRcnn, Format::Coco) => check_detection(plan),
        (Architecture::FasterRcnn, _) => {
            Err("the architecture faster-rcnn needs data of the format coco".to_owned())
        }
        (Architecture::BertQuestionAnswering, _) => {
            Err("the architecture bert-question-answering needs data of the format squad".to_owned())
        }
        (Architecture::LlamaCausalLm, _) => {
            Err("the architecture llama-causal-lm needs data of the format instruct".to_owned())
        }
        (Architecture::Factory, Format::Squad) => {
            Err("data of the format squad need the architecture bert-question-answering".to_owned())
        }
        (Architecture::Factory, Format::Instruct) => {
            Err("data of the format instruct need the architecture llama-causal-lm".to_owned())
        }
        (Architecture::Factory, Format::Coco) => {
            Err("data of the format coco need the architecture faster-rcnn".to_owned())
        }
    }
}

//! The text of a description: tables whose keys are all optional, so that a preset can replace any of them.

use std::collections::BTreeMap;

use serde::Deserialize;
use warpforge_bench::selection::nearest;

use super::{Accuracy, Activations, Architecture, Format, Generated, OptimizerName, ScheduleShape, Source};
use crate::Error;

/// A table whose keys may be missing, and how it is laid over another.
macro_rules! table {
    ($(#[$doc:meta])* $name:ident { $($field:ident: $ty:ty),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Default, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub(super) struct $name {
            $(pub(super) $field: Option<$ty>,)*
        }

        impl $name {
            /// What is said here, else what the other says.
            fn over(self, base: Self) -> Self {
                Self { $($field: self.$field.or(base.$field),)* }
            }
        }
    };
}

table!(
    /// `[model]`
    ModelTable {
        architecture: Architecture,
        config: serde_json::Map<String, serde_json::Value>,
        weights: Source,
        factory: String,
        dropout: f64,
        licence: String,
    }
);

table!(
    /// `[data]`
    DataTable {
        format: Format,
        train: Source,
        eval: Source,
        vocabulary: Source,
        generated: Generated,
        factory: String,
        lowercase: bool,
        max_length: usize,
        stride: usize,
        n_best: usize,
        max_answer_length: usize,
        limit_train: usize,
        limit_eval: usize,
        bos_token: String,
        eos_token: String,
        pad_token: String,
        skip_long: bool,
        licence: String,
    }
);

table!(
    /// `[adapter]`
    AdapterTable { rank: usize, alpha: f64, targets: Vec<String> }
);

table!(
    /// `[training]`
    TrainingTable {
        epochs: u64,
        steps: u64,
        batch_size: usize,
        eval_batch_size: usize,
        accumulate: u64,
        seed: u32,
    }
);

table!(
    /// `[optimizer]`
    OptimizerTable {
        name: OptimizerName,
        lr: f64,
        betas: [f64; 2],
        eps: f64,
        weight_decay: f64,
        no_decay: Vec<String>,
        clip: f64,
        momentum: f64,
        dampening: f64,
        nesterov: bool,
    }
);

table!(
    /// `[schedule]`
    ScheduleTable { shape: ScheduleShape, warmup: f64, every: u64, milestones: Vec<u64>, gamma: f64 }
);

table!(
    /// `[record]`
    RecordTable { every: u64, activations: Activations, noise: bool }
);

table!(
    /// `[metrics]`
    MetricsTable {
        f1: NoSettings,
        exact_match: NoSettings,
        perplexity: NoSettings,
        average_precision: NoSettings,
        accuracy: Accuracy,
    }
);

/// A table without keys.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NoSettings {}

/// A description, or a preset of one.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct File {
    pub(super) schema_version: Option<u64>,
    pub(super) name: Option<String>,
    pub(super) title: Option<String>,
    pub(super) model: ModelTable,
    pub(super) adapter: AdapterTable,
    pub(super) data: DataTable,
    pub(super) training: TrainingTable,
    pub(super) optimizer: OptimizerTable,
    pub(super) schedule: ScheduleTable,
    pub(super) record: RecordTable,
    pub(super) metrics: MetricsTable,
    /// As a file of tolerances has it.
    pub(super) tolerances: Option<toml::Table>,
    pub(super) presets: BTreeMap<String, File>,
}

impl File {
    /// Reads a text; `place` is what errors call it.
    pub(super) fn parse(text: &str, place: &str) -> Result<Self, Error> {
        toml::from_str(text).map_err(|error| {
            let place = match error.span() {
                Some(span) => {
                    let (line, column) = position(text, span.start);
                    format!("{place}:{line}:{column}")
                }
                None => place.to_owned(),
            };
            Error::Description { place, reason: with_nearest(error.message()) }
        })
    }

    /// A preset laid over the rest.
    pub(super) fn preset(mut self, preset: File) -> Self {
        self.title = preset.title.or(self.title);
        self.model = preset.model.over(self.model);
        self.adapter = preset.adapter.over(self.adapter);
        self.data = preset.data.over(self.data);
        self.training = preset.training.over(self.training);
        self.optimizer = preset.optimizer.over(self.optimizer);
        self.schedule = preset.schedule.over(self.schedule);
        self.record = preset.record.over(self.record);
        self.metrics = preset.metrics.over(self.metrics);
        self.tolerances = preset.tolerances.or(self.tolerances);
        self
    }
}

/// The line and column of a byte, from 1.
fn position(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    (line, column)
}

/// A reader's message about a name that is not known, with the nearest that is.
fn with_nearest(message: &str) -> String {
    let mut quoted = message.split('`').skip(1).step_by(2);
    let unknown = message.starts_with("unknown ").then(|| quoted.next()).flatten();
    match unknown.and_then(|name| nearest(name, quoted)) {
        Some(known) => format!("{message}; did you mean `{known}`?"),
        None => message.to_owned(),
    }
}

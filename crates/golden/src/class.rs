//! What a tensor is in a run: it decides how close is close enough.

use std::fmt;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// The part of a run that a tensor or a number belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// What the model was given.
    Inputs,
    /// Parameters and buffers.
    Weights,
    /// Values of the nodes of the graph.
    Activations,
    /// Derivatives of the loss.
    Gradients,
    /// The loss, step by step.
    Losses,
    /// What a run is judged by in the end: F1, mAP, perplexity.
    Metrics,
    /// What the model gave.
    Outputs,
}

/// What the names of files begin with, for each class. The first that fits counts.
const NAMES: [(&str, Class); 15] = [
    ("inputs", Class::Inputs),
    ("weights", Class::Weights),
    ("checkpoint", Class::Weights),
    ("parameters", Class::Weights),
    ("state_dict", Class::Weights),
    ("adapter_model", Class::Weights),
    ("model", Class::Weights),
    ("activations", Class::Activations),
    ("gradients", Class::Gradients),
    ("grads", Class::Gradients),
    ("losses", Class::Losses),
    ("loss", Class::Losses),
    ("metrics", Class::Metrics),
    ("outputs", Class::Outputs),
    ("logits", Class::Outputs),
];

impl Class {
    /// All classes, in the order in which a run makes them.
    pub const ALL: [Self; 7] = [
        Self::Inputs,
        Self::Weights,
        Self::Activations,
        Self::Gradients,
        Self::Losses,
        Self::Metrics,
        Self::Outputs,
    ];

    /// The name, as in files and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Inputs => "inputs",
            Self::Weights => "weights",
            Self::Activations => "activations",
            Self::Gradients => "gradients",
            Self::Losses => "losses",
            Self::Metrics => "metrics",
            Self::Outputs => "outputs",
        }
    }

    /// The class that the name of a file or a folder begins with.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        let name = name.to_ascii_lowercase();
        NAMES.iter().find(|(start, _)| name.starts_with(start)).map(|(_, class)| *class)
    }

    /// The class of a file by its own name, or by that of the nearest folder around it that names one. The second
    /// value is how many folders that is up: 0 for the file itself.
    #[must_use]
    pub fn of_path(path: &Path) -> Option<(Self, usize)> {
        let parts: Vec<_> = path.iter().rev().collect();
        parts.iter().enumerate().find_map(|(up, part)| Some((Self::of_name(part.to_str()?)?, up)))
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_decides_before_its_folder() {
        for (path, expected) in [
            ("weights.safetensors", Some((Class::Weights, 0))),
            ("model-00001-of-00002.safetensors", Some((Class::Weights, 0))),
            ("loss_curve.json", Some((Class::Losses, 0))),
            ("step_000/gradients.safetensors", Some((Class::Gradients, 0))),
            ("step_000/activations/relu.npy", Some((Class::Activations, 1))),
            ("gradients/step_3/part.safetensors", Some((Class::Gradients, 2))),
            ("notes.json", None),
        ] {
            assert_eq!(Class::of_path(Path::new(path)), expected, "{path}");
        }
    }

    #[test]
    fn every_class_is_found_by_its_own_name() {
        for class in Class::ALL {
            assert_eq!(Class::of_name(class.name()), Some(class));
            assert_eq!(serde_json::to_value(class).unwrap(), class.name());
        }
    }
}

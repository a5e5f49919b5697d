//! The training graph that PyTorch traces, with a batch and PyTorch's own losses.

use std::path::Path;

use serde::Deserialize;
use serde_json::{Value, json};
use warpforge::io::safetensors;
use warpforge::{Inputs, Model, Precision};

use super::settings::{MOMENTUM, RATE, Settings, WEIGHT_DECAY};
use super::{CHECKED, failed};
use crate::benchmark::BenchmarkError;
use crate::external::{LONGEST_RUN, execute};
use crate::python::Python;

const PROGRAM: &str = include_str!("train.py");
/// The packages that trace.
const PACKAGES: [&str; 3] = ["torch", "torchvision", "warpforge"];

/// The Python that has PyTorch and our package.
///
/// # Errors
/// [`BenchmarkError::NotPossible`] with the packages that it lacks.
pub(super) fn python() -> Result<Python, BenchmarkError> {
    Python::with(&PACKAGES)
}

/// What PyTorch's side is asked, and how it is called.
pub(super) fn command(python: &Python, settings: &Settings, more: &Value) -> std::process::Command {
    let mut asked = json!({
        "model": settings.model,
        "batch": settings.batch,
        "side": settings.side,
        "seed": settings.seed,
        "threads": settings.threads(),
        "bf16": settings.precision == Precision::Bf16,
        "lr": RATE,
        "momentum": MOMENTUM,
        "weight_decay": WEIGHT_DECAY,
    });
    if let (Value::Object(asked), Value::Object(more)) = (&mut asked, more) {
        asked.extend(more.clone());
    }
    let mut command = python.command();
    command.args(["-c", PROGRAM, &asked.to_string()]);
    command
}

/// A traced training step.
pub(super) struct Graph {
    /// The model with its loss and gradients.
    pub(super) model: Model,
    pub(super) batch: Inputs,
    pub(super) steps: Steps,
}

/// The first steps by PyTorch.
#[derive(Debug, Deserialize)]
pub(super) struct Steps {
    /// The losses, in f32.
    pub(super) losses: Vec<f64>,
    /// How far the losses of PyTorch itself are from these on another number of threads and in f64.
    pub(super) noise: Vec<f64>,
}

impl Graph {
    /// The graph of these settings: one that is kept, or traced now and kept.
    ///
    /// # Errors
    /// If PyTorch cannot trace it, or what is kept cannot be read.
    pub(super) fn of(settings: &Settings, stop: &dyn Fn() -> bool) -> Result<Self, BenchmarkError> {
        let python = python()?;
        let Settings { model, batch, side, seed, graphs, .. } = settings;
        let version = python.version("torch");
        let folder = graphs.join(format!("{model}-{batch}x{side}-seed{seed}-torch{version}"));
        if !folder.join("steps.json").is_file() {
            traced(&python, settings, &folder, stop)?;
        }
        Self::open(&folder)
    }

    fn open(folder: &Path) -> Result<Self, BenchmarkError> {
        let wrong = |name: &str, error: &dyn std::fmt::Display| {
            failed(format!(
                "{}: {error}; remove the folder to have it traced again",
                folder.join(name).display()
            ))
        };
        let steps = std::fs::read(folder.join("steps.json")).map_err(|error| wrong("steps.json", &error))?;
        let steps: Steps = serde_json::from_slice(&steps).map_err(|error| wrong("steps.json", &error))?;
        let model = Model::load(folder.join("step.pt2")).map_err(|error| wrong("step.pt2", &error))?;
        let batch = safetensors::read(&folder.join("batch.safetensors"))
            .map_err(|error| wrong("batch.safetensors", &error))?;
        if [steps.losses.len(), steps.noise.len()] != [CHECKED; 2] {
            return Err(wrong("steps.json", &format!("{} losses, not {CHECKED}", steps.losses.len())));
        }
        Ok(Self { model, batch: batch.into(), steps })
    }
}

/// Has a graph traced into a folder, which is there whole or not at all.
fn traced(
    python: &Python,
    settings: &Settings,
    folder: &Path,
    stop: &dyn Fn() -> bool,
) -> Result<(), BenchmarkError> {
    let not_possible = |error: std::io::Error| {
        BenchmarkError::NotPossible(format!(
            "cannot keep graphs in {}: {error}; name another folder by --param graphs=DIR",
            settings.graphs.display()
        ))
    };
    std::fs::create_dir_all(&settings.graphs).map_err(not_possible)?;
    let work = tempfile::tempdir_in(&settings.graphs).map_err(not_possible)?;
    // Losses to be held to are those of f32.
    let more = json!({"do": "trace", "folder": work.path(), "steps": CHECKED, "bf16": false});
    execute(command(python, settings, &more), LONGEST_RUN, stop)?;
    let work = work.keep();
    if std::fs::rename(&work, folder).is_err() {
        // Another process has traced the same meanwhile, or a folder is in the way that is not whole.
        if !folder.join("steps.json").is_file() {
            std::fs::remove_dir_all(folder).map_err(not_possible)?;
            std::fs::rename(&work, folder).map_err(not_possible)?;
        } else {
            std::fs::remove_dir_all(&work).map_err(not_possible)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_is_not_whole_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let refused = |expected: &str| {
            let error = Graph::open(folder.path()).err().unwrap().to_string();
            assert!(error.contains(expected) && error.contains("traced again"), "{error}");
        };
        refused("steps.json");
        std::fs::write(folder.path().join("steps.json"), r#"{"losses": [7.0"#).unwrap();
        refused("steps.json");
        std::fs::write(folder.path().join("steps.json"), r#"{"losses": [7.0], "noise": [0.0]}"#).unwrap();
        refused("step.pt2");
        std::fs::write(folder.path().join("step.pt2"), "no archive").unwrap();
        refused("step.pt2");
    }
}

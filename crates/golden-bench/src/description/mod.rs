//! Descriptions of golden benchmarks: model, data, optimizer, schedule, metrics, tolerances and licences as TOML.

mod builtin;
mod file;
mod licence;
mod plan;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub use builtin::{builtin, names};
pub use licence::is_non_commercial;
pub use plan::{Adapter, Data, Metrics, Model, Optimizer, Overrides, Plan, Record, Schedule, Training};
use serde::{Deserialize, Serialize};
use warpforge_bench::selection::nearest;
use warpforge_tensor::io::input;

use self::file::File;
use crate::Error;

/// The newest form of a description that is understood.
pub const SCHEMA_VERSION: u64 = 1;

/// What the model is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Architecture {
    /// `BertForQuestionAnswering` of transformers.
    BertQuestionAnswering,
    /// `LlamaForCausalLM` of transformers, quantized to NF4, with adapters of peft.
    LlamaCausalLm,
    /// `FasterRCNN` of torchvision with a ResNet, a pyramid of features and frozen norms.
    FasterRcnn,
    /// What a Python function of the user's returns.
    Factory,
}

/// What the data are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// Files of SQuAD v1.1.
    Squad,
    /// Instructions with answers, a JSON object in each line.
    Instruct,
    /// A folder of COCO: images, and annotations of boxes.
    Coco,
    /// Tensors whose first dimension counts examples.
    Tensors,
}

/// The optimizers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)]
pub enum OptimizerName {
    Sgd,
    Adam,
    Adamw,
    #[serde(rename = "adamw-8bit")]
    Adamw8bit,
}

/// How the learning rate changes after warm-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)]
pub enum ScheduleShape {
    Constant,
    Step,
    Milestones,
    Linear,
    Cosine,
}

/// Which activations the golden run keeps at the steps that are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Activations {
    /// None.
    None,
    /// What modules return.
    Modules,
    /// What every operation of the exported graph gives, with the weights and inputs of the step.
    Nodes,
}

/// Where a file or a folder is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Source {
    /// A path; relative ones begin at the description.
    Path(PathBuf),
    /// In an installed Python package.
    Package {
        /// The package, as pip calls it.
        package: String,
        /// The path inside of it.
        file: String,
    },
    /// In the cache of the Hugging Face hub.
    Hub {
        /// The repository.
        hub: String,
    },
}

/// Data that are made up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Generated {
    /// Paragraphs with questions, instructions or pictures to train on.
    #[serde(alias = "examples")]
    pub paragraphs: usize,
    /// As many to evaluate with.
    pub evaluation: usize,
}

/// The metric of classification: the share of examples whose largest output is at their label.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Accuracy {
    /// The output of the model with a number for each class.
    pub output: String,
    /// The input with the labels.
    pub labels: String,
}

/// A description that was read.
#[derive(Debug, Clone)]
pub struct Description {
    /// Where it was read from, as errors call it.
    place: String,
    /// The folder that paths begin at.
    folder: PathBuf,
    file: File,
}

impl Description {
    /// A built-in benchmark by its name, or a file by its path: what ends in `.toml` or has a `/` is a path.
    ///
    /// # Errors
    ///
    /// When there is none of that name, or the file cannot be read or used.
    pub fn find(name: &str) -> Result<Self, Error> {
        if let Some(text) = builtin(name) {
            return Self::parse(text, name, Path::new(""));
        }
        let path = Path::new(name);
        if path.extension().is_some_and(|extension| extension == "toml") || name.contains('/') {
            let text = input::read_text(path).map_err(Error::io(path))?;
            let folder = path.canonicalize().map_err(Error::io(path))?;
            return Self::parse(&text, name, folder.parent().unwrap_or(Path::new("")));
        }
        let hint = match nearest(name, names()) {
            Some(known) => format!(", did you mean `{known}`?"),
            None => format!("; there are {}; a path ends in .toml", names().collect::<Vec<_>>().join(", ")),
        };
        Err(Error::Unknown { name: name.to_owned(), hint })
    }

    /// Reads the text of a description; `place` is what errors call it, and paths in it begin at `folder`.
    ///
    /// # Errors
    ///
    /// When it is no description: the line, and the nearest name where one is not known.
    pub fn parse(text: &str, place: &str, folder: &Path) -> Result<Self, Error> {
        let file = File::parse(text, place)?;
        let wrong = |reason: String| Err(Error::Description { place: place.to_owned(), reason });
        match file.schema_version {
            Some(version) if version <= SCHEMA_VERSION => {}
            Some(version) => {
                return wrong(format!(
                    "schema_version {version} is newer than {SCHEMA_VERSION}, the newest known here; update warpt"
                ));
            }
            None => return wrong(format!("`schema_version = {SCHEMA_VERSION}` is missing")),
        }
        for (name, preset) in &file.presets {
            if !preset.presets.is_empty() || preset.name.is_some() || preset.schema_version.is_some() {
                return wrong(format!(
                    "preset `{name}` has `presets`, `name` or `schema_version`, which only the description has"
                ));
            }
        }
        let description = Self { place: place.to_owned(), folder: folder.to_owned(), file };
        // What is wrong with a preset is wrong before anybody asks for it.
        for name in description.file.presets.keys() {
            description.check(Some(name))?;
        }
        if description.file.presets.is_empty() {
            description.check(None)?;
        }
        Ok(description)
    }

    /// Whether there is a plan, with data that the command line may name.
    fn check(&self, preset: Option<&str>) -> Result<(), Error> {
        let with_data = Overrides { data: Some(PathBuf::from("data")), ..Overrides::default() };
        let may_be_named = matches!(self.file.data.format, Some(Format::Instruct | Format::Coco));
        match self.plan(preset, &Overrides::default()) {
            Err(error) if !may_be_named || self.plan(preset, &with_data).is_err() => Err(error),
            _ => Ok(()),
        }
    }

    /// The benchmark's name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.file.name.as_deref().unwrap_or(&self.place)
    }

    /// What it is, in a line.
    #[must_use]
    pub fn title(&self) -> &str {
        self.file.title.as_deref().unwrap_or_default()
    }

    /// The presets, each with its line.
    #[must_use]
    pub fn presets(&self) -> BTreeMap<&str, &str> {
        self.file
            .presets
            .iter()
            .map(|(name, preset)| (name.as_str(), preset.title.as_deref().unwrap_or_default()))
            .collect()
    }

    /// What is to be done: the description with a preset and what the command line says.
    ///
    /// # Errors
    ///
    /// When there is no such preset, or something is missing or out of range.
    pub fn plan(&self, preset: Option<&str>, overrides: &Overrides) -> Result<Plan, Error> {
        let wrong = |reason: String| Error::Description { place: self.place.clone(), reason };
        let names = || self.file.presets.keys().map(String::as_str);
        let file = match preset {
            None if !self.file.presets.is_empty() => {
                let known = names().collect::<Vec<_>>().join(", ");
                return Err(wrong(format!("choose a preset with --preset: {known}")));
            }
            None => self.file.clone(),
            Some(name) => match self.file.presets.get(name) {
                Some(preset) => self.file.clone().preset(preset.clone()),
                None => {
                    let hint = match nearest(name, names()) {
                        Some(known) => format!(", did you mean `{known}`?"),
                        None => format!("; there are {}", names().collect::<Vec<_>>().join(", ")),
                    };
                    return Err(wrong(format!("there is no preset `{name}`{hint}")));
                }
            },
        };
        let place =
            preset.map_or_else(|| self.place.clone(), |name| format!("{}, preset {name}", self.place));
        plan::resolve(file, preset, &self.folder, overrides)
            .map_err(|reason| Error::Description { place, reason })
    }
}

//! Weights from files: safetensors by the model's own names, GGUF by the names that llama.cpp gives.

mod gguf;
mod names;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::Path;

use warpforge_tensor::io::{gguf as format, input, safetensors};
use warpforge_tensor::{ElementType, Tensor};

use crate::format::start_of;
use crate::{Error, Model, Result};

/// Why the tensors of a GGUF file are not the weights of a model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GgufError {
    /// The names of another architecture's tensors are not known.
    #[error(
        "{found}; the tensors of {known} are known by their names, those of others have to have the model's names"
    )]
    Architecture {
        /// What the file says.
        found: String,
        /// What is known.
        known: String,
    },
    /// Weights of the model are neither in the file nor bound already.
    #[error("{} weights of the model are missing:{}", .0.len(), lines(.0))]
    Missing(Vec<String>),
    /// The file has tensors that the model has no weight for.
    #[error("{} tensors are not of this model:{}", .0.len(), lines(.0))]
    Unused(Vec<String>),
    /// A tensor has another shape than the weight.
    #[error("tensor `{tensor}` is {found}, and `{weight}` is {wanted}")]
    Shape {
        /// The tensor of the file.
        tensor: String,
        /// Its sizes.
        found: String,
        /// The weight of the model.
        weight: String,
        /// Its type.
        wanted: String,
    },
    /// A weight is no float that a tensor can be rounded to.
    #[error("tensor `{tensor}` has floats, and `{weight}` is of {element}")]
    Element {
        /// The tensor of the file.
        tensor: String,
        /// The weight of the model.
        weight: String,
        /// Its element type.
        element: ElementType,
    },
    /// The rows of a tensor cannot be put in the model's order.
    #[error("tensor `{tensor}` of {rows} rows: `{value}` does not say how many heads they are")]
    Heads {
        /// The tensor of the file.
        tensor: String,
        /// Its rows.
        rows: usize,
        /// The value that says it.
        value: String,
    },
}

/// Names, one a line, as far as people read them.
fn lines(names: &[String]) -> String {
    /// Names that are shown.
    const SHOWN: usize = 20;
    let mut text: String = names.iter().take(SHOWN).map(|name| format!("\n  {name}")).collect();
    if names.len() > SHOWN {
        text += &format!("\n  … and {} more", names.len() - SHOWN);
    }
    text
}

impl Model {
    /// Binds the weights in files, told apart by what is in them: safetensors by name, and GGUF, whose tensors are widened to
    /// the arguments' types. Of what several files have, the last one's is taken. A GGUF file has no buffers: those that are
    /// bound already stay.
    ///
    /// # Errors
    ///
    /// When a file cannot be read, or a weight is missing, not known or of another type.
    pub fn bind_weight_files(&mut self, files: &[impl AsRef<Path>]) -> Result<()> {
        let mut given = BTreeMap::new();
        for (at, file) in files.iter().enumerate() {
            let file = file.as_ref();
            let refused = |reason| Error::Checkpoint { path: file.display().to_string(), reason };
            if !is_gguf(file)? {
                given.extend(safetensors::read(file).map_err(|error| unreadable(file, error))?);
                continue;
            }
            let read = format::read(file).map_err(|error| unreadable(file, error))?;
            let bound: BTreeMap<String, Tensor> =
                self.weights().map(|(name, tensor)| (name.to_owned(), tensor.clone())).collect();
            given = bound.into_iter().chain(given).collect();
            // What a later file has need not be in this one.
            let is_last = at + 1 == files.len();
            gguf::weights(&read, self.signature(), &mut given, is_last).map_err(|error| match error {
                gguf::Failed::Fit(reason) => refused(reason),
                gguf::Failed::Tensor(error) => unreadable(file, error),
            })?;
        }
        self.bind_weights(&given)
    }
}

fn is_gguf(file: &Path) -> Result<bool> {
    // Standard input is read once; there is no mapping it.
    if input::is_standard(file) {
        return Ok(false);
    }
    let start = start_of(file).map_err(|reason| Error::Io { path: file.display().to_string(), reason })?;
    Ok(start.starts_with(format::MAGIC))
}

fn unreadable(file: &Path, error: warpforge_tensor::Error) -> Error {
    match error {
        // The operating system's reason comes with the path.
        warpforge_tensor::Error::Io { .. } => error.into(),
        _ => Error::Format { path: file.display().to_string(), reason: error.to_string() },
    }
}

//! What can go wrong on the way from a file to results.

use warpforge_diag::Diagnostics;
use warpforge_runtime::ErrorKind;

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file cannot be read.
    #[error("{path}: {reason}")]
    Io {
        /// The file.
        path: String,
        /// The operating system's reason.
        reason: std::io::Error,
    },
    /// The file is not of a form that is read.
    #[error("{path}: {reason}")]
    Format {
        /// The file.
        path: String,
        /// What it is not, or why it cannot be used.
        reason: String,
    },
    /// The archive cannot be imported.
    #[error("{path}: {reason}")]
    Import {
        /// The file.
        path: String,
        /// Why.
        reason: warpforge_snakegrinder::Error,
    },
    /// The module is not valid StableHLO; every mistake with its place.
    #[error("{0}")]
    Invalid(Diagnostics),
    /// No function to run could be chosen.
    #[error("{path}: {reason}")]
    Entry {
        /// The file.
        path: String,
        /// What there is and what to do.
        reason: String,
    },
    /// Inputs are missing, not known, or of the wrong type; all of them are named.
    #[error("the inputs do not fit:{}", .0.iter().map(|problem| format!("\n  {problem}")).collect::<String>())]
    Inputs(Vec<String>),
    /// Weights are missing, not known, or of the wrong type; all of them are named.
    #[error("the weights do not fit:{}", .0.iter().map(|problem| format!("\n  {problem}")).collect::<String>())]
    Weights(Vec<String>),
    /// The tensors of a GGUF file are not the model's weights.
    #[error("{path}: {reason}")]
    Checkpoint {
        /// The file.
        path: String,
        /// Why.
        reason: crate::GgufError,
    },
    /// Values of the state are missing, not known, or of the wrong type; all of them are named.
    #[error("the state does not fit:{}", .0.iter().map(|problem| format!("\n  {problem}")).collect::<String>())]
    State(Vec<String>),
    /// A result cannot be the new value of an argument.
    #[error(transparent)]
    Alias(#[from] warpforge_ir::signature::AliasError),
    /// The model cannot become a training step.
    #[error("{path}: {reason}")]
    Train {
        /// The file.
        path: String,
        /// Why.
        reason: warpforge_train::TrainError,
    },
    /// The evaluation stopped at an operation.
    #[error("{place}")]
    Stopped {
        /// The message with the place in the source.
        place: String,
        /// Why.
        source: warpforge_interp::Error,
    },
    /// The backend refuses or fails.
    #[error(transparent)]
    Runtime(#[from] warpforge_runtime::Error),
    /// The ranks of a group cannot be connected, or cannot go on.
    #[error(transparent)]
    Ranks(#[from] warpforge_collective::Error),
    /// A tensor cannot be made, read or written.
    #[error(transparent)]
    Tensor(#[from] warpforge_tensor::Error),
}

impl Error {
    /// Whether a backend was asked for something that it does not do at all, and would do the rest.
    #[must_use]
    pub fn is_not_offered(&self) -> bool {
        matches!(self, Error::Runtime(error) if matches!(error.kind(), ErrorKind::NotOffered { .. }))
    }
}

/// The result of something here.
pub type Result<T> = std::result::Result<T, Error>;

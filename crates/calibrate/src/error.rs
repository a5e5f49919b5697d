//! Why a calibration, or what uses one, failed.

use crate::profile::ProfileError;

/// Why something failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A profile cannot be read, written or used here.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// A model cannot be compiled or run.
    #[error(transparent)]
    Model(#[from] warpforge::Error),
    /// What was asked for makes no sense.
    #[error("{0}")]
    Settings(String),
    /// The machine or the system does not allow it.
    #[error("{0}")]
    NotPossible(String),
    /// The fused and the unfused kernels disagree.
    #[error("{case}: fused and unfused results differ: {reason}")]
    Mismatch {
        /// What was computed.
        case: String,
        /// How far apart they are.
        reason: String,
    },
    /// The caller asked to stop.
    #[error("stopped")]
    Stopped,
}

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

impl From<warpforge_runtime::Error> for Error {
    fn from(error: warpforge_runtime::Error) -> Self {
        Self::Model(error.into())
    }
}

impl From<warpforge_tensor::Error> for Error {
    fn from(error: warpforge_tensor::Error) -> Self {
        Self::Model(error.into())
    }
}

impl From<warpforge_backend_gpu::GpuError> for Error {
    fn from(error: warpforge_backend_gpu::GpuError) -> Self {
        Self::NotPossible(error.to_string())
    }
}

impl From<warpforge_probes::memory::MemoryError> for Error {
    fn from(error: warpforge_probes::memory::MemoryError) -> Self {
        Self::NotPossible(error.to_string())
    }
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Self::NotPossible(error.to_string())
    }
}

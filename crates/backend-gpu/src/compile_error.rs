//! Why a program is not compiled for a device.

use std::collections::HashSet;

use warpforge_fusion::ImportError;

use crate::error::GpuError;
use crate::lower::LibraryQuery;

/// Why compilation failed.
pub(crate) enum CompileError {
    /// Libraries refused these queries.
    Refused(HashSet<LibraryQuery>),
    /// Something has no lowering.
    Unsupported(String),
    /// The program is too large for anything to run it.
    Import(ImportError),
    /// The device or a library failed.
    Gpu(GpuError),
}

impl From<GpuError> for CompileError {
    fn from(error: GpuError) -> Self {
        CompileError::Gpu(error)
    }
}

impl From<ImportError> for CompileError {
    fn from(error: ImportError) -> Self {
        match error {
            ImportError::Unsupported(reason) => CompileError::Unsupported(reason),
            other => CompileError::Import(other),
        }
    }
}

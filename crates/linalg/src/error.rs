//! Why a system cannot be solved.

use thiserror::Error;
use warpforge_kernels::buffer::AllocationError;
use warpforge_kernels::gemm::GemmError;

/// Why a system cannot be solved.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum LinalgError {
    /// There is no pivot: the matrix is singular in this precision.
    #[error("the matrix is singular: column {column} has no pivot")]
    Singular {
        /// The first column without a pivot.
        column: usize,
    },
    /// The matrix does not fit into memory.
    #[error("no memory for a matrix of order {order}: use a smaller one")]
    Memory {
        /// The order asked for.
        order: usize,
    },
    /// A GEMM has no memory to pack into.
    #[error(transparent)]
    Gemm(#[from] GemmError),
}

impl From<AllocationError> for LinalgError {
    fn from(error: AllocationError) -> Self {
        Self::Gemm(error.into())
    }
}

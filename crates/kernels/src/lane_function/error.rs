//! Why an operation by a function of scalars cannot be planned.

use crate::data_movement::LayoutError;
use crate::fused_loop::FusedLoopError;

/// Why an operation by a function of scalars cannot be planned.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LaneFunctionError {
    /// There is no loop for the function.
    #[error(transparent)]
    Loop(#[from] FusedLoopError),
    /// Sizes are inconsistent.
    #[error(transparent)]
    Layout(#[from] LayoutError),
}

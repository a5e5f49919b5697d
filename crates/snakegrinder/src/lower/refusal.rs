//! Why a node could not be lowered.

use warpforge_ir::build::BuildError;

/// Why a node could not be lowered, in a sentence that continues "NODE: ".
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal(pub(crate) String);

/// What lowering gives.
pub(crate) type Lowered<T> = Result<T, Refusal>;

impl From<BuildError> for Refusal {
    fn from(error: BuildError) -> Self {
        // Reached only where a lowering's own checks let something pass that StableHLO does not.
        Refusal(format!("it gives no valid StableHLO: {error}"))
    }
}

/// A refusal with this reason.
pub(crate) fn refuse<T>(why: impl Into<String>) -> Lowered<T> {
    Err(Refusal(why.into()))
}

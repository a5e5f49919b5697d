//! The gradients of attention in two kernels, one tile of scores at a time on tensor cores.
//!
//! The first kernel has resident tiles of queries and makes two passes over the keys: one for the row statistics
//! (log-sum-exp, and the sum of weights times their gradients), one for the gradient of the queries. The second has
//! resident tiles of keys, streams the queries and reads the row statistics of the first. There are no atomics and no
//! dependencies between blocks, so results are deterministic.

mod kernel;
mod plan;

pub(super) use plan::plan;

use crate::kernel::{Emitted, Kernel, Unsupported};
use kernel::GradientKernel;
use plan::AttentionGradientPlan;

impl AttentionGradientPlan<'_> {
    /// Emits both kernels; row statistics are passed in scratch memory.
    pub(super) fn emit(&self) -> Result<Emitted, Unsupported> {
        let row_statistics = (self.scores.batches() * self.scores.m * 4) as u64;
        let kernels: Result<Vec<Kernel>, Unsupported> =
            [false, true].into_iter().map(|by_keys| GradientKernel::new(self, by_keys).emit()).collect();
        Ok(Emitted { kernels: kernels?, scratch: vec![row_statistics; 2] })
    }
}

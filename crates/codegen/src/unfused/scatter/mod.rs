//! Scatter.
//!
//! Colliding updates are applied in order, so that results are deterministic: few windows are scanned by every output
//! element, many are sorted by target. Many windows that may overlap partially are applied with atomics.

mod atomic;
mod geometry;
mod scan;
mod sorted;

use warpforge_fusion::graph::Combiner;
use warpforge_ir::attr::ScatterDims;

use super::element_kernel::UnfusedKernel;
use crate::kernel::{Emitted, Unsupported};
use geometry::{ScatterGeometry, copy};

/// Most windows that every output element scans.
const MAX_SCANNED_WINDOWS: usize = 16;

/// Most output elements times windows that are scanned where windows may overlap partially.
const MAX_SCANNED: usize = 1 << 24;

pub(super) fn emit(
    kernel: &UnfusedKernel<'_>,
    dims: &ScatterDims,
    combiner: &Combiner,
) -> Result<Emitted, Unsupported> {
    let target = kernel.output();
    if kernel.request.graph.node(kernel.operand(2)?).is_empty() {
        return Ok(Emitted { kernels: vec![copy(kernel, target)?], scratch: Vec::new() });
    }
    let geometry = ScatterGeometry::new(kernel, dims, combiner)?;
    let windows = geometry.windows.len();
    let looks = windows.saturating_mul(kernel.request.graph.node(target).len());
    if windows <= MAX_SCANNED_WINDOWS || (!geometry.disjoint_windows() && looks <= MAX_SCANNED) {
        scan::emit(&geometry)
    } else if geometry.disjoint_windows() {
        sorted::emit(&geometry)
    } else {
        atomic::emit(&geometry)
    }
}

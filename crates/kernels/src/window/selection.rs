//! How an element of each window is selected, and what is done with it.

use super::axis::WindowOffsets;
use crate::lane_function::LaneLoop;
use crate::reduce::ReduceLanes;

/// A dimension that windows span.
#[derive(Debug, Clone)]
pub(super) struct Spanned {
    pub(super) offsets: WindowOffsets,
    /// Bytes from one window to the next in the source.
    pub(super) source_step: usize,
}

/// A selection among the elements of windows over some dimensions.
#[derive(Debug)]
pub(super) struct Selection {
    pub(super) spanned: Vec<Spanned>,
    /// Whether the element selected so far stays.
    pub(super) select: LaneLoop,
    /// Combines an element of the source into the selected one; none replaces it.
    pub(super) combine: Option<ReduceLanes>,
    pub(super) element_size: usize,
    /// Windows of one position of the other dimensions.
    pub(super) windows: usize,
}

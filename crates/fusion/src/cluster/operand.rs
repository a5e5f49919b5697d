//! Operands in memory.

use crate::graph::NodeId;
use crate::view::{View, merged};

/// A value in memory and how it is seen.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Operand {
    /// The value.
    pub value: NodeId,
    /// Which of its elements stands where.
    pub view: View,
}

/// The one stride that these dimensions of a view have together; 0 where they have one element.
#[must_use]
pub fn single_stride(view: &View, dims: &[usize]) -> Option<isize> {
    let all = dims.iter().map(|&at| (view.dims[at], view.strides[at])).filter(|&(dim, _)| dim != 1);
    match merged(all).as_slice() {
        [] => Some(0),
        [(_, stride)] => Some(*stride),
        _ => None,
    }
}

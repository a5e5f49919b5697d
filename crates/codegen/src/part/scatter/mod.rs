//! Updates put where indices say.
//!
//! Updates that meet are applied in their order, so that a run gives what the next one gives: a few windows are gone through
//! by every element of the result, many are ordered by where they go. Windows that may overlap in parts, and are many, are
//! applied as they come.

mod meeting;
mod ordered;
mod scanned;

use warpforge_fusion::NodeId;
use warpforge_fusion::view::dense_strides;

use super::Cut;
use crate::index::{Space, sum};
use crate::kernel::{Emitted, Kernel, Unsupported};
use crate::single::Element;
use crate::steps::loaded;

/// Windows that every element of the result goes through.
const FEW_WINDOWS: usize = 16;

/// Elements of the result times windows up to which that is done where windows may overlap in parts.
const MOST_LOOKS: usize = 1 << 24;

pub(super) fn emit(cut: &Cut<'_>) -> Result<Emitted, Unsupported> {
    if cut.op.result_count() != 1 {
        return Err(Unsupported::new("a scatter of several values"));
    }
    let Some(target) = cut.result(0).filter(|&id| !cut.graph.node(id).is_empty()) else {
        return Ok(Emitted::default());
    };
    let updates = cut.operand(2)?;
    if cut.graph.node(updates).is_empty() {
        return Ok(Emitted { kernels: vec![copy(cut, target)?], scratch: Vec::new() });
    }
    let places = Places::new(cut, target)?;
    let windows = places.windows.len();
    let looks = windows.saturating_mul(cut.graph.node(target).len());
    if windows <= FEW_WINDOWS || (!places.apart() && looks <= MOST_LOOKS) {
        scanned::emit(&places)
    } else if places.apart() {
        ordered::emit(&places)
    } else {
        meeting::emit(&places)
    }
}

/// The kernel that copies the operand to the result.
fn copy(cut: &Cut<'_>, target: NodeId) -> Result<Kernel, Unsupported> {
    let mut copy = Element::new(cut.graph, cut.cluster, target, cut.options);
    let source = cut.read(&mut copy.draft, 0)?;
    copy.finish(&loaded(&source, "n"))
}

/// A dimension of the operand, and what says where an update is along it.
struct Along {
    size: usize,
    /// Which of a window's indices it begins at.
    start: Option<usize>,
    /// The number of the windows' dimension that goes with it.
    batch: Option<usize>,
    /// The dimension of the updates that runs along it, where the window has more than one element there.
    window: Option<usize>,
}

/// Where updates go.
struct Places<'c> {
    cut: &'c Cut<'c>,
    target: NodeId,
    /// Sizes of the updates.
    dims: Vec<usize>,
    /// The windows; strides are those of the indices and of the updates.
    windows: Space,
    /// The dimensions of the updates that number the windows, and those inside.
    numbered: Vec<usize>,
    inner: Vec<usize>,
    /// From one index of a window to the next.
    step: isize,
    along: Vec<Along>,
}

impl<'c> Places<'c> {
    fn new(cut: &'c Cut<'c>, target: NodeId) -> Result<Self, Unsupported> {
        let numbers = cut.op.scatter_dims().ok_or_else(|| cut.unknown())?;
        let sizes = |dims: &[i64]| dims.iter().map(|&dim| dim as usize).collect::<Vec<usize>>();
        let (operand, index_dims, dims) = (cut.dims(0)?, cut.dims(1)?, cut.dims(2)?);
        let inner = sizes(&numbers.update_window_dims);
        let inserted = sizes(&numbers.inserted_window_dims);
        let (batching, index_batching) =
            (sizes(&numbers.input_batching_dims), sizes(&numbers.scatter_indices_batching_dims));
        let vector = numbers.index_vector_dim as usize;
        // The windows are numbered in the order of the indices' dimensions but the vector's.
        let numbered: Vec<usize> = (0..dims.len()).filter(|at| !inner.contains(at)).collect();
        let index_numbered: Vec<usize> = (0..index_dims.len()).filter(|&at| at != vector).collect();
        if numbered.len() != index_numbered.len() {
            return Err(cut.unknown());
        }
        let (index_strides, strides) = (dense_strides(&index_dims), dense_strides(&dims));
        let mut runs = inner.iter().copied();
        let mut along = Vec::new();
        for (dim, &size) in operand.iter().enumerate() {
            let start = numbers.scatter_dims_to_operand_dims.iter().position(|&to| to as usize == dim);
            let batch = match batching.iter().position(|&batched| batched == dim) {
                Some(at) => {
                    let known = index_numbered.iter().position(|&known| known == index_batching[at]);
                    Some(known.ok_or_else(|| cut.unknown())?)
                }
                None => None,
            };
            let window = match inserted.contains(&dim) || batch.is_some() {
                true => None,
                false => Some(runs.next().ok_or_else(|| cut.unknown())?),
            };
            along.push(Along { size, start, batch, window });
        }
        let windows = Space {
            dims: numbered.iter().map(|&at| dims[at]).collect(),
            strides: vec![
                index_numbered.iter().map(|&at| index_strides[at]).collect(),
                numbered.iter().map(|&at| strides[at]).collect(),
            ],
        };
        let step = index_strides.get(vector).copied().unwrap_or(0);
        Ok(Self { cut, target, dims, windows, numbered, inner, step, along })
    }

    /// Whether windows either lie in the same place or have nothing in common.
    fn apart(&self) -> bool {
        let one = |along: &Along| along.window.is_none_or(|window| self.dims[window] == 1);
        self.windows.len() < 1 << 30 && self.along.iter().all(|along| along.start.is_none() || one(along))
    }

    /// Where a window begins along a dimension of the operand; `base` is the place of its indices, `n0`, … its number.
    fn begins(&self, along: &Along, indices: &str, base: &str) -> String {
        let start = along.start.map(|at| {
            let place = sum(&[base.to_owned(), (at as isize * self.step).to_string()]);
            format!("(long long)({})", loaded(indices, &place))
        });
        let parts: Vec<String> = start.into_iter().chain(along.batch.map(|at| format!("n{at}"))).collect();
        sum(&parts)
    }

    /// Strides of the operand.
    fn strides(&self) -> Vec<isize> {
        let dims: Vec<usize> = self.along.iter().map(|along| along.size).collect();
        dense_strides(&dims)
    }
}

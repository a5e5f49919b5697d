//! Which elements of the operand the updates of a scatter go to.

use std::sync::Arc;

use warpforge_fusion::NodeId;
use warpforge_fusion::graph::{Combiner, ReduceKind, ScalarFunction};
use warpforge_fusion::view::dense_strides;
use warpforge_ir::attr::ScatterDims;

use crate::index::{IndexSpace, sum};
use crate::kernel::{Kernel, Unsupported};
use crate::steps::load_expr;
use crate::unfused::element_kernel::{ElementKernel, UnfusedKernel};

/// The kernel that copies the operand to the output.
pub(super) fn copy(kernel: &UnfusedKernel<'_>, target: NodeId) -> Result<Kernel, Unsupported> {
    let mut copy = ElementKernel::new(kernel.request, target);
    let source = kernel.read(&mut copy.builder, 0)?;
    copy.finish(&load_expr(&source, "n"))
}

/// A dimension of the operand.
pub(super) struct OperandDim {
    pub(super) size: usize,
    /// The component of the index vector.
    pub(super) start: Option<usize>,
    /// The batch dimension.
    pub(super) batch: Option<usize>,
    /// The update window dimension, where the window is not of size one.
    pub(super) window: Option<usize>,
}

/// Scatter dimensions.
pub(super) struct ScatterGeometry<'c> {
    pub(super) kernel: &'c UnfusedKernel<'c>,
    pub(super) target: NodeId,
    /// What becomes of an element and an update, and the reduction that it is.
    pub(super) combine: Arc<ScalarFunction>,
    pub(super) reduce_kind: Option<ReduceKind>,
    /// The shape of the updates.
    pub(super) dims: Vec<usize>,
    /// The windows; view 0 are the indices, view 1 the updates.
    pub(super) windows: IndexSpace,
    /// Update dimensions that enumerate windows, and those inside a window.
    pub(super) numbered: Vec<usize>,
    pub(super) inner: Vec<usize>,
    /// Stride between components of an index vector.
    pub(super) step: isize,
    pub(super) along: Vec<OperandDim>,
}

impl<'c> ScatterGeometry<'c> {
    pub(super) fn new(
        kernel: &'c UnfusedKernel<'c>,
        numbers: &ScatterDims,
        combiner: &Combiner,
    ) -> Result<Self, Unsupported> {
        let target = kernel.output();
        let sizes = |dims: &[i64]| dims.iter().map(|&dim| dim as usize).collect::<Vec<usize>>();
        let (operand, index_dims, dims) = (kernel.dims(0)?, kernel.dims(1)?, kernel.dims(2)?.to_vec());
        let inner = sizes(&numbers.update_window_dims);
        let inserted = sizes(&numbers.inserted_window_dims);
        let (batching, index_batching) =
            (sizes(&numbers.input_batching_dims), sizes(&numbers.scatter_indices_batching_dims));
        let vector = numbers.index_vector_dim as usize;
        // Windows are enumerated in the order of the index dimensions without the index vector.
        let numbered: Vec<usize> = (0..dims.len()).filter(|at| !inner.contains(at)).collect();
        let index_numbered: Vec<usize> = (0..index_dims.len()).filter(|&at| at != vector).collect();
        if numbered.len() != index_numbered.len() {
            return Err(kernel.unsupported());
        }
        let (index_strides, strides) = (dense_strides(index_dims), dense_strides(&dims));
        let mut runs = inner.iter().copied();
        let mut along = Vec::new();
        for (dim, &size) in operand.iter().enumerate() {
            let start = numbers.scatter_dims_to_operand_dims.iter().position(|&to| to as usize == dim);
            let batch = match batching.iter().position(|&batched| batched == dim) {
                Some(at) => {
                    let known = index_numbered.iter().position(|&known| known == index_batching[at]);
                    Some(known.ok_or_else(|| kernel.unsupported())?)
                }
                None => None,
            };
            let window = match inserted.contains(&dim) || batch.is_some() {
                true => None,
                false => Some(runs.next().ok_or_else(|| kernel.unsupported())?),
            };
            along.push(OperandDim { size, start, batch, window });
        }
        let windows = IndexSpace {
            dims: numbered.iter().map(|&at| dims[at]).collect(),
            strides: vec![
                index_numbered.iter().map(|&at| index_strides[at]).collect(),
                numbered.iter().map(|&at| strides[at]).collect(),
            ],
        };
        let step = index_strides.get(vector).copied().unwrap_or(0);
        let (combine, reduce_kind) =
            (combiner.function(kernel.request.graph.node(target).element), combiner.reduce_kind());
        Ok(Self { kernel, target, combine, reduce_kind, dims, windows, numbered, inner, step, along })
    }

    /// Whether any two windows are either equal or disjoint.
    pub(super) fn disjoint_windows(&self) -> bool {
        let one = |along: &OperandDim| along.window.is_none_or(|window| self.dims[window] == 1);
        self.windows.len() < 1 << 30 && self.along.iter().all(|along| along.start.is_none() || one(along))
    }

    /// The start of a window along an operand dimension. `base` is the position of its indices, `n0`, … its
    /// coordinates.
    pub(super) fn window_start(&self, along: &OperandDim, indices: &str, base: &str) -> String {
        let start = along.start.map(|at| {
            let place = sum(&[base.to_owned(), (at as isize * self.step).to_string()]);
            format!("(long long)({})", load_expr(indices, &place))
        });
        let parts: Vec<String> = start.into_iter().chain(along.batch.map(|at| format!("n{at}"))).collect();
        sum(&parts)
    }

    /// Strides of the operand.
    pub(super) fn strides(&self) -> Vec<isize> {
        let dims: Vec<usize> = self.along.iter().map(|along| along.size).collect();
        dense_strides(&dims)
    }
}

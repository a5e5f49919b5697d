//! Sizes and strides of a GEMM.

use warpforge_fusion::cluster::{Contraction, Operand, single_stride};
use warpforge_fusion::{Graph, NodeId, Op, View};
use warpforge_tensor::ElementType;

use crate::index::{IndexSpace, max_index};
use crate::kernel::Unsupported;

/// The memory layout of an operand.
#[derive(Debug, Clone)]
pub(crate) struct Side {
    pub(crate) value: NodeId,
    pub(crate) element: ElementType,
    pub(crate) offset: isize,
    /// Stride between rows: M of the left operand, K of the right.
    pub(crate) row: isize,
    /// Stride between columns: K of the left operand, N of the right.
    pub(crate) column: isize,
}

/// Sizes and operands of a GEMM.
#[derive(Debug, Clone)]
pub(crate) struct Geometry {
    /// The batch dimensions; view 0 is the left operand, view 1 the right.
    pub(crate) batch: IndexSpace,
    pub(crate) m: usize,
    pub(crate) n: usize,
    pub(crate) k: usize,
    pub(crate) lhs: Side,
    pub(crate) rhs: Side,
    /// The largest element index of an operand.
    pub(crate) max_index: usize,
}

impl Geometry {
    pub(crate) fn new(graph: &Graph, contraction: &Contraction) -> Result<Self, Unsupported> {
        let Op::Dot(dot) = &graph.node(contraction.node).op else {
            return Err(Unsupported::new("a node that is not a dot"));
        };
        let [lhs, rhs] = &contraction.operands;
        let free = |view: &View, batch: &[usize], contract: &[usize]| -> Vec<usize> {
            (0..view.dims.len()).filter(|at| !batch.contains(at) && !contract.contains(at)).collect()
        };
        let rows = free(&lhs.view, &dot.lhs_batch, &dot.lhs_contract);
        let columns = free(&rhs.view, &dot.rhs_batch, &dot.rhs_contract);
        let size = |view: &View, dims: &[usize]| -> usize { dims.iter().map(|&at| view.dims[at]).product() };
        let batches: Vec<View> = [(lhs, &dot.lhs_batch), (rhs, &dot.rhs_batch)]
            .map(|(operand, dims)| View {
                offset: 0,
                dims: dims.iter().map(|&at| operand.view.dims[at]).collect(),
                strides: dims.iter().map(|&at| operand.view.strides[at]).collect(),
            })
            .to_vec();
        let dims = batches[0].dims.clone();
        let all: Vec<usize> = (0..dims.len()).collect();
        Ok(Self {
            batch: IndexSpace::new(&dims, &all, &[&batches[0], &batches[1]]),
            m: size(&lhs.view, &rows),
            n: size(&rhs.view, &columns),
            k: size(&lhs.view, &dot.lhs_contract),
            lhs: side(graph, lhs, &rows, &dot.lhs_contract)?,
            rhs: side(graph, rhs, &dot.rhs_contract, &columns)?,
            max_index: max_index(&[&lhs.view, &rhs.view]),
        })
    }

    /// The batch size.
    pub(crate) fn batches(&self) -> usize {
        self.batch.len()
    }
}

fn side(graph: &Graph, operand: &Operand, rows: &[usize], columns: &[usize]) -> Result<Side, Unsupported> {
    let stride = |dims: &[usize]| {
        single_stride(&operand.view, dims)
            .ok_or_else(|| Unsupported::new("an operand without a single stride"))
    };
    Ok(Side {
        value: operand.value,
        element: graph.node(operand.value).element,
        offset: operand.view.offset,
        row: stride(rows)?,
        column: stride(columns)?,
    })
}

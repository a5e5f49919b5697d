//! Sizes and strides of a matrix product.

use warpforge_fusion::cluster::{Contraction, Operand, single_stride};
use warpforge_fusion::{Graph, NodeId, Op, View};
use warpforge_tensor::ElementType;

use crate::index::{Space, reach};
use crate::kernel::Unsupported;

/// How an operand lies in memory.
#[derive(Debug, Clone)]
pub(crate) struct Side {
    pub(crate) value: NodeId,
    pub(crate) element: ElementType,
    pub(crate) offset: isize,
    /// Between rows: those of the left operand, or the summed ones of the right.
    pub(crate) row: isize,
    /// Between columns: the summed ones of the left operand, or those of the right.
    pub(crate) column: isize,
}

/// Sizes and operands of a product.
#[derive(Debug, Clone)]
pub(crate) struct Geometry {
    /// The batch; its views are those of the left and of the right operand.
    pub(crate) batch: Space,
    pub(crate) m: usize,
    pub(crate) n: usize,
    pub(crate) k: usize,
    pub(crate) lhs: Side,
    pub(crate) rhs: Side,
    /// The farthest place in any operand.
    pub(crate) reach: usize,
}

impl Geometry {
    pub(crate) fn new(graph: &Graph, product: &Contraction) -> Result<Self, Unsupported> {
        let Op::Dot(dot) = &graph.node(product.node).op else {
            return Err(Unsupported::new("a product that is none"));
        };
        let [lhs, rhs] = &product.operands;
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
            batch: Space::new(&dims, &all, &[&batches[0], &batches[1]]),
            m: size(&lhs.view, &rows),
            n: size(&rhs.view, &columns),
            k: size(&lhs.view, &dot.lhs_contract),
            lhs: side(graph, lhs, &rows, &dot.lhs_contract)?,
            rhs: side(graph, rhs, &dot.rhs_contract, &columns)?,
            reach: reach(&[&lhs.view, &rhs.view]),
        })
    }

    /// The number of products.
    pub(crate) fn batches(&self) -> usize {
        self.batch.len()
    }
}

fn side(graph: &Graph, operand: &Operand, rows: &[usize], columns: &[usize]) -> Result<Side, Unsupported> {
    let stride = |dims: &[usize]| {
        single_stride(&operand.view, dims).ok_or_else(|| Unsupported::new("an operand without one stride"))
    };
    Ok(Side {
        value: operand.value,
        element: graph.node(operand.value).element,
        offset: operand.view.offset,
        row: stride(rows)?,
        column: stride(columns)?,
    })
}

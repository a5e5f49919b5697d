//! Products as the vendor's library takes them.

use warpforge_codegen::{Options, Products as Rounding};
use warpforge_fusion::cluster::{Contraction, Kind, Operand, single_stride};
use warpforge_fusion::graph::Dot;
use warpforge_fusion::{Graph, NodeId, Op, View};
use warpforge_tensor::{ElementType, FloatType};

use super::Task;
use super::bytes;
use super::epilogue::Fused;
use super::operands::Operands;
use super::relu;
use crate::products::{self, Activation, Matrix, Side, Sums};

/// Most calls that one product is taken apart into: from there on copies of its operands cost less, and where an operand
/// is the same for many batches, so that copies of it are larger than it is.
const MOST_CALLS: usize = 2;
const MOST_CALLS_OF_REPEATED: usize = 64;

/// Bytes that every value's address is a multiple of.
const ALIGNMENT: u32 = 256;

/// One call of a product, by offsets in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) lhs: usize,
    pub(crate) rhs: usize,
    pub(crate) out: usize,
}

/// A product by the library.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) product: products::Product,
    pub(crate) lhs: Operand,
    pub(crate) rhs: Operand,
    pub(crate) bias: Option<NodeId>,
    pub(crate) residual: Option<NodeId>,
    /// What the activation takes besides.
    pub(crate) beside: Option<NodeId>,
    /// Where sums of an operand go.
    pub(crate) sums: Option<NodeId>,
    pub(crate) output: NodeId,
    pub(crate) parts: Vec<Part>,
}

impl Call {
    /// A cluster that reads and gives what the call does, for the plan of the memory.
    pub(super) fn as_kind(&self) -> Kind {
        let other = |&id: &NodeId| Operand { value: id, view: View::dense(&[]) };
        let others = self.bias.iter().chain(&self.residual).chain(&self.beside).map(other);
        let read = [self.lhs.clone(), self.rhs.clone()].into_iter().chain(others).collect();
        match self.sums {
            Some(sums) => Kind::Library(read, vec![self.output, sums]),
            None => Kind::Unfused(read),
        }
    }

    /// Has the sums of an operand given too, where the library may: of operands that are read as they are, in one call.
    pub(super) fn sum(&mut self, side: Side, of: NodeId, sums: NodeId) -> bool {
        let product = &mut self.product;
        let operand = if side == Side::Left { &self.lhs } else { &self.rhs };
        let plain = product.bias.is_none() && !product.residual && product.activation == Activation::None;
        // Libraries do not say whether operands that a product rounds to tf32 are summed as they are: gradients of biases,
        // whose terms cancel, would lose too many digits.
        let plain = plain && product.sums != Sums::Tf32;
        let fits = plain && operand.value == of && product.batch == 1 && self.parts.len() == 1;
        if fits {
            (product.summed, self.sums) = (Some(side), Some(sums));
        }
        fits
    }
}

/// Whether the library has products of these types.
pub(super) fn supported(graph: &Graph, product: &Contraction) -> bool {
    let [lhs, rhs] = &product.operands;
    let contracted = !lhs.view.is_empty() && !rhs.view.is_empty();
    let element = |operand: &Operand| graph.node(operand.value).element;
    let (left, right, out) = (element(lhs), element(rhs), graph.node(product.node).element);
    let fits = match left {
        ElementType::Float(FloatType::F32 | FloatType::F64) => left == right && out == left,
        ElementType::Float(FloatType::F16 | FloatType::Bf16) => {
            left == right && (out == left || out == ElementType::F32)
        }
        _ => bytes::multiply(left, right, out),
    };
    contracted && fits
}

/// Whether products are of single bytes, which the library takes only where the sums run along neighbours on both sides.
pub(super) fn in_bytes(element: ElementType) -> bool {
    element.byte_width() == 1
}

/// Makes the call of a product, and what brings its operands into a form that the library takes.
pub(super) fn call(
    operands: &mut Operands,
    tasks: &mut Vec<Task>,
    options: &Options,
    product: &Contraction,
    fused: &Fused,
) -> Result<Call, String> {
    let Op::Dot(dot) = operands.graph.node(product.node).op.clone() else {
        return Err("no product".to_owned());
    };
    let own = operands.graph.node(product.operands[0].value).element;
    let element = match (own, options.products) {
        (ElementType::Float(FloatType::F32), Rounding::Bf16) => ElementType::Float(FloatType::Bf16),
        (ElementType::Float(FloatType::F32), Rounding::F16) => ElementType::Float(FloatType::F16),
        _ => own,
    };
    let mut sides = product.operands.clone();
    if in_bytes(own) {
        for (at, side) in sides.iter_mut().enumerate() {
            *side = contracted_last(operands, tasks, options, side, &dot, at)?;
        }
    }
    for (at, side) in sides.iter_mut().enumerate() {
        let element = if in_bytes(own) { operands.graph.node(side.value).element } else { element };
        if element != own && !in_bytes(own) || matrix(&operands.graph, side, &dot, at, element).is_none() {
            *side = operands.dense(tasks, options, side, element)?;
        }
    }
    let mut batches = batches(&sides, &dot);
    let repeated = |side: &Operand| {
        side.view.dims.iter().zip(&side.view.strides).any(|(&dim, &stride)| dim > 1 && stride == 0)
    };
    let most = if sides.iter().any(repeated) { MOST_CALLS_OF_REPEATED } else { MOST_CALLS };
    if calls(&batches) > most {
        for side in &mut sides {
            if !side.view.is_dense() {
                *side = operands.dense(tasks, options, side, element)?;
            }
        }
        batches = self::batches(&sides, &dot);
    }
    let [lhs, rhs] = sides;
    let unsuited = || "an operand of a product has no form that the library takes".to_owned();
    let of_right = if in_bytes(own) { operands.graph.node(rhs.value).element } else { element };
    let (mut left, m, k) = matrix(&operands.graph, &lhs, &dot, 0, element).ok_or_else(unsuited)?;
    let (mut right, _, n) = matrix(&operands.graph, &rhs, &dot, 1, of_right).ok_or_else(unsuited)?;
    let inner = batches.pop().unwrap_or(Batch { size: 1, lhs: 0, rhs: 0 });
    (left.batch_stride, right.batch_stride) = (inner.lhs, inner.rhs);
    let out = operands.graph.node(fused.output).element;
    let bias = match fused.bias {
        // The library wants it in the result's type.
        Some(id) if operands.graph.node(id).element != out => {
            let whole = Operand { value: id, view: View::dense(&operands.graph.node(id).dims) };
            Some(operands.dense(tasks, options, &whole, out)?.value)
        }
        bias => bias,
    };
    let width = (element.byte_width(), out.byte_width());
    let parts = parts(&batches, inner.size * m * n, width);
    let offset = |view: &View| usize::try_from(view.offset).unwrap_or(0) * width.0;
    let alignment = |start: usize, stride: usize, of: &dyn Fn(&Part) -> usize| {
        let all = parts.iter().map(of).chain([start, stride * width.0]);
        all.fold(ALIGNMENT, |alignment, at| {
            let at = if at == 0 { ALIGNMENT } else { 1 << at.trailing_zeros().min(8) };
            alignment.min(at)
        })
    };
    left.alignment = alignment(offset(&lhs.view), left.batch_stride, &|part| part.lhs);
    right.alignment = alignment(offset(&rhs.view), right.batch_stride, &|part| part.rhs);
    let sums = match (element, options.products) {
        (ElementType::Float(FloatType::F64), _) => Sums::F64,
        (ElementType::I8, _) => Sums::I32,
        (ElementType::Float(FloatType::F32), Rounding::Tf32) => Sums::Tf32,
        _ => Sums::F32,
    };
    let product = products::Product {
        batch: inner.size,
        m,
        n,
        k,
        lhs: left,
        rhs: right,
        out,
        sums,
        bias: bias.map(|_| out),
        activation: fused.activation,
        residual: fused.residual.is_some(),
        summed: None,
    };
    let Fused { residual, output, .. } = *fused;
    let beside = match &fused.gate {
        Some(gate) => Some(relu::bits(operands, tasks, options, gate, [m, n])?),
        None => fused.beside,
    };
    Ok(Call { product, lhs, rhs, bias, residual, beside, sums: None, output, parts })
}

/// An operand whose elements that are summed lie side by side, in its own order of dimensions.
fn contracted_last(
    operands: &mut Operands,
    tasks: &mut Vec<Task>,
    options: &Options,
    side: &Operand,
    dot: &Dot,
    at: usize,
) -> Result<Operand, String> {
    let contract = if at == 0 { &dot.lhs_contract } else { &dot.rhs_contract };
    let inside = |view: &View| single_stride(view, contract) == Some(1);
    if inside(&side.view) {
        return Ok(side.clone());
    }
    let rank = side.view.dims.len();
    let order: Vec<usize> =
        (0..rank).filter(|dim| !contract.contains(dim)).chain(contract.iter().copied()).collect();
    let turned = View {
        offset: side.view.offset,
        dims: order.iter().map(|&dim| side.view.dims[dim]).collect(),
        strides: order.iter().map(|&dim| side.view.strides[dim]).collect(),
    };
    let element = operands.graph.node(side.value).element;
    let copy = operands.dense(tasks, options, &Operand { value: side.value, view: turned }, element)?;
    let mut view = side.view.clone();
    view.offset = 0;
    for (place, &dim) in order.iter().enumerate() {
        view.strides[dim] = copy.view.strides[place];
    }
    Ok(Operand { value: copy.value, view })
}

/// A dimension of batches and how far apart they lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Batch {
    size: usize,
    lhs: usize,
    rhs: usize,
}

/// The dimensions of batches, neighbours that lie evenly on both sides made one.
fn batches([lhs, rhs]: &[Operand; 2], dot: &Dot) -> Vec<Batch> {
    let mut all: Vec<Batch> = Vec::new();
    let stride = |view: &View, at: usize| usize::try_from(view.strides[at]).unwrap_or(0);
    for (&left, &right) in dot.lhs_batch.iter().zip(&dot.rhs_batch) {
        let size = lhs.view.dims[left];
        if size == 1 {
            continue;
        }
        let next = Batch { size, lhs: stride(&lhs.view, left), rhs: stride(&rhs.view, right) };
        match all.last_mut() {
            Some(last) if last.lhs == next.lhs * size && last.rhs == next.rhs * size => {
                *last = Batch { size: last.size * size, ..next };
            }
            _ => all.push(next),
        }
    }
    all
}

fn calls(batches: &[Batch]) -> usize {
    batches.iter().rev().skip(1).map(|batch| batch.size).product()
}

/// The calls for all dimensions of batches but the innermost, whose result has so many elements.
fn parts(outer: &[Batch], each: usize, (operand, out): (usize, usize)) -> Vec<Part> {
    let mut parts = vec![Part { lhs: 0, rhs: 0, out: 0 }];
    for batch in outer {
        let next = |from: &Part| {
            let from = *from;
            (0..batch.size).map(move |index| Part {
                lhs: from.lhs + index * batch.lhs * operand,
                rhs: from.rhs + index * batch.rhs * operand,
                out: 0,
            })
        };
        parts = parts.iter().flat_map(next).collect();
    }
    for (at, part) in parts.iter_mut().enumerate() {
        part.out = at * each * out;
    }
    parts
}

/// An operand as a matrix with its rows and columns, where one of its strides is 1.
fn matrix(
    graph: &Graph,
    operand: &Operand,
    dot: &Dot,
    side: usize,
    element: ElementType,
) -> Option<(Matrix, usize, usize)> {
    let view = &operand.view;
    let (batch, contract) =
        if side == 0 { (&dot.lhs_batch, &dot.lhs_contract) } else { (&dot.rhs_batch, &dot.rhs_contract) };
    let free: Vec<usize> =
        (0..view.dims.len()).filter(|at| !batch.contains(at) && !contract.contains(at)).collect();
    let (rows, columns) = if side == 0 { (&free, contract) } else { (contract, &free) };
    let size = |dims: &[usize]| -> usize { dims.iter().map(|&at| view.dims[at]).product() };
    let (row_count, column_count) = (size(rows), size(columns));
    let stride = |dims: &[usize]| single_stride(view, dims).and_then(|stride| usize::try_from(stride).ok());
    let (row_stride, column_stride) = (stride(rows)?, stride(columns)?);
    let made = |by_columns: bool, stride: usize| Matrix {
        element,
        by_columns,
        stride,
        batch_stride: 0,
        alignment: ALIGNMENT,
    };
    debug_assert!(graph.node(operand.value).element.byte_width() > 0);
    let found = if column_count == 1 || column_stride == 1 {
        let stride = if row_count == 1 { column_count } else { row_stride };
        (stride >= column_count).then(|| made(false, stride))
    } else if row_count == 1 || row_stride == 1 {
        (column_stride >= row_count).then(|| made(true, column_stride))
    } else {
        None
    };
    found.map(|matrix| (matrix, row_count, column_count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn even_batches_are_one_call_and_others_several() {
        let dot = Dot {
            lhs_batch: vec![0, 1],
            rhs_batch: vec![0, 1],
            lhs_contract: vec![3],
            rhs_contract: vec![2],
        };
        let operand = |strides: [isize; 4]| Operand {
            value: NodeId(0),
            view: View { offset: 0, dims: vec![2, 3, 4, 5], strides: strides.to_vec() },
        };
        let dense = operand([60, 20, 5, 1]);
        let heads = operand([60, 5, 15, 1]);
        assert_eq!(batches(&[dense.clone(), dense.clone()], &dot), [Batch { size: 6, lhs: 20, rhs: 20 }]);
        let apart = batches(&[heads, dense], &dot);
        assert_eq!(apart.len(), 2);
        assert_eq!(calls(&apart), 2);
        let made = parts(&apart[..1], 100, (2, 4));
        assert_eq!(made, [Part { lhs: 0, rhs: 0, out: 0 }, Part { lhs: 120, rhs: 120, out: 400 }]);
    }
}

//! GEMM calls.

use warpforge_codegen::{ComputePrecision, Options};
use warpforge_fusion::cluster::{Contraction, Operand, single_stride};
use warpforge_fusion::graph::Dot;
use warpforge_fusion::{Graph, Op, View};
use warpforge_tensor::{ElementType, FloatType};

use super::byte_gemm;
use super::call::{GemmCall, GemmSlice};
use super::epilogue::LibraryEpilogue;
use super::operands::Operands;
use super::relu;
use super::task::Task;
use crate::blas::{self, ComputeType, Matrix};

/// Most calls per batched GEMM before operands are copied instead; higher where an operand is broadcast, because its
/// copy would be larger.
const MAX_CALLS: usize = 2;
const MAX_CALLS_OF_REPEATED: usize = 64;

/// Alignment of values in bytes.
const ALIGNMENT: u32 = 256;

/// Whether the library supports these types.
pub(super) fn supported(graph: &Graph, contraction: &Contraction) -> bool {
    let [lhs, rhs] = &contraction.operands;
    let contracted = !lhs.view.is_empty() && !rhs.view.is_empty();
    let element = |operand: &Operand| graph.node(operand.value).element;
    let (left, right, out) = (element(lhs), element(rhs), graph.node(contraction.node).element);
    let fits = match left {
        ElementType::Float(FloatType::F32 | FloatType::F64) => left == right && out == left,
        ElementType::Float(FloatType::F16 | FloatType::Bf16) => {
            left == right && (out == left || out == ElementType::F32)
        }
        _ => byte_gemm::supported(left, right, out),
    };
    contracted && fits
}

/// Whether a type has one byte; such GEMMs need K contiguous in both operands.
pub(super) fn is_byte(element: ElementType) -> bool {
    element.byte_width() == 1
}

/// The call of a GEMM, with copies of operands whose layout the library does not support.
pub(super) fn call(
    operands: &mut Operands,
    tasks: &mut Vec<Task>,
    options: &Options,
    contraction: &Contraction,
    fused: &LibraryEpilogue,
) -> Result<GemmCall, String> {
    let Op::Dot(dot) = operands.graph.node(contraction.node).op.clone() else {
        return Err("not a dot".to_owned());
    };
    let own = operands.graph.node(contraction.operands[0].value).element;
    let mut sides = contraction.operands.clone();
    if is_byte(own) {
        for (at, side) in sides.iter_mut().enumerate() {
            *side = contraction_innermost(operands, tasks, options, side, &dot, at)?;
        }
    }
    for (at, side) in sides.iter_mut().enumerate() {
        let element = operands.graph.node(side.value).element;
        if matrix(&operands.graph, side, &dot, at, element).is_none() {
            *side = operands.dense(tasks, options, side, element)?;
        }
    }
    let mut batches = batches(&sides, &dot);
    let repeated = |side: &Operand| {
        side.view.dims.iter().zip(&side.view.strides).any(|(&dim, &stride)| dim > 1 && stride == 0)
    };
    let most = if sides.iter().any(repeated) { MAX_CALLS_OF_REPEATED } else { MAX_CALLS };
    if calls(&batches) > most {
        for side in &mut sides {
            if !side.view.is_dense() {
                let element = operands.graph.node(side.value).element;
                *side = operands.dense(tasks, options, side, element)?;
            }
        }
        batches = self::batches(&sides, &dot);
    }
    let [lhs, rhs] = sides;
    let unsuited = || "an operand of a GEMM has no form that the library takes".to_owned();
    let of_right = operands.graph.node(rhs.value).element;
    let (mut left, m, k) = matrix(&operands.graph, &lhs, &dot, 0, own).ok_or_else(unsuited)?;
    let (mut right, _, n) = matrix(&operands.graph, &rhs, &dot, 1, of_right).ok_or_else(unsuited)?;
    let inner = batches.pop().unwrap_or(Batch { size: 1, lhs: 0, rhs: 0 });
    (left.batch_stride, right.batch_stride) = (inner.lhs, inner.rhs);
    let out = operands.graph.node(fused.output).element;
    let bias = match fused.bias {
        // The bias must have the result's type.
        Some(id) if operands.graph.node(id).element != out => {
            let whole = Operand { value: id, view: View::dense(&operands.graph.node(id).dims) };
            Some(operands.dense(tasks, options, &whole, out)?.value)
        }
        bias => bias,
    };
    let width = (own.byte_width(), out.byte_width());
    let parts = parts(&batches, inner.size * m * n, width);
    let offset = |view: &View| usize::try_from(view.offset).unwrap_or(0) * width.0;
    let alignment = |start: usize, stride: usize, of: &dyn Fn(&GemmSlice) -> usize| {
        let all = parts.iter().map(of).chain([start, stride * width.0]);
        all.fold(ALIGNMENT, |alignment, at| {
            let at = if at == 0 { ALIGNMENT } else { 1 << at.trailing_zeros().min(8) };
            alignment.min(at)
        })
    };
    left.alignment = alignment(offset(&lhs.view), left.batch_stride, &|part| part.lhs);
    right.alignment = alignment(offset(&rhs.view), right.batch_stride, &|part| part.rhs);
    let compute_type = match (own, options.compute_precision) {
        (ElementType::Float(FloatType::F64), _) => ComputeType::F64,
        (ElementType::I8, _) => ComputeType::I32,
        (ElementType::Float(FloatType::F32), ComputePrecision::Tf32) if !dot.keeps_precision => {
            ComputeType::Tf32
        }
        _ => ComputeType::F32,
    };
    let gemm = blas::Gemm {
        batch: inner.size,
        m,
        n,
        k,
        lhs: left,
        rhs: right,
        out,
        compute_type,
        bias: bias.map(|_| out),
        activation: fused.activation,
        residual: fused.residual.is_some(),
        scales: fused.scales.map(|scales| scales.mode),
        fast_accumulation: fused.scales.is_some_and(|scales| scales.fast),
        bias_gradient: None,
    };
    let scales = fused.scales.map(|scales| scales.values);
    let LibraryEpilogue { residual, output, .. } = *fused;
    let aux = match &fused.relu_mask {
        Some(mask) => Some(relu::bits(operands, tasks, options, mask, [m, n])?),
        None => fused.aux,
    };
    Ok(GemmCall { gemm, lhs, rhs, bias, residual, scales, aux, bias_gradient: None, output, parts })
}

/// An operand with K contiguous, in its own dimension order.
fn contraction_innermost(
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
    let transposed = View {
        offset: side.view.offset,
        dims: order.iter().map(|&dim| side.view.dims[dim]).collect(),
        strides: order.iter().map(|&dim| side.view.strides[dim]).collect(),
    };
    let element = operands.graph.node(side.value).element;
    let copy = operands.dense(tasks, options, &Operand { value: side.value, view: transposed }, element)?;
    let mut view = side.view.clone();
    view.offset = 0;
    for (position, &dim) in order.iter().enumerate() {
        view.strides[dim] = copy.view.strides[position];
    }
    Ok(Operand { value: copy.value, view })
}

/// A batch dimension with its strides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Batch {
    size: usize,
    lhs: usize,
    rhs: usize,
}

/// The batch dimensions, merged where strides allow.
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

/// One call per index of all batch dimensions but the innermost.
fn parts(outer: &[Batch], each: usize, (operand, out): (usize, usize)) -> Vec<GemmSlice> {
    let mut parts = vec![GemmSlice { lhs: 0, rhs: 0, out: 0 }];
    for batch in outer {
        let next = |from: &GemmSlice| {
            let from = *from;
            (0..batch.size).map(move |index| GemmSlice {
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

/// An operand as a matrix with one unit stride, and its rows and columns.
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
    use warpforge_fusion::NodeId;

    use super::*;

    #[test]
    fn uniform_batches_are_one_call() {
        let dot = Dot {
            lhs_batch: vec![0, 1],
            rhs_batch: vec![0, 1],
            lhs_contract: vec![3],
            rhs_contract: vec![2],
            ..Dot::default()
        };
        let operand = |strides: [isize; 4]| Operand {
            value: NodeId(0),
            view: View { offset: 0, dims: vec![2, 3, 4, 5], strides: strides.to_vec() },
        };
        let dense = operand([60, 20, 5, 1]);
        let heads = operand([60, 5, 15, 1]);
        assert_eq!(batches(&[dense.clone(), dense.clone()], &dot), [Batch { size: 6, lhs: 20, rhs: 20 }]);
        let uneven = batches(&[heads, dense], &dot);
        assert_eq!(uneven.len(), 2);
        assert_eq!(calls(&uneven), 2);
        let made = parts(&uneven[..1], 100, (2, 4));
        assert_eq!(made, [GemmSlice { lhs: 0, rhs: 0, out: 0 }, GemmSlice { lhs: 120, rhs: 120, out: 400 }]);
    }
}

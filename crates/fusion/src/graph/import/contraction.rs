//! Products, convolutions and windows in the one form that the graph has for them.

use warpforge_ir::OpRef;
use warpforge_tensor::{ElementType, Tensor};

use super::sizes::sizes;
use crate::graph::NodeId;
use crate::graph::build::{Builder, inverse};
use crate::graph::op::{Conv, Dot, Op, Window};
use crate::graph::scalar::ReduceKind;
use crate::view::LayoutOp;

/// The windows of an operation.
pub(super) fn window(op: OpRef<'_>) -> Option<Window> {
    let dims = sizes(op.attr_i64s("window_dimensions")?)?;
    let ones = || vec![1; dims.len()];
    let list = |name: &str| op.attr_i64s(name).map_or_else(|| Some(ones()), sizes);
    Some(Window {
        strides: list("window_strides")?,
        padding: paddings(op, dims.len())?,
        base_dilation: list("base_dilations")?,
        window_dilation: list("window_dilations")?,
        dims,
    })
}

fn paddings(op: OpRef<'_>, rank: usize) -> Option<Vec<(isize, isize)>> {
    let Some(rows) = op.attr_rows("padding") else { return Some(vec![(0, 0); rank]) };
    rows.into_iter().map(|row| Some((*row.first()? as isize, *row.get(1)? as isize))).collect()
}

/// Windows in the order of dimensions that the input is stored in.
pub(super) fn reduce_window(
    b: &mut Builder,
    (kind, init): (ReduceKind, Tensor),
    window: Window,
    input: NodeId,
    element: ElementType,
    dims: Vec<usize>,
) -> NodeId {
    let node = b.node(input);
    let Op::Layout(LayoutOp::Transpose(permutation)) = &node.op else {
        return b.raw(Op::ReduceWindow(kind, window, init), vec![input], element, dims);
    };
    let (permutation, source) = (permutation.clone(), node.inputs[0]);
    let back = inverse(&permutation);
    let window = window.transposed(&back);
    let inner = back.iter().map(|&at| dims[at]).collect();
    let result = b.raw(Op::ReduceWindow(kind, window, init), vec![source], element, inner);
    b.transpose(result, permutation)
}

/// A product of floats of one type with a result of that or, wider, of f32; of floats of 8 bits; or of integers.
pub(super) fn dot_of(
    b: &mut Builder,
    dot: Dot,
    given: &[NodeId],
    element: ElementType,
    dims: Vec<usize>,
) -> Option<NodeId> {
    let &[lhs, rhs] = given else { return None };
    let operands = [lhs, rhs].map(|id| b.node(id).element);
    let fits = match (operands, element) {
        ([ElementType::Int(_), ElementType::Int(_)], ElementType::Int(_)) => true,
        ([left, right], ElementType::Float(_)) if left.is_float() && right.is_float() => {
            let narrow = [left, right].iter().all(|element| element.byte_width() == 1);
            let widened =
                element == ElementType::F32 && [ElementType::BF16, ElementType::F16].contains(&left);
            narrow || (left == right && (left == element || widened))
        }
        _ => false,
    };
    fits.then(|| b.raw(Op::Dot(dot), given.to_vec(), element, dims))
}

/// A convolution with channels last, whatever the order in the module.
pub(super) fn convolution(
    b: &mut Builder,
    op: OpRef<'_>,
    given: &[NodeId],
    element: ElementType,
    dims: &[usize],
) -> Option<NodeId> {
    let &[input, weights] = given else { return None };
    let numbers = op.conv_dims()?;
    let same = b.node(input).element == element && b.node(weights).element == element;
    if op.attr_i64("batch_group_count")? != 1 || !same || !matches!(element, ElementType::Float(_)) {
        return None;
    }
    let rank = numbers.input_spatial.len();
    let ones = || vec![1; rank];
    let list = |name: &str| op.attr_i64s(name).map_or_else(|| Some(ones()), sizes);
    let reversal: Vec<usize> = op
        .attr_bools("window_reversal")
        .map(|flags| flags.iter().enumerate().filter(|(_, flag)| **flag).map(|(at, _)| at).collect())
        .unwrap_or_default();
    let conv = Conv {
        strides: list("window_strides")?,
        padding: paddings(op, rank)?,
        base_dilation: list("lhs_dilation")?,
        window_dilation: list("rhs_dilation")?,
        groups: usize::try_from(op.attr_i64("feature_group_count")?).ok()?,
    };
    let order = |first: i64, spatial: &[i64], last: i64| {
        sizes(&std::iter::once(first).chain(spatial.iter().copied()).chain([last]).collect::<Vec<_>>())
    };
    let spatial_first: Vec<i64> = numbers
        .kernel_spatial
        .iter()
        .copied()
        .chain([numbers.kernel_input_feature, numbers.kernel_output_feature])
        .collect();
    let input =
        b.transpose(input, order(numbers.input_batch, &numbers.input_spatial, numbers.input_feature)?);
    let mut weights = b.transpose(weights, sizes(&spatial_first)?);
    if !reversal.is_empty() {
        let (element, dims) = (b.node(weights).element, b.node(weights).dims.clone());
        weights = b.add(Op::Layout(LayoutOp::Reverse(reversal)), vec![weights], element, dims);
    }
    let output = order(numbers.output_batch, &numbers.output_spatial, numbers.output_feature)?;
    let inner = output.iter().map(|&at| dims[at]).collect();
    let result = b.raw(Op::Conv(conv), vec![input, weights], element, inner);
    Some(b.transpose(result, inverse(&output)))
}

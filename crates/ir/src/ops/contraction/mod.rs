//! Dots and convolutions.

mod algorithm;

use crate::attr::{Attribute, ConvDims, DotDims, Precision};
use crate::table::Trait::{Deprecated, Pure};
use crate::table::{Entry, OpKind, op};
use crate::types::{Dim, TensorType, Type};
use crate::verify::quantized::axis;
use crate::verify::{Cx, compatible};

const CONVOLUTION_ATTRS: &str = "window_strides?: i64s, padding?: rows, lhs_dilation?: i64s, rhs_dilation?: i64s, \
     window_reversal?: bools, dimension_numbers: conv, feature_group_count: i64, batch_group_count: i64, \
     precision_config?: enums precision";
const DYNAMIC_CONV_ATTRS: &str = "window_strides?: i64s, lhs_dilation?: i64s, rhs_dilation?: i64s, \
     window_reversal?: bools, dimension_numbers: conv, feature_group_count: i64, batch_group_count: i64, \
     precision_config?: enums precision";

pub(super) const ENTRIES: &[Entry] = &[
    op(OpKind::Convolution)
        .values("lhs: tensor, rhs: tensor|axisquant", "result: tensor|axisquant")
        .attrs(CONVOLUTION_ATTRS)
        .text("($lhs, $rhs) dim_numbers = {conv_dims}, window = {window}{attrs} : {fn}")
        .is(&[Pure])
        .rule(convolution)
        .doc("Dot products of a kernel with windows of the input."),
    op(OpKind::Dot)
        .values("lhs: tensor, rhs: tensor|axisquant", "result: tensor|axisquant")
        .attrs("precision_config?: enums precision")
        .text("$lhs, $rhs{precision}{attrs} : {fn}")
        .is(&[Pure, Deprecated])
        .rule(dot)
        .doc("Product of vectors and matrices over the last and the first dimension."),
    op(OpKind::DotGeneral)
        .values("lhs: tensor, rhs: tensor|axisquant", "result: tensor|axisquant")
        .attrs("dot_dimension_numbers: dot, precision_config?: enums precision, algorithm?: algorithm")
        .text("$lhs, $rhs, {dot_dims}{precision}{algorithm}{attrs} : {fn}")
        .is(&[Pure])
        .rule(dot_general)
        .doc("Sums of products over contracting dimensions, for each index of the batching dimensions."),
    op(OpKind::DynamicConv)
        .values("lhs: tensor, rhs: tensor, padding: static 2d int", "result: tensor")
        .attrs(DYNAMIC_CONV_ATTRS)
        .is(&[Pure])
        .rule(convolution)
        .doc("As `convolution`, with the padding given by an operand."),
    op(OpKind::Einsum)
        .values("lhs: tensor, rhs: tensor", "result: tensor")
        .attrs("einsum_config: str")
        .text("$lhs, $rhs, config = $einsum_config{attrs} : {fn}")
        .is(&[Pure, Deprecated])
        .doc("Sum of products as an Einstein summation says."),
    op(OpKind::UnaryEinsum)
        .values("operand: tensor", "result: tensor")
        .attrs("einsum_config: str")
        .text("$operand, config = $einsum_config{attrs} : {fn}")
        .is(&[Pure, Deprecated])
        .doc("Sum over dimensions as an Einstein summation says."),
];

/// The dimensions of a tensor that are in none of the lists, in order.
fn rest(tensor: &TensorType, used: [&[i64]; 2]) -> Vec<Dim> {
    let free = |axis: &usize| !used.iter().any(|list| list.contains(&(*axis as i64)));
    (0..tensor.rank()).filter(free).map(|axis| tensor.dims()[axis]).collect()
}

/// A dimension of a tensor that is known to have it.
fn at(tensor: &TensorType, axis: i64) -> Dim {
    usize::try_from(axis).ok().and_then(|axis| tensor.dim(axis)).unwrap_or(Dim::Dynamic)
}

/// The shape of a dot, when its dimension numbers are in order.
pub(super) fn dot_shape(
    cx: &mut Cx<'_>,
    lhs: &TensorType,
    rhs: &TensorType,
    dims: &DotDims,
) -> Option<Vec<Dim>> {
    let (lb, rb) = (dims.lhs_batching.as_slice(), dims.rhs_batching.as_slice());
    let (lc, rc) = (dims.lhs_contracting.as_slice(), dims.rhs_contracting.as_slice());
    cx.same_count("C1", "batching dimensions", lb.len(), rb.len());
    cx.same_count("C2", "contracting dimensions", lc.len(), rc.len());
    cx.unique("C3", "left dimensions", &[lb, lc].concat());
    cx.unique("C4", "right dimensions", &[rb, rc].concat());
    cx.in_rank("C5", "left batching dimension", lb, lhs.rank());
    cx.in_rank("C6", "left contracting dimension", lc, lhs.rank());
    cx.in_rank("C7", "right batching dimension", rb, rhs.rank());
    cx.in_rank("C8", "right contracting dimension", rc, rhs.rank());
    if cx.is_broken() {
        return None;
    }
    for (label, left, right) in [("C9", lb, rb), ("C10", lc, rc)] {
        for (l, r) in left.iter().zip(right) {
            cx.check(compatible::same_size(at(lhs, *l), at(rhs, *r)), label, || {
                format!("dimension {l} of {lhs} is not dimension {r} of {rhs}")
            });
        }
    }
    let mut shape: Vec<Dim> =
        lb.iter().zip(rb).map(|(l, r)| compatible::meet(at(lhs, *l), at(rhs, *r))).collect();
    shape.extend(rest(lhs, [lb, lc]));
    shape.extend(rest(rhs, [rb, rc]));
    Some(shape)
}

/// At most one precision for each operand.
pub(super) fn check_precision(cx: &mut Cx<'_>, label: &'static str) {
    if let Some(count) = cx.attr("precision_config").and_then(|config| config.as_array()).map(<[_]>::len) {
        cx.check(count <= 2, label, || format!("precision_config has {count} entries for 2 operands"));
    }
}

fn dot_general(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let (lhs, rhs) = (cx.tensor(0)?, cx.tensor(1)?);
    let Attribute::Dot(dims) = cx.attr("dot_dimension_numbers")? else { return None };
    check_precision(cx, "C11");
    if let Some(Attribute::DotAlgorithm(asked)) = cx.attr("algorithm") {
        let precisions = cx.attr("precision_config").and_then(Attribute::as_array).unwrap_or(&[]);
        let default = |attr: &Attribute| attr.as_enum::<Precision>() == Some(Precision::Default);
        cx.check(precisions.iter().all(default), "C21", || {
            "with an algorithm, the precision must be DEFAULT".to_owned()
        });
        algorithm::check(cx, asked);
    }
    let shape = dot_shape(cx, lhs, rhs, dims);
    check_dot_elements(cx, lhs, rhs, dims);
    cx.gives_shape("C12", lhs, shape?)
}

/// The constraints on quantized operands and results of a dot.
fn check_dot_elements(cx: &mut Cx<'_>, lhs: &TensorType, rhs: &TensorType, dims: &DotDims) {
    let Some(result) = cx.result(0) else { return };
    if ![lhs, rhs, result].iter().any(|tensor| tensor.element().is_quantized()) {
        return;
    }
    if let Some(right) = rhs.element().quantized() {
        let zero = right.parameters.iter().all(|parameters| parameters.zero_point == 0);
        cx.check(zero, "C15", || format!("the zero points of {rhs} are not all 0"));
    }
    let contracted = axis(rhs).is_some_and(|axis| dims.rhs_contracting.contains(&(axis as i64)));
    cx.check(!contracted, "C16", || format!("the quantization dimension of {rhs} is contracted"));
    cx.quantized_contraction(["C14", "C17", "C18", "C19", "C20"], lhs, rhs, result);
}

fn dot(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let (lhs, rhs) = (cx.tensor(0)?, cx.tensor(1)?);
    check_precision(cx, "C11");
    let ranked = (1..=2).contains(&lhs.rank()) && (1..=2).contains(&rhs.rank());
    if !cx.check(ranked, "C1", || format!("{lhs} and {rhs} are not vectors or matrices")) {
        return None;
    }
    let dims = DotDims {
        lhs_contracting: vec![lhs.rank() as i64 - 1],
        rhs_contracting: vec![0],
        ..DotDims::default()
    };
    let shape = dot_shape(cx, lhs, rhs, &dims)?;
    check_dot_elements(cx, lhs, rhs, &dims);
    cx.gives_shape("C12", lhs, shape)
}

/// The size of a dimension after dilation and padding, and how many windows fit.
pub(super) fn windows(size: i64, window: i64, stride: i64, pad: (i64, i64), dilations: (i64, i64)) -> i64 {
    let dilated = |size: i64, dilation: i64| {
        if size == 0 { 0 } else { (i128::from(size) - 1) * i128::from(dilation) + 1 }
    };
    let base = dilated(size, dilations.0) + i128::from(pad.0) + i128::from(pad.1);
    let window = dilated(window, dilations.1);
    if base <= 0 || window > base {
        return 0;
    }
    i64::try_from((base - window) / i128::from(stride) + 1).unwrap_or(i64::MAX)
}

/// What a convolution does along its spatial dimensions.
struct Window {
    strides: Vec<i64>,
    /// `None` when it is an operand whose values are not known.
    padding: Option<Vec<(i64, i64)>>,
    lhs_dilation: Vec<i64>,
    rhs_dilation: Vec<i64>,
}

/// A positive number for each spatial dimension, ones where it is left out.
fn per_spatial(cx: &mut Cx<'_>, name: &str, spatial: usize, labels: [&'static str; 2]) -> Option<Vec<i64>> {
    let values = cx.per_dim(name, spatial, 1, labels[0])?;
    cx.check(values.iter().all(|value| *value > 0), labels[1], || {
        format!("{name} {values:?} is not positive")
    });
    Some(values)
}

fn window(cx: &mut Cx<'_>, rhs: &TensorType, dims: &ConvDims) -> Option<Window> {
    let spatial = dims.kernel_spatial.len();
    let padding = if cx.def().attr("padding").is_some() {
        Some(cx.pairs("padding", spatial, "C4")?)
    } else {
        let shape = cx.tensor(2)?.shape_usize()?;
        if !cx.check(shape == [spatial, 2], "C4", || format!("the padding has the shape {shape:?}")) {
            return None;
        }
        let known = cx.constant_ints(2);
        // What the other attributes of a dynamic convolution say counts once the padding is known.
        if known.is_none() {
            let ones = vec![1; spatial];
            let (lhs_dilation, rhs_dilation) = (ones.clone(), ones.clone());
            return Some(Window { strides: ones, padding: None, lhs_dilation, rhs_dilation });
        }
        known.map(|values| values.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect())
    };
    let strides = per_spatial(cx, "window_strides", spatial, ["C2", "C3"])?;
    let lhs_dilation = per_spatial(cx, "lhs_dilation", spatial, ["C5", "C6"])?;
    let rhs_dilation = per_spatial(cx, "rhs_dilation", spatial, ["C7", "C8"])?;
    if let Some(reversal) = cx.attr("window_reversal").and_then(|attr| attr.as_bools())
        && !reversal.is_empty()
    {
        cx.same_count("C9", "window_reversal", reversal.len(), spatial);
    }
    for axis in &dims.kernel_spatial {
        cx.check(at(rhs, *axis).size() != Some(0), "C25", || format!("dimension {axis} of {rhs} is empty"));
    }
    Some(Window { strides, padding, lhs_dilation, rhs_dilation })
}

/// The dimension numbers name each dimension once.
fn check_numbers(cx: &mut Cx<'_>, dims: &ConvDims, rank: usize) {
    let spatial = rank - 2;
    for (labels, list, named) in [
        (["C12", "C13"], &dims.input_spatial, [dims.input_batch, dims.input_feature]),
        (["C17", "C18"], &dims.kernel_spatial, [dims.kernel_input_feature, dims.kernel_output_feature]),
        (["C19", "C20"], &dims.output_spatial, [dims.output_batch, dims.output_feature]),
    ] {
        cx.same_count(labels[0], "spatial dimensions", list.len(), spatial);
        let all = [list.as_slice(), &named].concat();
        cx.unique(labels[1], "dimension numbers", &all);
        cx.in_rank(labels[1], "a dimension number", &all, rank);
    }
}

/// Batches and features can be divided into groups.
fn check_groups(cx: &mut Cx<'_>, lhs: &TensorType, rhs: &TensorType, dims: &ConvDims, groups: (i64, i64)) {
    let multiple = |dim: Dim, of: i64| dim.size().is_none_or(|size| size % (of as u64) == 0);
    let (batch, features) = (at(lhs, dims.input_batch), at(lhs, dims.input_feature));
    let (taken, made) = (at(rhs, dims.kernel_input_feature), at(rhs, dims.kernel_output_feature));
    cx.check(multiple(batch, groups.1), "C10", || "the batch is no multiple of batch_group_count".to_owned());
    cx.check(multiple(features, groups.0), "C11", || {
        "the input features are no multiple of feature_group_count".to_owned()
    });
    if let (Some(features), Some(taken)) = (features.size(), taken.size()) {
        let expected = features / groups.0 as u64;
        cx.check(taken == expected, "C14", || format!("the kernel takes {taken} features, not {expected}"));
    }
    cx.check(multiple(made, groups.1), "C15", || {
        "the output features are no multiple of batch_group_count".to_owned()
    });
    cx.check(multiple(made, groups.0), "C16", || {
        "the output features are no multiple of feature_group_count".to_owned()
    });
}

/// What is asked of the elements.
fn check_conv_elements(cx: &mut Cx<'_>, lhs: &TensorType, rhs: &TensorType, dims: &ConvDims) {
    let Some(result) = cx.result(0) else { return };
    if ![lhs, rhs, result].iter().any(|tensor| tensor.element().is_quantized()) {
        cx.same_elements("C27", "the operands", lhs, rhs);
        return;
    }
    let named = |tensor: &TensorType, wanted: i64| axis(tensor).is_none_or(|axis| axis as i64 == wanted);
    cx.check(named(rhs, dims.kernel_output_feature), "C29", || {
        format!("the scales of {rhs} are not along its output features")
    });
    cx.check(named(result, dims.output_feature), "C30", || {
        format!("the scales of {result} are not along its features")
    });
    cx.quantized_contraction(["C28", "C31", "C32", "C33", "C34"], lhs, rhs, result);
}

fn convolution(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let (lhs, rhs) = (cx.tensor(0)?, cx.tensor(1)?);
    let Attribute::Conv(dims) = cx.attr("dimension_numbers")? else { return None };
    let rank = lhs.rank();
    cx.same_count("C1", "the rank of the kernel", rhs.rank(), rank);
    if !cx.check(rank >= 2, "C13", || format!("{lhs} has no batch and feature dimension")) || cx.is_broken() {
        return None;
    }
    check_conv_elements(cx, lhs, rhs, dims);
    check_numbers(cx, dims, rank);
    let groups = (cx.i64("feature_group_count")?, cx.i64("batch_group_count")?);
    cx.check(groups.0 > 0, "C21", || format!("feature_group_count {} is not positive", groups.0));
    cx.check(groups.1 > 0, "C22", || format!("batch_group_count {} is not positive", groups.1));
    cx.check(groups.0 == 1 || groups.1 == 1, "C23", || {
        "only one of the group counts may exceed 1".to_owned()
    });
    check_precision(cx, "C24");
    if cx.is_broken() {
        return None;
    }
    check_groups(cx, lhs, rhs, dims, groups);
    let window = window(cx, rhs, dims)?;
    if cx.is_broken() {
        return None;
    }
    let shape = conv_shape(lhs, rhs, dims, groups.1 as u64, &window)?;
    if cx.def().kind == OpKind::DynamicConv && cx.result(0).is_some() {
        // The shape of the result is what it turns out to be.
        return None;
    }
    cx.gives_shape("C25", lhs, shape)
}

fn conv_shape(
    lhs: &TensorType,
    rhs: &TensorType,
    dims: &ConvDims,
    batch_groups: u64,
    window: &Window,
) -> Option<Vec<Dim>> {
    let mut shape = vec![Dim::Dynamic; lhs.rank()];
    let batch = at(lhs, dims.input_batch).size();
    *shape.get_mut(dims.output_batch as usize)? =
        batch.map_or(Dim::Dynamic, |size| Dim::Static(size / batch_groups));
    *shape.get_mut(dims.output_feature as usize)? = at(rhs, dims.kernel_output_feature);
    for (index, axis) in dims.output_spatial.iter().enumerate() {
        let size = at(lhs, dims.input_spatial[index]).size();
        let kernel = at(rhs, dims.kernel_spatial[index]).size();
        if let (Some(size), Some(kernel), Some(padding)) = (size, kernel, &window.padding) {
            let (size, kernel) = (i64::try_from(size).ok()?, i64::try_from(kernel).ok()?);
            let dilations = (window.lhs_dilation[index], window.rhs_dilation[index]);
            let count = windows(size, kernel, window.strides[index], padding[index], dilations);
            *shape.get_mut(*axis as usize)? = Dim::Static(count as u64);
        }
    }
    Some(shape)
}

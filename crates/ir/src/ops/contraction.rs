//! Dots and convolutions.

use crate::attr::{Attribute, DotDims, Precision};
use crate::table::Trait::{Deprecated, Pure};
use crate::table::{Entry, OpKind, op};
use crate::types::{Dim, TensorType, Type};
use crate::verify::{Cx, compatible};

const CONVOLUTION_ATTRS: &str = "window_strides?: i64s, padding?: rows, lhs_dilation?: i64s, rhs_dilation?: i64s, \
     window_reversal?: bools, dimension_numbers: conv, feature_group_count: i64, batch_group_count: i64, \
     precision_config?: enums precision";
const DYNAMIC_CONV_ATTRS: &str = "window_strides?: i64s, lhs_dilation?: i64s, rhs_dilation?: i64s, \
     window_reversal?: bools, dimension_numbers: conv, feature_group_count: i64, batch_group_count: i64, \
     precision_config?: enums precision";

pub(super) const ENTRIES: &[Entry] = &[
    op(OpKind::Convolution)
        .values("lhs: tensor, rhs: tensor", "result: tensor")
        .attrs(CONVOLUTION_ATTRS)
        .text("($lhs, $rhs) dim_numbers = {conv_dims}, window = {window}{attrs} : {fn}")
        .is(&[Pure])
        .rule(convolution)
        .doc("Dot products of a kernel with windows of the input."),
    op(OpKind::Dot)
        .values("lhs: tensor, rhs: tensor", "result: tensor")
        .attrs("precision_config?: enums precision")
        .text("$lhs, $rhs{precision}{attrs} : {fn}")
        .is(&[Pure, Deprecated])
        .rule(dot)
        .doc("Product of vectors and matrices over the last and the first dimension."),
    op(OpKind::DotGeneral)
        .values("lhs: tensor, rhs: tensor", "result: tensor")
        .attrs("dot_dimension_numbers: dot, precision_config?: enums precision, algorithm?: algorithm")
        .text("$lhs, $rhs, {dot_dims}{precision}{algorithm}{attrs} : {fn}")
        .is(&[Pure])
        .rule(dot_general)
        .doc("Sums of products over contracting dimensions, for each index of the batching dimensions."),
    op(OpKind::DynamicConv)
        .values("lhs: tensor, rhs: tensor, padding: int", "result: tensor")
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
            let (a, b) = (lhs.dims()[*l as usize], rhs.dims()[*r as usize]);
            cx.check(a.compatible(b), label, || {
                format!("dimension {l} of {lhs} is not dimension {r} of {rhs}")
            });
        }
    }
    let batch =
        lb.iter().zip(rb).map(|(l, r)| compatible::meet(lhs.dims()[*l as usize], rhs.dims()[*r as usize]));
    let mut shape: Vec<Dim> = batch.collect();
    shape.extend(rest(lhs, [lb, lc]));
    shape.extend(rest(rhs, [rb, rc]));
    Some(shape)
}

fn check_precision(cx: &mut Cx<'_>, label: &'static str) {
    if let Some(count) = cx.attr("precision_config").and_then(|config| config.as_array()).map(<[_]>::len) {
        cx.check(count == 0 || count == 2, label, || format!("precision_config has {count} entries, not 2"));
    }
}

/// Holds the result against a shape; its elements are free to be wider than those of the operands.
fn check_shape(cx: &mut Cx<'_>, label: &'static str, lhs: &TensorType, shape: Vec<Dim>) -> Option<Vec<Type>> {
    let inferred = lhs.with_dims(shape);
    match cx.result(0) {
        Some(result) => {
            cx.same_shape(label, "the result and what is inferred", result, &inferred);
            None
        }
        None => Some(vec![Type::Tensor(inferred)]),
    }
}

fn dot_general(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let (lhs, rhs) = (cx.tensor(0)?, cx.tensor(1)?);
    let Attribute::Dot(dims) = cx.attr("dot_dimension_numbers")? else { return None };
    check_precision(cx, "C11");
    if let Some(Attribute::DotAlgorithm(algorithm)) = cx.attr("algorithm") {
        let precisions = cx.attr("precision_config").and_then(Attribute::as_array).unwrap_or(&[]);
        let default = |attr: &Attribute| attr.as_enum::<Precision>() == Some(Precision::Default);
        let all_default = precisions.iter().all(default);
        cx.check(all_default, "C22", || "with an algorithm, the precision must be DEFAULT".to_owned());
        for (label, count) in [
            ("C29", algorithm.lhs_component_count),
            ("C30", algorithm.rhs_component_count),
            ("C31", algorithm.num_primitive_operations),
        ] {
            cx.check(count > 0, label, || format!("a count of the algorithm is {count}, not positive"));
        }
    }
    let shape = dot_shape(cx, lhs, rhs, dims)?;
    check_shape(cx, "C12", lhs, shape)
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
    check_shape(cx, "C12", lhs, shape)
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

/// A positive number for each spatial dimension, ones where it is left out.
fn per_spatial(cx: &mut Cx<'_>, name: &str, spatial: usize, labels: [&'static str; 2]) -> Option<Vec<i64>> {
    // Exporters write more strides than there are dimensions for a `dynamic_conv`, and every reader lets them.
    let surplus = cx.i64s(name).filter(|list| cx.def().kind == OpKind::DynamicConv && list.len() > spatial);
    let values = match surplus {
        Some(list) => list[..spatial].to_vec(),
        None => cx.per_dim(name, spatial, 1, labels[0])?,
    };
    cx.check(values.iter().all(|value| *value > 0), labels[1], || {
        format!("{name} {values:?} is not positive")
    });
    Some(values)
}

fn convolution(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let (lhs, rhs) = (cx.tensor(0)?, cx.tensor(1)?);
    let Attribute::Conv(dims) = cx.attr("dimension_numbers")? else { return None };
    let rank = lhs.rank();
    cx.same_count("C1", "the rank of the kernel", rhs.rank(), rank);
    if !cx.check(rank >= 2, "C1", || format!("{lhs} has no batch and feature dimension")) || cx.is_broken() {
        return None;
    }
    let spatial = rank - 2;
    let strides = per_spatial(cx, "window_strides", spatial, ["C2", "C3"])?;
    let lhs_dilation = per_spatial(cx, "lhs_dilation", spatial, ["C5", "C6"])?;
    let rhs_dilation = per_spatial(cx, "rhs_dilation", spatial, ["C7", "C8"])?;
    if let Some(reversal) = cx.attr("window_reversal").and_then(|attr| attr.as_bools()) {
        cx.same_count("C9", "window_reversal", reversal.len(), spatial);
    }
    let groups = (cx.i64("feature_group_count")?, cx.i64("batch_group_count")?);
    for (label, list, named) in [
        ("C13", &dims.input_spatial, [dims.input_batch, dims.input_feature]),
        ("C18", &dims.kernel_spatial, [dims.kernel_input_feature, dims.kernel_output_feature]),
        ("C20", &dims.output_spatial, [dims.output_batch, dims.output_feature]),
    ] {
        cx.same_count(label, "spatial dimensions", list.len(), spatial);
        let all = [list.as_slice(), &named].concat();
        cx.unique(label, "dimension numbers", &all);
        cx.in_rank(label, "a dimension number", &all, rank);
    }
    cx.check(groups.0 > 0, "C21", || format!("feature_group_count {} is not positive", groups.0));
    cx.check(groups.1 > 0, "C22", || format!("batch_group_count {} is not positive", groups.1));
    cx.check(groups.0 == 1 || groups.1 == 1, "C23", || {
        "only one of the group counts may exceed 1".to_owned()
    });
    check_precision(cx, "C24");
    if cx.is_broken() {
        return None;
    }
    let at = |tensor: &TensorType, axis: i64| tensor.dims()[axis as usize];
    let multiple = |dim: Dim, of: i64| dim.size().is_none_or(|size| size % (of as u64) == 0);
    let (input_batch, input_feature) = (at(lhs, dims.input_batch), at(lhs, dims.input_feature));
    let (kernel_in, kernel_out) = (at(rhs, dims.kernel_input_feature), at(rhs, dims.kernel_output_feature));
    cx.check(multiple(input_batch, groups.1), "C10", || {
        "the batch is no multiple of batch_group_count".to_owned()
    });
    cx.check(multiple(input_feature, groups.0), "C11", || {
        "the input features are no multiple of feature_group_count".to_owned()
    });
    if let (Some(features), Some(kernel)) = (input_feature.size(), kernel_in.size()) {
        let expected = features / groups.0 as u64;
        cx.check(kernel == expected, "C14", || format!("the kernel takes {kernel} features, not {expected}"));
    }
    cx.check(multiple(kernel_out, groups.1), "C15", || {
        "the output features are no multiple of batch_group_count".to_owned()
    });
    cx.check(multiple(kernel_out, groups.0), "C16", || {
        "the output features are no multiple of feature_group_count".to_owned()
    });
    let padding =
        if cx.def().attr("padding").is_some() { Some(cx.pairs("padding", spatial, "C4")?) } else { None };
    let mut shape = vec![Dim::Dynamic; rank];
    shape[dims.output_batch as usize] =
        input_batch.size().map_or(Dim::Dynamic, |size| Dim::Static(size / groups.1 as u64));
    shape[dims.output_feature as usize] = kernel_out;
    for index in 0..spatial {
        let size = at(lhs, dims.input_spatial[index]).size();
        let window = at(rhs, dims.kernel_spatial[index]).size();
        if let (Some(size), Some(window), Some(padding)) = (size, window, &padding) {
            let dilations = (lhs_dilation[index], rhs_dilation[index]);
            let (size, window) = (i64::try_from(size).ok()?, i64::try_from(window).ok()?);
            let count = windows(size, window, strides[index], padding[index], dilations);
            shape[dims.output_spatial[index] as usize] = Dim::Static(count as u64);
        }
    }
    check_shape(cx, "C26", lhs, shape)
}

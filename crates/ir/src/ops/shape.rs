//! Operations that move, repeat, cut and join elements without computing on them.

use crate::table::Trait::{Deprecated, Elementwise, Pure, Unspecified};
use crate::table::{Entry, OpKind, op};
use crate::types::{Dim, ElementType, TensorType, Type};
use crate::verify::{Cx, compatible};

const OPERANDS_FN: &str = "$operand{attrs} : {fn}";
const SHAPED: &str = "$operand, $output_shape{attrs} : {fn}";

pub(super) const ENTRIES: &[Entry] = &[
    op(OpKind::BitcastConvert)
        .values("operand: tensor", "result: tensor")
        .text(OPERANDS_FN)
        .is(&[Pure])
        .rule(bitcast_convert).doc("The same bits as another element type; a narrower one adds a last dimension."),
    op(OpKind::Broadcast)
        .values("operand: tensor", "result: tensor")
        .attrs("broadcast_sizes: i64s")
        .text("$operand, sizes = $broadcast_sizes{attrs} : {fn}")
        .is(&[Pure, Deprecated])
        .rule(broadcast).doc("Repeats the operand along new leading dimensions."),
    op(OpKind::BroadcastInDim)
        .values("operand: tensor", "result: tensor")
        .attrs("broadcast_dimensions: i64s")
        .text("$operand, dims = $broadcast_dimensions{attrs} : {fn}")
        .is(&[Pure])
        .rule(broadcast_in_dim).doc("Repeats the operand along new dimensions and along its dimensions of size one."),
    op(OpKind::Concatenate)
        .values("inputs*: tensor", "result: tensor")
        .attrs("dimension: i64")
        .text("$inputs, dim = $dimension{attrs} : {fn}")
        .is(&[Pure])
        .rule(concatenate).doc("Joins tensors along a dimension."),
    op(OpKind::Constant)
        .values("", "output: tensor")
        .attrs("value: elements")
        .text("custom")
        .is(&[Pure])
        .rule(constant).doc("A constant tensor."),
    op(OpKind::DynamicBroadcastInDim)
        .values("operand: tensor, output_dimensions: 1d int|index", "result: tensor")
        .attrs(
            "broadcast_dimensions: i64s, known_expanding_dimensions?: i64s, known_nonexpanding_dimensions?: i64s",
        )
        .text("$operand, $output_dimensions, dims = $broadcast_dimensions{attrs} : {fn}")
        .is(&[Pure])
        .rule(dynamic_broadcast_in_dim).doc("As `broadcast_in_dim`, with the result's shape given by an operand."),
    op(OpKind::DynamicIota)
        .values("output_shape: 1d int|index", "result: int|float|complex|quant")
        .attrs("iota_dimension: i64")
        .text("$output_shape, dim = $iota_dimension{attrs} : {fn}")
        .is(&[Pure])
        .rule(dynamic_iota).doc("As `iota`, with the result's shape given by an operand."),
    op(OpKind::DynamicPad)
        .values(
            "operand: tensor, padding_value: 0d tensor, edge_padding_low: 1d int|index, edge_padding_high: 1d int|index, interior_padding: 1d int|index",
            "result: tensor",
        )
        .text("$operand, $padding_value, $edge_padding_low, $edge_padding_high, $interior_padding{attrs} : {fn}")
        .is(&[Pure])
        .rule(dynamic_pad).doc("As `pad`, with the amounts given by operands."),
    op(OpKind::DynamicReshape)
        .values("operand: tensor, output_shape: 1d int|index", "result: tensor")
        .text(SHAPED)
        .is(&[Pure])
        .rule(dynamic_reshape).doc("As `reshape`, with the result's shape given by an operand."),
    op(OpKind::DynamicSlice)
        .values("operand: tensor, start_indices*: 0d int", "result: tensor")
        .attrs("slice_sizes: i64s")
        .text("$operand, $start_indices, sizes = $slice_sizes{attrs} : {fn}")
        .is(&[Pure])
        .rule(dynamic_slice).doc("Cuts out a part of fixed size that starts where operands say."),
    op(OpKind::DynamicUpdateSlice)
        .values("operand: tensor, update: tensor, start_indices*: 0d int", "result: tensor")
        .text("$operand, $update, $start_indices{attrs} : {fn}")
        .is(&[Pure])
        .rule(dynamic_update_slice).doc("Replaces a part of the operand that starts where operands say."),
    op(OpKind::GetDimensionSize)
        .values("operand: tensor", "result: 0d int")
        .attrs("dimension: i64")
        .text("$operand, dim = $dimension{attrs} : {fn}")
        .is(&[Pure])
        .rule(get_dimension_size).doc("The size of a dimension as a scalar."),
    op(OpKind::Iota)
        .values("", "output: int|float|complex|quant")
        .attrs("iota_dimension: i64")
        .text("dim = $iota_dimension{attrs} : {results}")
        .is(&[Pure])
        .rule(iota).doc("Counts from zero along a dimension."),
    op(OpKind::Pad)
        .values("operand: tensor, padding_value: 0d tensor", "result: tensor")
        .attrs("edge_padding_low: i64s, edge_padding_high: i64s, interior_padding: i64s")
        .text(
            "$operand, $padding_value, low = $edge_padding_low, high = $edge_padding_high, interior = $interior_padding{attrs} : {fn}",
        )
        .is(&[Pure])
        .rule(pad).doc("Adds elements at both ends and between elements; a negative amount takes away."),
    op(OpKind::RealDynamicSlice)
        .values(
            "operand: tensor, start_indices: 1d int|index, limit_indices: 1d int|index, strides: 1d int|index",
            "result: tensor",
        )
        .text("$operand, $start_indices, $limit_indices, $strides{attrs} : {fn}")
        .is(&[Pure, Deprecated])
        .rule(real_dynamic_slice).doc("As `slice`, with starts, limits and strides given by operands."),
    op(OpKind::Reshape)
        .values("operand: tensor", "result: tensor")
        .text(OPERANDS_FN)
        .is(&[Pure])
        .rule(reshape).doc("The same elements in the same order under another shape."),
    op(OpKind::Reverse)
        .values("operand: tensor", "result: tensor")
        .attrs("dimensions: i64s")
        .text("$operand, dims = $dimensions{attrs} : {same}")
        .is(&[Pure])
        .rule(reverse).doc("Reverses the order along dimensions."),
    op(OpKind::SetDimensionSize)
        .values("operand: tensor, size: 0d int", "result: tensor")
        .attrs("dimension: i64")
        .text("$operand, $size, dim = $dimension{attrs} : {fn}")
        .is(&[Pure, Unspecified])
        .rule(set_dimension_size).doc("Makes a dimension dynamic with a given size and its old size as the bound."),
    op(OpKind::Slice)
        .values("operand: tensor", "result: tensor")
        .attrs("start_indices: i64s, limit_indices: i64s, strides: i64s")
        .text("$operand {slices}{attrs} : {fn}")
        .is(&[Pure])
        .rule(slice).doc("Cuts out a part, with strides."),
    op(OpKind::Transpose)
        .values("operand: tensor", "result: tensor")
        .attrs("permutation: i64s")
        .text("$operand, dims = $permutation{attrs} : {fn}")
        .is(&[Pure])
        .rule(transpose).doc("Permutes the dimensions."),
    op(OpKind::OptimizationBarrier)
        .values("operand*: tensor|token|tuple|buffer", "result*: tensor|token|tuple|buffer")
        .text("custom")
        .is(&[Pure, Elementwise])
        .rule(barrier).doc("The operands unchanged, all computed before anything that uses one."),
];

fn size_of(dim: i64) -> Dim {
    u64::try_from(dim).map_or(Dim::Dynamic, Dim::Static)
}

fn bitcast_convert(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let (operand, result) = (cx.tensor(0)?, cx.result(0)?);
    let (from, to) = (operand.element().storage()?, result.element().storage()?);
    cx.check(from.is_complex() == to.is_complex(), "C2", || {
        format!("{operand} and {result}: bits of complex numbers are only those of complex numbers")
    });
    let (from, to) = (from.bits(), to.bits());
    let (wide, narrow, factor) = match from.cmp(&to) {
        std::cmp::Ordering::Equal => {
            cx.same_shape("C1", "the operand and the result", operand, result);
            return None;
        }
        std::cmp::Ordering::Less => (result, operand, to.checked_div(from)?),
        std::cmp::Ordering::Greater => (operand, result, from.checked_div(to)?),
    };
    let divides = from.max(to) % from.min(to) == 0;
    let last = narrow.dims().last().copied();
    let fits = narrow.rank() == wide.rank() + 1
        && last.is_some_and(|dim| dim.compatible(Dim::Static(u64::from(factor))))
        && compatible::dims(wide.dims(), &narrow.dims()[..wide.rank()]);
    cx.check(divides && fits, "C1", || format!("{operand} and {result} do not have the same bits"));
    None
}

fn broadcast(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let (operand, sizes) = (cx.tensor(0)?, cx.i64s("broadcast_sizes")?);
    if !cx.check(sizes.iter().all(|s| *s >= 0), "C1", || format!("a size of {sizes:?} is negative")) {
        return None;
    }
    let dims = sizes.iter().map(|s| size_of(*s)).chain(operand.dims().iter().copied()).collect();
    cx.gives_like("C2", operand, dims)
}

/// The mapping of an operand's dimensions to those of a result they are repeated in.
fn check_broadcast(cx: &mut Cx<'_>, operand: &TensorType, result: &TensorType) {
    cx.same_elements("C1", "the operand and the result", operand, result);
    let Some(dims) = cx.i64s("broadcast_dimensions") else { return };
    cx.same_count("C2", "broadcast_dimensions", dims.len(), operand.rank());
    cx.unique("C4", "broadcast_dimensions", dims);
    if !cx.in_rank("C3", "broadcast_dimensions", dims, result.rank()) {
        return;
    }
    for (&size, &target) in operand.dims().iter().zip(dims) {
        let into = result.dims()[target as usize];
        let fits = size == Dim::Static(1) || size.compatible(into);
        cx.check(fits, "C5", || {
            format!("a dimension of size {size} cannot become dimension {target} of {result}")
        });
    }
}

fn broadcast_in_dim(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let (operand, result) = (cx.tensor(0)?, cx.result(0)?);
    check_broadcast(cx, operand, result);
    None
}

fn dynamic_broadcast_in_dim(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let (operand, shape, result) = (cx.tensor(0)?, cx.tensor(1)?, cx.result(0)?);
    check_broadcast(cx, operand, result);
    check_shape_operand(cx, "C7", shape, result);
    let known: Vec<i64> = ["known_expanding_dimensions", "known_nonexpanding_dimensions"]
        .iter()
        .flat_map(|name| cx.i64s(name).unwrap_or(&[]).iter().copied())
        .collect();
    cx.unique("C8", "the known dimensions", &known);
    cx.in_rank("C9", "a known dimension", &known, operand.rank());
    None
}

/// An operand that gives a shape has one element for each dimension of the result.
fn check_shape_operand(cx: &mut Cx<'_>, label: &'static str, shape: &TensorType, result: &TensorType) {
    let fits = shape.rank() == 1 && shape.dims()[0].compatible(Dim::Static(result.rank() as u64));
    cx.check(fits, label, || {
        format!("{shape} does not give the shape of a tensor of rank {}", result.rank())
    });
}

fn concatenate(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let inputs = cx.tensors(0..cx.operands().len())?;
    let dimension = cx.i64("dimension")?;
    let Some(&first) = inputs.first() else {
        cx.fail("C3", "there must be at least one input");
        return None;
    };
    if !cx.in_rank("C4", "the dimension", &[dimension], first.rank()) {
        return None;
    }
    let axis = dimension as usize;
    let mut dims = first.dims().to_vec();
    for input in &inputs[1..] {
        cx.same_elements("C1", "the inputs", first, input);
        let same = input.rank() == first.rank()
            && (0..dims.len()).all(|d| d == axis || dims[d].compatible(input.dims()[d]));
        if !cx.check(same, "C2", || format!("{first} and {input} differ in more than dimension {axis}")) {
            return None;
        }
        for (d, dim) in dims.iter_mut().enumerate().filter(|(d, _)| *d != axis) {
            *dim = compatible::meet(*dim, input.dims()[d]);
        }
    }
    let sizes = inputs.iter().map(|input| input.dims()[axis]);
    dims[axis] = sizes
        .reduce(|a, b| match (a.size(), b.size(), a.bound(), b.bound()) {
            (Some(a), Some(b), ..) => a.checked_add(b).map_or(Dim::Dynamic, Dim::Static),
            (.., Some(a), Some(b)) => a.checked_add(b).map_or(Dim::Dynamic, Dim::Bounded),
            _ => Dim::Dynamic,
        })
        .unwrap_or(Dim::Dynamic);
    cx.gives_like("C6", first, dims)
}

fn constant(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let value = cx.attr("value")?.as_elements()?.ty().clone();
    match cx.result(0) {
        // The value of a quantized constant is in its storage or its expressed type.
        Some(result) if result.element().is_quantized() => {
            cx.same_shape("C1", "the value and the result", &value, result);
            None
        }
        _ => cx.gives("C1", vec![Type::Tensor(value)]),
    }
}

fn iota(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let (dimension, result) = (cx.i64("iota_dimension")?, cx.result(0)?);
    cx.in_rank("C1", "iota_dimension", &[dimension], result.rank());
    None
}

fn dynamic_iota(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let (shape, result) = (cx.tensor(0)?, cx.result(0)?);
    check_shape_operand(cx, "C2", shape, result);
    iota(cx)
}

fn pad(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let (operand, value) = (cx.tensor(0)?, cx.tensor(1)?);
    let (low, high) = (cx.i64s("edge_padding_low")?, cx.i64s("edge_padding_high")?);
    let interior = cx.i64s("interior_padding")?;
    cx.same_elements("C1", "the operand and the padding value", operand, value);
    for amounts in [low, high, interior] {
        if !cx.same_count("C2", "the amounts of padding", amounts.len(), operand.rank()) {
            return None;
        }
    }
    cx.check(interior.iter().all(|i| *i >= 0), "C3", || format!("interior_padding {interior:?} is negative"));
    let mut dims = Vec::new();
    for (axis, dim) in operand.dims().iter().enumerate() {
        let padded = |size: u64| {
            let size = i128::from(size);
            size + i128::from(low[axis])
                + i128::from(high[axis])
                + (size - 1).max(0) * i128::from(interior[axis])
        };
        let Some(bound) = dim.bound() else {
            dims.push(Dim::Dynamic);
            continue;
        };
        let size = padded(bound);
        if !cx.check(size >= 0, "C4", || format!("dimension {axis} of {operand} would have the size {size}"))
        {
            return None;
        }
        let size = u64::try_from(size).ok()?;
        dims.push(if dim.is_static() { Dim::Static(size) } else { Dim::Bounded(size) });
    }
    cx.gives_like("C4", operand, dims)
}

fn dynamic_pad(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let (operand, value) = (cx.tensor(0)?, cx.tensor(1)?);
    cx.same_elements("C1", "the operand and the padding value", operand, value);
    for index in 2..5 {
        let amounts = cx.tensor(index)?;
        check_shape_operand(cx, "C2", amounts, operand);
    }
    let result = cx.result(0)?;
    cx.same_elements("C1", "the operand and the result", operand, result);
    cx.same_count("C4", "the rank of the result", result.rank(), operand.rank());
    None
}

fn reshape(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let (operand, result) = (cx.tensor(0)?, cx.result(0)?);
    cx.same_elements("C1", "the operand and the result", operand, result);
    if let (Some(from), Some(to)) = (operand.element_count(), result.element_count()) {
        cx.check(from == to, "C2", || format!("{operand} has {from} elements and {result} has {to}"));
    }
    None
}

fn dynamic_reshape(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let (shape, result) = (cx.tensor(1)?, cx.result(0)?);
    check_shape_operand(cx, "C4", shape, result);
    reshape(cx)
}

fn reverse(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let (operand, dims) = (cx.tensor(0)?, cx.i64s("dimensions")?);
    cx.unique("C2", "dimensions", dims);
    cx.in_rank("C3", "dimensions", dims, operand.rank());
    cx.gives("C1", vec![Type::Tensor(operand.clone())])
}

fn slice(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let operand = cx.tensor(0)?;
    let (starts, limits) = (cx.i64s("start_indices")?, cx.i64s("limit_indices")?);
    let strides = cx.i64s("strides")?;
    for list in [starts, limits, strides] {
        if !cx.same_count("C2", "starts, limits and strides", list.len(), operand.rank()) {
            return None;
        }
    }
    let mut dims = Vec::new();
    for (axis, dim) in operand.dims().iter().enumerate() {
        let (start, limit, stride) = (starts[axis], limits[axis], strides[axis]);
        let fits = 0 <= start && start <= limit && dim.bound().is_none_or(|bound| limit as u64 <= bound);
        cx.check(fits, "C3", || format!("[{start}, {limit}) is not inside dimension {axis} of {operand}"));
        cx.check(stride > 0, "C4", || format!("the stride {stride} is not positive"));
        if cx.is_broken() {
            return None;
        }
        dims.push(
            Dim::Static((limit - start) as u64)
                .size()
                .map_or(Dim::Dynamic, |length| Dim::Static(length.div_ceil(stride as u64))),
        );
    }
    cx.gives_like("C5", operand, dims)
}

fn real_dynamic_slice(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let operand = cx.tensor(0)?;
    let indices = cx.tensors(1..4)?;
    for index in &indices {
        check_shape_operand(cx, "C2", index, operand);
        cx.same_elements("C3", "starts, limits and strides", indices[0], index);
    }
    if let Some(result) = cx.result(0) {
        cx.same_elements("C1", "the operand and the result", operand, result);
        cx.same_count("C1", "the rank of the result", result.rank(), operand.rank());
    }
    None
}

fn transpose(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let (operand, permutation) = (cx.tensor(0)?, cx.i64s("permutation")?);
    let complete = cx.same_count("C2", "permutation", permutation.len(), operand.rank())
        && cx.in_rank("C2", "permutation", permutation, operand.rank())
        && cx.unique("C2", "permutation", permutation);
    if !complete {
        return None;
    }
    let dims = permutation.iter().map(|axis| operand.dims()[*axis as usize]).collect();
    if operand.element().is_quantized() {
        // The axis of the scales moves along, which the given type has to show.
        let result = cx.result(0)?;
        cx.same_shape("C3", "the permuted operand and the result", &operand.with_dims(dims), result);
        return None;
    }
    cx.gives_like("C3", operand, dims)
}

/// Start indices are scalars of one type, one for each dimension.
fn check_starts(cx: &mut Cx<'_>, first: usize, rank: usize, labels: [&'static str; 2]) {
    let count = cx.operands().len().saturating_sub(first);
    cx.same_count(labels[0], "start indices", count, rank);
    let types: Vec<&Type> = cx.operands()[first.min(cx.operands().len())..].to_vec();
    let same = types.windows(2).all(|pair| pair[0] == pair[1]);
    cx.check(same, labels[1], || "the start indices have different types".to_owned());
}

fn dynamic_slice(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let (operand, sizes) = (cx.tensor(0)?, cx.i64s("slice_sizes")?);
    check_starts(cx, 1, operand.rank(), ["C2", "C3"]);
    if !cx.same_count("C2", "slice_sizes", sizes.len(), operand.rank()) {
        return None;
    }
    for (size, dim) in sizes.iter().zip(operand.dims()) {
        let fits = *size >= 0 && dim.bound().is_none_or(|bound| *size as u64 <= bound);
        cx.check(fits, "C4", || format!("a slice of {size} is not inside a dimension of {dim}"));
    }
    cx.gives_like("C5", operand, sizes.iter().map(|s| size_of(*s)).collect())
}

fn dynamic_update_slice(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let (operand, update) = (cx.tensor(0)?, cx.tensor(1)?);
    cx.same_elements("C2", "the operand and the update", operand, update);
    check_starts(cx, 2, operand.rank(), ["C4", "C5"]);
    if cx.same_count("C3", "the rank of the update", update.rank(), operand.rank()) {
        for (part, whole) in update.dims().iter().zip(operand.dims()) {
            let fits = part.size().zip(whole.bound()).is_none_or(|(part, whole)| part <= whole);
            cx.check(fits, "C6", || format!("{update} is larger than {operand}"));
        }
    }
    cx.gives("C1", vec![Type::Tensor(operand.clone())])
}

fn get_dimension_size(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let (operand, dimension) = (cx.tensor(0)?, cx.i64("dimension")?);
    cx.in_rank("C1", "the dimension", &[dimension], operand.rank());
    cx.gives("C1", vec![Type::tensor(&[], ElementType::I32)])
}

fn set_dimension_size(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let (operand, dimension) = (cx.tensor(0)?, cx.i64("dimension")?);
    if !cx.in_rank("C1", "the dimension", &[dimension], operand.rank()) {
        return None;
    }
    let mut dims = operand.dims().to_vec();
    let dim = &mut dims[dimension as usize];
    *dim = dim.bound().map_or(Dim::Dynamic, Dim::Bounded);
    cx.gives_like("C2", operand, dims)
}

fn barrier(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let types = cx.operands().iter().map(|ty| (*ty).clone()).collect();
    cx.gives("C1", types)
}

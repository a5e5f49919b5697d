//! Gradients of pooling.

use super::super::indexing::scatter_along;
use super::super::matrix::{DotPairing, dot};
use super::super::pooling::{Windows, counts, gradient, ranges};
use super::super::prelude::*;

pub(super) const TABLE: &[Op] = &[
    op("aten._adaptive_avg_pool2d_backward.default", |cx, args| adaptive_average(cx, args, 2)),
    op("aten._adaptive_avg_pool3d_backward.default", |cx, args| adaptive_average(cx, args, 3)),
    op("aten.adaptive_max_pool2d_backward.default", |cx, args| maximum(cx, args, 2))
        .also(&["aten.max_pool2d_with_indices_backward.default"]),
    op("aten.adaptive_max_pool3d_backward.default", |cx, args| maximum(cx, args, 3))
        .also(&["aten.max_pool3d_with_indices_backward.default"]),
    op("aten.avg_pool2d_backward.default", |cx, args| average(cx, args, 2)),
    op("aten.avg_pool3d_backward.default", |cx, args| average(cx, args, 3)),
];

/// Each window's gradient is added where its largest element was; the indices say where in its plane.
fn maximum(cx: &mut Cx<'_>, args: &Args<'_>, spatial: usize) -> Lowered<Outcome> {
    let (g, x, indices) = (args.tensor("grad_output")?, args.tensor("self")?, args.tensor("indices")?);
    let forward = ["aten.max_pool2d_with_indices.default", "aten.max_pool3d_with_indices.default"];
    if args.comes_from("indices", &forward, "self") {
        let windows = Windows::read(args, &x, spatial)?;
        let g = cx.convert(&g, opmath(x.dtype))?;
        if let Some(total) = gradient(cx, &x, &windows, &g)? {
            return one(cx.convert(&total, x.dtype)?);
        }
    }
    // The indices say all that the windows would.
    args.ignore(&["kernel_size", "stride", "padding", "dilation", "ceil_mode"]);
    let Some(lead) = x.rank().checked_sub(spatial) else { return refuse("an input of too few dimensions") };
    if g.rank() != x.rank() || indices.rank() != x.rank() {
        return refuse("a gradient of another number of dimensions than the input");
    }
    let planes = Size::product(&x.dims[..lead]);
    let flat = |cx: &mut Cx<'_>, tensor: &Tensor| {
        cx.reshape(tensor, &[planes.clone(), Size::product(&tensor.dims[lead..])])
    };
    let g = cx.convert(&g, opmath(x.dtype))?;
    let (updates, places) = (flat(cx, &g)?, flat(cx, &indices)?);
    let places = cx.convert(&places, ElementType::I64)?;
    let zeros = cx.splat(g.dtype, &[planes.clone(), Size::product(&x.dims[lead..])], 0.0)?;
    let total = scatter_along(cx, &zeros, 1, &places, &updates.into(), OpKind::Add)?;
    let total = cx.reshape(&total, &x.dims)?;
    one(cx.convert(&total, x.dtype)?)
}

/// Each window's gradient, divided by how many elements it has, is added to all of them.
fn average(cx: &mut Cx<'_>, args: &Args<'_>, spatial: usize) -> Lowered<Outcome> {
    let (g, x) = (args.tensor("grad_output")?, args.tensor("self")?);
    let windows = Windows::read(args, &x, spatial)?;
    let include_padding = args.bool_or("count_include_pad", true)?;
    let divisor = args.opt_int("divisor_override")?;
    let wide = cx.convert(&g, opmath(g.dtype))?;
    let count = match divisor {
        Some(divisor) => cx.splat_like(&wide, divisor as f64)?,
        None => counts(cx, &x, &windows, include_padding, &wide)?,
    };
    let mut share = cx.div(&wide, &count)?;
    let lead = x.rank() - spatial;
    for (at, &kernel) in windows.kernel.iter().enumerate() {
        // An element gets what the windows that begin up to a kernel's length before it have.
        let stride = windows.strides[at];
        let low = kernel - 1 - windows.padding[at];
        let spread = g.dim(lead + at).sub(&Size::Int(1)).mul(&Size::Int(stride));
        let high = x.dim(lead + at).add(&Size::Int(kernel - 2 - low)).sub(&spread);
        share = cx.pad_axis(&share, lead + at, &Size::Int(low), &high, stride - 1, 0.0)?;
    }
    let dense = Windows::sliding(&windows.kernel, &x.dims[lead..]);
    let total = dense.reduce(cx, &share, OpKind::Add, Scalar::zero(share.dtype))?;
    one(cx.convert(&total, x.dtype)?)
}

/// The product with the transposed matrix of shares, along each dimension.
fn adaptive_average(cx: &mut Cx<'_>, args: &Args<'_>, spatial: usize) -> Lowered<Outcome> {
    let (g, x) = (args.tensor("grad_output")?, args.tensor("self")?);
    let Some(lead) = x.rank().checked_sub(spatial) else { return refuse("an input of too few dimensions") };
    let mut total = cx.convert(&g, opmath(g.dtype))?;
    for axis in lead..x.rank() {
        let sizes = cx.known(&[x.dim(axis), g.dim(axis)])?;
        if sizes[0] == sizes[1] {
            continue;
        }
        cx.table_length(&sizes)?;
        let windows = ranges(sizes[0], sizes[1]);
        let shares: Vec<Scalar> = windows
            .iter()
            .flat_map(|&(start, end)| {
                let share = 1.0 / (end - start) as f64;
                (0..sizes[0])
                    .map(move |at| Scalar::Float(if (start..end).contains(&at) { share } else { 0.0 }))
            })
            .collect();
        let matrix = cx.constant(total.dtype, &[windows.len(), sizes[0] as usize], shares)?;
        let product = dot(cx, &total, &matrix, &DotPairing::summing(&[axis], &[0]))?;
        let last = x.rank() - 1;
        let mut order: Vec<usize> = (0..last).collect();
        order.insert(axis, last);
        total = cx.transpose(&product, &order)?;
    }
    one(cx.convert(&total, x.dtype)?)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::super::testing::{Before, Code::F32, Code::I64, Given, Given::*, evaluated_after};

    /// The gradient of the largest of windows of 3 elements at every other place of a line, and whether windows begin with an element of padding.
    fn gradient(line: [f32; 7], padded: bool) -> Vec<f64> {
        let ints = |values: [i64; 2]| json!({"as_ints": values});
        let windows = [
            ("kernel_size", ints([1, 3])),
            ("stride", ints([1, 2])),
            ("padding", ints([0, i64::from(padded)])),
        ];
        let named = |(name, arg): &(&str, Value)| json!({"name": name, "arg": arg});
        let inputs: Vec<Value> =
            [("self", json!({"as_tensor": {"name": "x1"}}))].iter().chain(&windows).map(named).collect();
        let pooled = |name: &str| json!({"as_tensor": {"name": name}});
        let node = json!({
            "target": "torch.ops.aten.max_pool2d_with_indices.default", "inputs": inputs,
            "outputs": [pooled("values"), pooled("indices")], "name": "pool", "metadata": {}
        });
        let (before, g): (_, Given) = match padded {
            true => (
                Before { node, gives: &[("values", F32, &[1, 1, 1, 4]), ("indices", I64, &[1, 1, 1, 4])] },
                Floats(&[1, 1, 1, 4], vec![1.0, 10.0, 100.0, 1000.0]),
            ),
            false => (
                Before { node, gives: &[("values", F32, &[1, 1, 1, 3]), ("indices", I64, &[1, 1, 1, 3])] },
                Floats(&[1, 1, 1, 3], vec![1.0, 10.0, 100.0]),
            ),
        };
        let mut arguments = vec![("grad_output", g), ("self", Floats(&[1, 1, 1, 7], line.to_vec()))];
        arguments.extend(windows.map(|(name, value)| (name, Plain(value))));
        arguments.push(("dilation", Plain(ints([1, 1]))));
        arguments.push(("ceil_mode", Plain(json!({"as_bool": false}))));
        arguments.push(("indices", Plain(pooled("indices"))));
        let target = "aten.max_pool2d_with_indices_backward.default";
        evaluated_after(&[before], target, arguments, &[(F32, &[1, 1, 1, 7])]).remove(0)
    }

    #[test]
    fn the_first_of_equal_elements_and_the_last_nan_have_the_gradient() {
        assert_eq!(
            gradient([1.0, 5.0, 5.0, 2.0, 5.0, 0.0, -1.0], false),
            [0.0, 1.0, 10.0, 0.0, 100.0, 0.0, 0.0]
        );
        let nan = f32::NAN;
        assert_eq!(
            gradient([nan, 5.0, nan, 2.0, 9.0, -0.0, 0.0], false),
            [0.0, 0.0, 11.0, 0.0, 100.0, 0.0, 0.0]
        );
    }

    #[test]
    fn padding_has_no_gradient() {
        let low = f32::NEG_INFINITY;
        assert_eq!(
            gradient([low, low, 3.0, 1.0, 1.0, -2.0, -3.0], true),
            [1.0, 0.0, 10.0, 100.0, 0.0, 1000.0, 0.0]
        );
    }
}

//! Windows of an image as columns, and back; sampling at places between pixels.

use super::indexing::take_rows;
use super::prelude::*;

pub(super) const TABLE: &[Op] = &[op("aten.col2im.default", col2im), op("aten.im2col.default", im2col)];

/// The windows of one dimension: where each of their places begins, and how many windows there are.
struct Steps {
    kernel: Vec<i64>,
    dilation: Vec<i64>,
    padding: Vec<i64>,
    stride: Vec<i64>,
    /// Windows in each dimension.
    count: [i64; 2],
}

/// The most that a size, a step or a padding may be: products of two of them are still numbers.
const MOST: i64 = 1 << 24;

/// The most places of a window; each takes operations of its own.
const MOST_PLACES: i64 = 1 << 12;

fn steps(args: &Args<'_>, sizes: &[i64]) -> Lowered<Steps> {
    let kernel = args.ints_for("kernel_size", 2, 1)?;
    let dilation = args.ints_for("dilation", 2, 1)?;
    let padding = args.ints_for("padding", 2, 0)?;
    let stride = args.ints_for("stride", 2, 1)?;
    let numbers = kernel.iter().chain(&dilation).chain(&padding).chain(&stride).chain(sizes);
    if numbers.copied().any(|number| !(0..=MOST).contains(&number)) {
        return refuse("windows that no image has");
    }
    let mut count = [0; 2];
    for at in 0..2 {
        let room = sizes[at] + 2 * padding[at] - dilation[at] * (kernel[at] - 1) - 1;
        if room < 0 || stride[at] < 1 {
            return refuse("windows that do not fit");
        }
        count[at] = room / stride[at] + 1;
    }
    Ok(Steps { kernel, dilation, padding, stride, count })
}

/// `[n, c, h, w]` to `[n, c · kernel, windows]`.
fn im2col(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let input = args.tensor("self")?;
    let batched = input.rank() == 4;
    let x = if batched { input.clone() } else { cx.unsqueeze(&input, 0)? };
    if x.rank() != 4 {
        return refuse("windows of something that is no image");
    }
    let sizes = cx.known(&x.dims[2..])?;
    let steps = steps(args, &sizes)?;
    let mut padded = x.clone();
    for at in 0..2 {
        let pad = Size::Int(steps.padding[at]);
        padded = cx.pad_axis(&padded, 2 + at, &pad, &pad, 0, Scalar::zero(x.dtype))?;
    }
    // Rows and columns of each place of the windows: [n, c, kernel_h · count_h, kernel_w · count_w].
    for at in 0..2 {
        cx.table_length(&[steps.kernel[at], steps.count[at]])?;
        let places: Vec<i64> = (0..steps.kernel[at])
            .flat_map(|place| {
                let (dilation, stride) = (steps.dilation[at], steps.stride[at]);
                (0..steps.count[at]).map(move |window| place * dilation + window * stride)
            })
            .collect();
        let places = cx.i64s(&places)?;
        padded = take_rows(cx, &padded, 2 + at, &places)?;
    }
    let int = Size::Int;
    let split = [
        x.dim(0),
        x.dim(1),
        int(steps.kernel[0]),
        int(steps.count[0]),
        int(steps.kernel[1]),
        int(steps.count[1]),
    ];
    let parts = cx.reshape(&padded, &split)?;
    let transposed = cx.transpose(&parts, &[0, 1, 2, 4, 3, 5])?;
    let features = x.dim(1).mul(&int(steps.kernel[0] * steps.kernel[1]));
    let windows = int(steps.count[0] * steps.count[1]);
    let columns = cx.reshape(&transposed, &[x.dim(0), features.clone(), windows.clone()])?;
    one(if batched { columns } else { cx.reshape(&columns, &[features, windows])? })
}

/// The sum of windows at the places they came from.
fn col2im(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let input = args.tensor("self")?;
    let sizes = args.ints("output_size")?;
    let batched = input.rank() == 3;
    let x = if batched { input.clone() } else { cx.unsqueeze(&input, 0)? };
    if x.rank() != 3 || sizes.len() != 2 {
        return refuse("columns of no image");
    }
    let steps = steps(args, &sizes)?;
    let area = steps.kernel[0] * steps.kernel[1];
    if area > MOST_PLACES {
        return refuse(format!("windows of {area} places"));
    }
    let Some(channels) = x.dim(1).floor_div(&Size::Int(area)) else { return refuse("an empty window") };
    let int = Size::Int;
    let split = [
        x.dim(0),
        channels.clone(),
        int(steps.kernel[0]),
        int(steps.kernel[1]),
        int(steps.count[0]),
        int(steps.count[1]),
    ];
    let parts = cx.reshape(&x, &split)?;
    let mut total: Option<Tensor> = None;
    // Each place of the windows, spread by the strides and shifted to where it belongs, in the padded image.
    for row in 0..steps.kernel[0] {
        for column in 0..steps.kernel[1] {
            let mut part = cx.slice(&parts, 2, &int(row), &int(row + 1), 1)?;
            part = cx.slice(&part, 3, &int(column), &int(column + 1), 1)?;
            part =
                cx.reshape(&part, &[x.dim(0), channels.clone(), int(steps.count[0]), int(steps.count[1])])?;
            for (at, place) in [row, column].into_iter().enumerate() {
                let low = place * steps.dilation[at];
                let reach = (steps.count[at] - 1) * steps.stride[at] + 1;
                let high = sizes[at] + 2 * steps.padding[at] - low - reach;
                let zero = Scalar::zero(x.dtype);
                part = cx.pad_axis(&part, 2 + at, &int(low), &int(high), steps.stride[at] - 1, zero)?;
            }
            total = Some(match total {
                None => part,
                Some(before) => cx.add(&before, &part)?,
            });
        }
    }
    let Some(mut image) = total else { return refuse("an empty window") };
    for (at, (&pad, &size)) in steps.padding.iter().zip(&sizes).enumerate() {
        image = cx.slice(&image, 2 + at, &int(pad), &int(pad + size), 1)?;
    }
    let dims = image.dims[1..].to_vec();
    one(if batched { image } else { cx.reshape(&image, &dims)? })
}

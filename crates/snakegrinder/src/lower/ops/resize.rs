//! Interpolation to another size: each element of the result is a weighted sum of a few elements along each dimension.

use super::indexing::take_rows;
use super::prelude::*;

pub(super) const TABLE: &[Op] = &[
    op("aten._upsample_bicubic2d_aa.default", |cx, args| resize(cx, args, 2, Filter::SmoothCubic))
        .also(&["aten._upsample_bicubic2d_aa.vec"]),
    op("aten._upsample_bilinear2d_aa.default", |cx, args| resize(cx, args, 2, Filter::SmoothLinear))
        .also(&["aten._upsample_bilinear2d_aa.vec"]),
    op("aten._upsample_nearest_exact1d.default", |cx, args| resize(cx, args, 1, Filter::NearestExact))
        .also(&["aten._upsample_nearest_exact1d.vec"]),
    op("aten._upsample_nearest_exact2d.default", |cx, args| resize(cx, args, 2, Filter::NearestExact))
        .also(&["aten._upsample_nearest_exact2d.vec"]),
    op("aten._upsample_nearest_exact3d.default", |cx, args| resize(cx, args, 3, Filter::NearestExact))
        .also(&["aten._upsample_nearest_exact3d.vec"]),
    op("aten.upsample_bicubic2d.default", |cx, args| resize(cx, args, 2, Filter::Cubic))
        .also(&["aten.upsample_bicubic2d.vec"]),
    op("aten.upsample_bilinear2d.default", |cx, args| resize(cx, args, 2, Filter::Linear))
        .also(&["aten.upsample_bilinear2d.vec"]),
    op("aten.upsample_linear1d.default", |cx, args| resize(cx, args, 1, Filter::Linear))
        .also(&["aten.upsample_linear1d.vec"]),
    op("aten.upsample_nearest1d.default", |cx, args| resize(cx, args, 1, Filter::Nearest))
        .also(&["aten.upsample_nearest1d.vec"]),
    op("aten.upsample_nearest2d.default", |cx, args| resize(cx, args, 2, Filter::Nearest))
        .also(&["aten.upsample_nearest2d.vec"]),
    op("aten.upsample_nearest3d.default", |cx, args| resize(cx, args, 3, Filter::Nearest))
        .also(&["aten.upsample_nearest3d.vec"]),
    op("aten.upsample_trilinear3d.default", |cx, args| resize(cx, args, 3, Filter::Linear))
        .also(&["aten.upsample_trilinear3d.vec"]),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Filter {
    Nearest,
    NearestExact,
    Linear,
    Cubic,
    SmoothLinear,
    SmoothCubic,
}

/// The most elements of an input that one of the output may be made of; each takes operations of its own.
const MOST_TAPS: i64 = 1 << 10;

/// The input elements that an output element is made of.
pub(super) struct Taps {
    /// For each tap, the index for each output.
    pub(super) indices: Vec<Vec<i64>>,
    /// For each tap, the weight for each output; `None` where it is one.
    weights: Option<Vec<Vec<f64>>>,
}

fn resize(cx: &mut Cx<'_>, args: &Args<'_>, spatial: usize, filter: Filter) -> Lowered<Outcome> {
    let name = if args.get("input").is_some() { "input" } else { "self" };
    let x = args.tensor(name)?;
    let Some(lead) = x.rank().checked_sub(spatial) else { return refuse("an input of too few dimensions") };
    let corners = args.bool_or("align_corners", false)?;
    let factors = factors(args, spatial)?;
    let input = cx.known(&x.dims[lead..])?;
    let output = match args.opt_ints("output_size")? {
        Some(sizes) if sizes.len() == spatial => sizes,
        _ => input
            .iter()
            .zip(&factors)
            .map(|(&size, factor)| factor.map(|factor| (size as f64 * factor).floor() as i64))
            .collect::<Option<Vec<_>>>()
            .map_or_else(|| refuse("neither a size nor a factor"), Ok)?,
    };
    let mut result = cx.convert(&x, opmath(x.dtype))?;
    for at in 0..spatial {
        if input[at] < 1 || output[at] < 1 {
            return refuse("an empty image");
        }
        let sizes = (input[at], output[at]);
        let taps = taps(cx, filter, result.dtype, sizes, factors[at], corners)?;
        result = weighted(cx, &result, lead + at, &taps)?;
    }
    one(cx.convert(&result, x.dtype)?)
}

/// The factors of each dimension, where they are given: PyTorch then computes with them rather than with the sizes.
pub(super) fn factors(args: &Args<'_>, spatial: usize) -> Lowered<Vec<Option<f64>>> {
    if let Some(list) = args.opt_floats("scale_factors")? {
        if list.len() != spatial {
            return refuse("factors of another number of dimensions");
        }
        return Ok(list.into_iter().map(Some).collect());
    }
    let names: &[&str] = match spatial {
        1 => &["scales"],
        2 => &["scales_h", "scales_w"],
        _ => &["scales_d", "scales_h", "scales_w"],
    };
    names.iter().map(|name| args.opt_float(name)).collect()
}

impl Taps {
    /// A tensor of the resized dimension, times what one tap has of each element.
    pub(super) fn share(&self, cx: &mut Cx<'_>, x: &Tensor, axis: usize, tap: usize) -> Lowered<Tensor> {
        let Some(weights) = self.weights.as_ref().and_then(|weights| weights.get(tap)) else {
            return Ok(x.clone());
        };
        let values = weights.iter().map(|&weight| Scalar::Float(weight));
        let weights = cx.constant(x.dtype, &[weights.len()], values)?;
        let weights = cx.broadcast(&weights, &x.dims.clone(), &[axis])?;
        cx.mul(x, &weights)
    }
}

fn weighted(cx: &mut Cx<'_>, x: &Tensor, axis: usize, taps: &Taps) -> Lowered<Tensor> {
    let mut total: Option<Tensor> = None;
    for (tap, indices) in taps.indices.iter().enumerate() {
        let places = cx.i64s(indices)?;
        let part = take_rows(cx, x, axis, &places)?;
        let part = taps.share(cx, &part, axis, tap)?;
        total = Some(match total {
            None => part,
            Some(before) => cx.add(&before, &part)?,
        });
    }
    total.map_or_else(|| refuse("nothing to interpolate from"), Ok)
}

/// The elements that each element of a resized dimension is made of, for a type that is computed in and the sizes of
/// input and output.
pub(super) fn taps(
    cx: &Cx<'_>,
    filter: Filter,
    dtype: ElementType,
    (input, output): (i64, i64),
    factor: Option<f64>,
    corners: bool,
) -> Lowered<Taps> {
    cx.table_length(&[output.max(input)])?;
    let scale = match factor {
        Some(factor) if factor > 0.0 => 1.0 / factor,
        _ => input as f64 / output as f64,
    };
    let nearest = |offset: f64| -> Taps {
        let index = |at: i64| (((at as f32 + offset as f32) * scale as f32).floor() as i64).min(input - 1);
        Taps { indices: vec![(0..output).map(index).collect()], weights: None }
    };
    // PyTorch computes places in the type of the elements, nearest ones always in single precision.
    let center = |at: i64| -> f64 {
        if dtype == ElementType::F64 {
            let step = scale_of(input, output, factor, corners);
            return if corners { step * at as f64 } else { step * (at as f64 + 0.5) - 0.5 };
        }
        if corners {
            let step = if output > 1 { (input - 1) as f32 / (output - 1) as f32 } else { 0.0 };
            return f64::from(step * at as f32);
        }
        f64::from(scale as f32 * (at as f32 + 0.5) - 0.5)
    };
    Ok(match filter {
        Filter::Nearest => nearest(0.0),
        Filter::NearestExact => nearest(0.5),
        Filter::Linear => {
            let places: Vec<f64> = (0..output).map(|at| center(at).max(0.0)).collect();
            let low: Vec<i64> = places.iter().map(|place| (place.floor() as i64).min(input - 1)).collect();
            let high = low.iter().map(|index| (index + 1).min(input - 1)).collect();
            let share: Vec<f64> = places
                .iter()
                .zip(&low)
                .map(|(place, index)| (place - *index as f64).clamp(0.0, 1.0))
                .collect();
            let rest = share.iter().map(|share| 1.0 - share).collect();
            Taps { indices: vec![low, high], weights: Some(vec![rest, share]) }
        }
        Filter::Cubic => {
            let places: Vec<f64> = (0..output).map(center).collect();
            let at = |offset: i64| {
                places.iter().map(|place| (place.floor() as i64 + offset).clamp(0, input - 1)).collect()
            };
            let weight = |offset: i64| {
                places.iter().map(|place| cubic(place - place.floor() - offset as f64, -0.75)).collect()
            };
            Taps { indices: (-1..3).map(at).collect(), weights: Some((-1..3).map(weight).collect()) }
        }
        Filter::SmoothLinear | Filter::SmoothCubic => {
            let scale = scale_of(input, output, factor, corners);
            // A row of weights is as long as an output covers of the input, four times the scale at most.
            let row = (4.0 * scale.max(1.0) + 2.0).min(input as f64) as i64;
            cx.table_length(&[output, row])?;
            if row > MOST_TAPS {
                return refuse(format!("an image that shrinks by a factor of {scale}"));
            }
            match filter {
                Filter::SmoothLinear => smooth(input, output, scale, 1.0, |x| (1.0 - x.abs()).max(0.0)),
                _ => smooth(input, output, scale, 2.0, |x| cubic(x, -0.5)),
            }
        }
    })
}

fn scale_of(input: i64, output: i64, factor: Option<f64>, corners: bool) -> f64 {
    match factor {
        _ if corners && output > 1 => (input - 1) as f64 / (output - 1) as f64,
        _ if corners => 0.0,
        Some(factor) if factor > 0.0 => 1.0 / factor,
        _ => input as f64 / output as f64,
    }
}

/// The cubic convolution kernel.
fn cubic(x: f64, a: f64) -> f64 {
    let x = x.abs();
    if x <= 1.0 {
        ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0
    } else if x < 2.0 {
        ((a * x - 5.0 * a) * x + 8.0 * a) * x - 4.0 * a
    } else {
        0.0
    }
}

/// A kernel stretched over all elements that an output covers when the image shrinks.
fn smooth(input: i64, output: i64, scale: f64, radius: f64, kernel: impl Fn(f64) -> f64) -> Taps {
    let support = radius * scale.max(1.0);
    let stretch = 1.0 / scale.max(1.0);
    let rows: Vec<Vec<(i64, f64)>> = (0..output)
        .map(|at| {
            let center = scale * (at as f64 + 0.5);
            let start = ((center - support + 0.5) as i64).max(0);
            let end = ((center + support + 0.5) as i64).min(input);
            let weights: Vec<f64> =
                (start..end).map(|index| kernel((index as f64 - center + 0.5) * stretch)).collect();
            let total: f64 = weights.iter().sum();
            (start..end).zip(weights).map(|(index, weight)| (index, weight / total)).collect()
        })
        .collect();
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let tap = |tap: usize| rows.iter().map(move |row| row.get(tap).copied().unwrap_or((0, 0.0)));
    Taps {
        indices: (0..count).map(|at| tap(at).map(|(index, _)| index).collect()).collect(),
        weights: Some((0..count).map(|at| tap(at).map(|(_, weight)| weight).collect()).collect()),
    }
}

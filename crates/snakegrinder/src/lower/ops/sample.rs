//! Sampling an image or a volume at places that a grid names.

use warpforge_ir::attr::GatherDims;

use super::indexing::gather;
use super::prelude::*;

pub(super) const TABLE: &[Op] = &[op("aten.grid_sampler.default", grid_sample)
    .also(&["aten.grid_sampler_2d.default", "aten.grid_sampler_3d.default"])];

/// What is beyond the edge.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Edge {
    Zeros,
    Border,
    Reflection,
}

fn grid_sample(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let (x, grid) = (args.tensor("input")?, args.tensor("grid")?);
    let mode = args.int("interpolation_mode")?;
    let edge = match args.int("padding_mode")? {
        0 => Edge::Zeros,
        1 => Edge::Border,
        2 => Edge::Reflection,
        other => return refuse(format!("the padding mode {other}")),
    };
    let corners = args.bool_or("align_corners", false)?;
    let spatial = x.rank().saturating_sub(2);
    if !(2..=3).contains(&spatial) || grid.rank() != x.rank() || !grid.dim(spatial + 1).is(spatial as i64) {
        return refuse("sampling of something that is no image");
    }
    let sizes = cx.known(&x.dims[2..])?;
    let wide = cx.convert(&x, opmath(x.dtype))?;
    let grid = cx.convert(&grid, wide.dtype)?;
    let mut places = Vec::new();
    for (at, &size) in sizes.iter().enumerate() {
        // The grid has the last dimension first.
        let component = (spatial - 1 - at) as i64;
        let part = cx.slice(&grid, spatial + 1, &Size::Int(component), &Size::Int(component + 1), 1)?;
        let part = cx.reshape(&part, &grid.dims[..=spatial])?;
        let pixels = pixel_places(cx, &part, size, corners)?;
        places.push(match mode {
            // Cubic weights are those of the place as it is.
            2 => pixels,
            _ => inside(cx, &pixels, size, edge, corners)?,
        });
    }
    let sampler = Sampler { x: &wide, sizes: &sizes, edge, corners };
    let result = match mode {
        0 => sampler.weighted(cx, &places, 2, |cx, distance| {
            let size = cx.unary(OpKind::Abs, distance)?;
            let ones = cx.splat_like(&size, 1.0)?;
            cx.sub(&ones, &size)
        })?,
        1 => {
            let whole = places.iter().map(|place| cx.unary(OpKind::RoundNearestEven, place));
            let whole: Vec<Tensor> = whole.collect::<Lowered<_>>()?;
            sampler.at(cx, &whole)?
        }
        2 if spatial == 2 => sampler.weighted(cx, &places, 4, cubic)?,
        other => return refuse(format!("the interpolation mode {other} of {spatial} dimensions")),
    };
    one(cx.convert(&result, x.dtype)?)
}

/// From -1 … 1 to pixels.
fn pixel_places(cx: &mut Cx<'_>, x: &Tensor, size: i64, corners: bool) -> Lowered<Tensor> {
    let shifted = cx.with_number(OpKind::Add, x, 1.0)?;
    if corners {
        return cx.with_number(OpKind::Multiply, &shifted, (size - 1) as f64 / 2.0);
    }
    let scaled = cx.with_number(OpKind::Multiply, &shifted, size as f64)?;
    let scaled = cx.with_number(OpKind::Subtract, &scaled, 1.0)?;
    cx.with_number(OpKind::Divide, &scaled, 2.0)
}

/// Places beyond the edge brought inside, unless zeros are there.
fn inside(cx: &mut Cx<'_>, x: &Tensor, size: i64, edge: Edge, corners: bool) -> Lowered<Tensor> {
    let clipped = |cx: &mut Cx<'_>, x: &Tensor| {
        let low = cx.with_number(OpKind::Maximum, x, 0.0)?;
        cx.with_number(OpKind::Minimum, &low, (size - 1) as f64)
    };
    match edge {
        Edge::Zeros => Ok(x.clone()),
        Edge::Border => clipped(cx, x),
        Edge::Reflection => {
            let (low, high) = if corners { (0.0, (size - 1) as f64) } else { (-0.5, size as f64 - 0.5) };
            let reflected = reflect(cx, x, low, high)?;
            clipped(cx, &reflected)
        }
    }
}

fn reflect(cx: &mut Cx<'_>, x: &Tensor, low: f64, high: f64) -> Lowered<Tensor> {
    let span = high - low;
    if span <= 0.0 {
        return cx.splat_like(x, 0.0);
    }
    let shifted = cx.with_number(OpKind::Subtract, x, low)?;
    let distance = cx.unary(OpKind::Abs, &shifted)?;
    let extra = cx.with_number(OpKind::Remainder, &distance, span)?;
    let flips = cx.with_number(OpKind::Divide, &distance, span)?;
    let flips = cx.unary(OpKind::Floor, &flips)?;
    let odd = cx.with_number(OpKind::Remainder, &flips, 2.0)?;
    let odd = cx.compare_number(Cmp::Ne, &odd, 0.0)?;
    let forward = cx.with_number(OpKind::Add, &extra, low)?;
    let end = cx.splat_like(&extra, high)?;
    let backward = cx.sub(&end, &extra)?;
    cx.select(&odd, &backward, &forward)
}

/// The cubic convolution kernel, piece by piece.
fn cubic(cx: &mut Cx<'_>, distance: &Tensor) -> Lowered<Tensor> {
    const A: f64 = -0.75;
    let x = cx.unary(OpKind::Abs, distance)?;
    let polynomial = |cx: &mut Cx<'_>, factors: [f64; 4]| -> Lowered<Tensor> {
        let mut value = cx.splat_like(&x, factors[0])?;
        for factor in &factors[1..] {
            value = cx.mul(&value, &x)?;
            value = cx.with_number(OpKind::Add, &value, *factor)?;
        }
        Ok(value)
    };
    let near = polynomial(cx, [A + 2.0, -(A + 3.0), 0.0, 1.0])?;
    let far = polynomial(cx, [A, -5.0 * A, 8.0 * A, -4.0 * A])?;
    let close = cx.compare_number(Cmp::Le, &x, 1.0)?;
    cx.select(&close, &near, &far)
}

struct Sampler<'a> {
    x: &'a Tensor,
    sizes: &'a [i64],
    edge: Edge,
    corners: bool,
}

impl Sampler<'_> {
    /// The dimensions of an image that are those of a place: all but the channels.
    fn map(&self) -> Vec<usize> {
        (0..self.x.rank()).filter(|&axis| axis != 1).collect()
    }

    /// The weighted sum of the pixels around a place, `taps` in each direction.
    fn weighted(
        &self,
        cx: &mut Cx<'_>,
        places: &[Tensor],
        taps: i64,
        weight: fn(&mut Cx<'_>, &Tensor) -> Lowered<Tensor>,
    ) -> Lowered<Tensor> {
        let first = 1 - taps / 2;
        let mut total: Option<Tensor> = None;
        let base = places.iter().map(|place| cx.unary(OpKind::Floor, place));
        let base: Vec<Tensor> = base.collect::<Lowered<_>>()?;
        for tap in 0..taps.pow(places.len() as u32) {
            let mut pixels = Vec::new();
            let mut share: Option<Tensor> = None;
            for (at, place) in places.iter().enumerate() {
                let offset = first + tap / taps.pow((places.len() - 1 - at) as u32) % taps;
                let pixel = cx.with_number(OpKind::Add, &base[at], offset as f64)?;
                let distance = cx.sub(place, &pixel)?;
                let own = weight(cx, &distance)?;
                share = Some(match share {
                    None => own,
                    Some(before) => cx.mul(&before, &own)?,
                });
                pixels.push(if taps == 4 {
                    inside(cx, &pixel, self.sizes[at], self.edge, self.corners)?
                } else {
                    pixel
                });
            }
            let value = self.at(cx, &pixels)?;
            let Some(share) = share else { return refuse("no weights") };
            let share = cx.broadcast(&share, &value.dims.clone(), &self.map())?;
            let part = cx.mul(&value, &share)?;
            total = Some(match total {
                None => part,
                Some(before) => cx.add(&before, &part)?,
            });
        }
        total.map_or_else(|| refuse("no weights"), Ok)
    }

    /// The pixels at whole places, with the channels behind the samples; zero outside where that is asked for.
    fn at(&self, cx: &mut Cx<'_>, places: &[Tensor]) -> Lowered<Tensor> {
        let (x, last) = (self.x, places.len() + 1);
        let mut visible: Option<Tensor> = None;
        let mut indices = Vec::new();
        for (place, &size) in places.iter().zip(self.sizes) {
            let (low, high) = (
                cx.compare_number(Cmp::Ge, place, 0.0)?,
                cx.compare_number(Cmp::Le, place, (size - 1) as f64)?,
            );
            let within = cx.and(&low, &high)?;
            visible = Some(match visible {
                None => within,
                Some(before) => cx.and(&before, &within)?,
            });
            let clipped = cx.with_number(OpKind::Maximum, place, 0.0)?;
            let clipped = cx.with_number(OpKind::Minimum, &clipped, (size - 1) as f64)?;
            let index = cx.convert(&clipped, ElementType::I64)?;
            indices.push(cx.unsqueeze(&index, last)?);
        }
        let index = cx.concatenate(&indices, last)?;
        let axes: Vec<i64> = (2..=last as i64).collect();
        let numbers = GatherDims {
            offset_dims: vec![1],
            collapsed_slice_dims: axes.clone(),
            operand_batching_dims: vec![0],
            start_indices_batching_dims: vec![0],
            start_index_map: axes,
            index_vector_dim: last as i64,
        };
        let mut sizes = vec![Size::Int(1); x.rank()];
        sizes[1] = x.dim(1);
        let mut dims = vec![x.dim(0), x.dim(1)];
        dims.extend(index.dims[1..last].iter().cloned());
        let value = gather(cx, x, &index, numbers, &sizes, &dims)?;
        match visible.filter(|_| self.edge == Edge::Zeros) {
            None => Ok(value),
            Some(visible) => {
                let visible = cx.broadcast(&visible, &dims, &self.map())?;
                let zero = cx.splat_like(&value, 0.0)?;
                cx.select(&visible, &value, &zero)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::{Code::F32, Given::*, evaluated};

    #[test]
    fn a_volume_is_sampled_between_its_elements() {
        // Halfway in depth, in the first row, in the second column.
        let arguments = vec![
            ("input", Floats(&[1, 1, 2, 2, 2], vec![0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0])),
            ("grid", Floats(&[1, 1, 1, 1, 3], vec![1.0, -1.0, 0.0])),
            ("interpolation_mode", Plain(json!({"as_int": 0}))),
            ("padding_mode", Plain(json!({"as_int": 0}))),
            ("align_corners", Plain(json!({"as_bool": true}))),
        ];
        let found = evaluated("aten.grid_sampler_3d.default", arguments, &[(F32, &[1, 1, 1, 1, 1])]);
        assert_eq!(found, [[3.0]]);
    }
}

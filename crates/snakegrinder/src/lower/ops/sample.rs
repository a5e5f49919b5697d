//! Sampling an image at places that a grid names.

use warpforge_ir::attr::GatherDims;

use super::indexing::gather;
use super::prelude::*;

pub(super) const TABLE: &[Op] =
    &[op("aten.grid_sampler.default", grid_sample), op("aten.grid_sampler_2d.default", grid_sample)];

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
    if x.rank() != 4 || grid.rank() != 4 {
        return refuse("sampling of something that is no image");
    }
    let sizes = cx.known(&x.dims[2..])?;
    let wide = cx.convert(&x, opmath(x.dtype))?;
    let grid = cx.convert(&grid, wide.dtype)?;
    // The grid has the column first.
    let places = [(1, sizes[0]), (0, sizes[1])].map(|(component, size)| {
        let part = cx.slice(&grid, 3, &Size::Int(component), &Size::Int(component + 1), 1)?;
        let part = cx.reshape(&part, &grid.dims[..3])?;
        let pixels = pixel_places(cx, &part, size, corners)?;
        match mode {
            // Cubic weights are those of the place as it is.
            2 => Ok(pixels),
            _ => inside(cx, &pixels, size, edge, corners),
        }
    });
    let [row, column] = places;
    let (row, column) = (row?, column?);
    let sampler = Sampler { x: &wide, sizes: [sizes[0], sizes[1]], edge, corners };
    let result = match mode {
        0 => sampler.weighted(cx, &row, &column, 2, |cx, distance| {
            let size = cx.unary(OpKind::Abs, distance)?;
            let ones = cx.splat_like(&size, 1.0)?;
            cx.sub(&ones, &size)
        })?,
        1 => {
            let row = cx.unary(OpKind::RoundNearestEven, &row)?;
            let column = cx.unary(OpKind::RoundNearestEven, &column)?;
            sampler.at(cx, &row, &column)?
        }
        2 => sampler.weighted(cx, &row, &column, 4, cubic)?,
        other => return refuse(format!("the interpolation mode {other}")),
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
    sizes: [i64; 2],
    edge: Edge,
    corners: bool,
}

impl Sampler<'_> {
    /// The weighted sum of the pixels around a place, `taps` in each direction.
    fn weighted(
        &self,
        cx: &mut Cx<'_>,
        row: &Tensor,
        column: &Tensor,
        taps: i64,
        weight: fn(&mut Cx<'_>, &Tensor) -> Lowered<Tensor>,
    ) -> Lowered<Tensor> {
        let first = 1 - taps / 2;
        let mut total: Option<Tensor> = None;
        let base = [cx.unary(OpKind::Floor, row)?, cx.unary(OpKind::Floor, column)?];
        for tap in 0..taps * taps {
            let offsets = [first + tap / taps, first + tap % taps];
            let mut places = Vec::new();
            let mut share: Option<Tensor> = None;
            for (at, place) in [row, column].into_iter().enumerate() {
                let pixel = cx.with_number(OpKind::Add, &base[at], offsets[at] as f64)?;
                let distance = cx.sub(place, &pixel)?;
                let own = weight(cx, &distance)?;
                share = Some(match share {
                    None => own,
                    Some(before) => cx.mul(&before, &own)?,
                });
                places.push(if taps == 4 {
                    inside(cx, &pixel, self.sizes[at], self.edge, self.corners)?
                } else {
                    pixel
                });
            }
            let value = self.at(cx, &places[0], &places[1])?;
            let Some(share) = share else { return refuse("no weights") };
            let share = cx.broadcast(&share, &value.dims.clone(), &[0, 2, 3])?;
            let part = cx.mul(&value, &share)?;
            total = Some(match total {
                None => part,
                Some(before) => cx.add(&before, &part)?,
            });
        }
        total.map_or_else(|| refuse("no weights"), Ok)
    }

    /// The pixels at whole places, `[n, c, h, w]`; zero outside where that is asked for.
    fn at(&self, cx: &mut Cx<'_>, row: &Tensor, column: &Tensor) -> Lowered<Tensor> {
        let mut visible: Option<Tensor> = None;
        let mut indices = Vec::new();
        for (place, size) in [row, column].into_iter().zip(self.sizes) {
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
            indices.push(cx.unsqueeze(&index, 3)?);
        }
        let index = cx.concatenate(&indices, 3)?;
        let numbers = GatherDims {
            offset_dims: vec![1],
            collapsed_slice_dims: vec![2, 3],
            operand_batching_dims: vec![0],
            start_indices_batching_dims: vec![0],
            start_index_map: vec![2, 3],
            index_vector_dim: 3,
        };
        let x = self.x;
        let sizes = [Size::Int(1), x.dim(1), Size::Int(1), Size::Int(1)];
        let dims = [x.dim(0), x.dim(1), row.dim(1), row.dim(2)];
        let value = gather(cx, x, &index, numbers, &sizes, &dims)?;
        match visible.filter(|_| self.edge == Edge::Zeros) {
            None => Ok(value),
            Some(visible) => {
                let visible = cx.broadcast(&visible, &dims, &[0, 2, 3])?;
                let zero = cx.splat_like(&value, 0.0)?;
                cx.select(&visible, &value, &zero)
            }
        }
    }
}

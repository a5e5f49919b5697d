//! Depthwise convolution: every channel has windows and weights of its own.

use std::ops::Range;

use super::axis::{Places, WindowAxis, bytes_of};
use super::taps::{Group, Kernel, Tap};
use crate::block::{Block, Sink};
use crate::movement::{LayoutError, Shared};
use crate::pool::Pool;

/// Products that a piece computes, more or less.
const PIECE: usize = 1 << 18;

/// A planned depthwise convolution of f32 with zeros as padding. Images are row-major with channels last.
#[derive(Debug, Clone)]
pub struct Depthwise {
    /// Places along each spatial dimension, in elements.
    axes: Vec<Places>,
    /// The windows along the last spatial dimension that have no padding, if all are as far apart.
    inside: Range<usize>,
    /// Elements between neighbouring windows of those.
    step: usize,
    dims: Vec<usize>,
    channels: usize,
    multiplier: usize,
    /// Elements of an image of the input.
    image: usize,
    /// Rows along the last spatial dimension: of an image of the result, of all, of a piece.
    image_rows: usize,
    rows: usize,
    rows_in_piece: usize,
    kernel: Kernel,
}

impl Depthwise {
    /// A convolution of images of `dims` (batch, spatial sizes, channels) with windows along the spatial dimensions.
    /// Each channel gives `multiplier` channels of the result, which are neighbours.
    ///
    /// # Errors
    ///
    /// When there is no spatial dimension, sizes do not fit or numbers get too large.
    pub fn new(dims: &[usize], axes: &[WindowAxis], multiplier: usize) -> Result<Self, LayoutError> {
        let (&[batch, .., channels], Some(last)) = (dims, axes.last()) else {
            return Err(LayoutError::Sizes("an image has a batch, spatial dimensions and channels"));
        };
        let spatial = &dims[1..dims.len() - 1];
        crate::movement::check_rank("windows", axes.len(), spatial.len())?;
        let strides = crate::movement::row_major(dims)?;
        let all = spatial.iter().zip(axes).zip(&strides[1..]);
        let places: Vec<Places> = all
            .map(|((&size, axis), stride)| axis.places(size, stride.unsigned_abs()))
            .collect::<Result<_, _>>()?;
        let mut result = vec![batch];
        result.extend(places.iter().map(Places::windows));
        result.push(channels.checked_mul(multiplier).ok_or(LayoutError::Overflow)?);
        // Sizes of both arrays and of the weights can be counted in bytes.
        let taps: Vec<usize> = axes.iter().map(|axis| axis.size).collect();
        let weights = [&taps[..], &result[result.len() - 1..]].concat();
        for sizes in [dims, &result, &weights] {
            bytes_of(sizes, size_of::<f32>())?;
        }
        let along = places.last().map_or(0, Places::windows);
        let padded =
            |window: usize| places.last().is_some_and(|last| last.of(window).contains(&Places::PADDING));
        let first = (0..along).find(|&window| !padded(window)).unwrap_or(along);
        let count = (first..along).take_while(|&window| !padded(window)).count();
        let inside = if last.base_dilation == 1 { first..first + count } else { 0..0 };
        let image_rows: usize = result[1..result.len() - 2].iter().product();
        let cost = taps
            .iter()
            .chain([&along, &result[result.len() - 1]])
            .fold(1, |cost: usize, &size| cost.saturating_mul(size));
        let empty = result.contains(&0);
        Ok(Self {
            axes: places,
            inside,
            step: last.stride.saturating_mul(channels),
            channels,
            multiplier,
            image: dims[1..].iter().product(),
            image_rows,
            rows: if empty { 0 } else { batch * image_rows },
            rows_in_piece: (PIECE / cost.max(1)).max(1),
            dims: result,
            kernel: Kernel::best(),
        })
    }

    /// The sizes of the result: batch, spatial sizes, channels.
    #[must_use]
    pub fn dims(&self) -> &[usize] {
        &self.dims
    }

    /// Weights as [`run`](Self::run) wants them, from a row-major array of the window's sizes and the result's channels.
    ///
    /// # Errors
    ///
    /// When there are not as many.
    pub fn pack(&self, weights: &[f32]) -> Result<Vec<f32>, LayoutError> {
        let taps: usize = self.axes.iter().map(Places::size).product();
        if weights.len() != taps * self.channels * self.multiplier {
            return Err(LayoutError::Sizes("there are not as many weights as windows and channels need"));
        }
        let mut packed = Vec::with_capacity(weights.len());
        // For each element of a window and each of a channel's results, all channels.
        for tap in weights.chunks_exact((self.channels * self.multiplier).max(1)) {
            for which in 0..self.multiplier {
                packed.extend(tap.iter().skip(which).step_by(self.multiplier));
            }
        }
        Ok(packed)
    }

    /// Convolves, and hands each row of finished pixels to `sink`: pixels are counted through the whole batch. Where
    /// there is no `target`, a row is gone when the sink returns.
    ///
    /// # Safety
    ///
    /// The images may be read at `source` and the result written at `target`; they have no element in common.
    ///
    /// # Panics
    ///
    /// When the weights were not packed by this plan.
    pub unsafe fn run(
        &self,
        pool: &Pool,
        source: *const f32,
        weights: &[f32],
        target: Option<*mut f32>,
        sink: Option<&Sink<'_>>,
    ) {
        let taps: usize = self.axes.iter().map(Places::size).product();
        assert_eq!(weights.len(), taps * self.channels * self.multiplier, "weights of this convolution");
        let (source, target) = (Shared::new(source), Shared::new(target));
        let [.., width, columns] = self.dims[..] else { return };
        pool.run(self.rows.div_ceil(self.rows_in_piece), &|piece, worker| {
            let mut scratch = Scratch::default();
            let own = if target.get().is_none() { width * columns } else { 0 };
            scratch.row.resize(own, 0.0);
            let first = piece * self.rows_in_piece;
            for row in first..(first + self.rows_in_piece).min(self.rows) {
                let own = scratch.row.as_mut_ptr();
                // The row is one of the result's, and no other piece has it.
                let data = target.get().map_or(own, |target| target.wrapping_add(row * width * columns));
                // SAFETY: the caller vouches for the buffers.
                unsafe { self.row(row, source.get(), weights, data, &mut scratch) };
                if let Some(sink) = sink {
                    let rows = row * width..(row + 1) * width;
                    sink(&Block { rows, columns: 0..columns, data: data.cast(), stride: columns, worker });
                }
            }
        });
    }

    /// # Safety
    ///
    /// The images may be read, and a row of the result written at `target`.
    unsafe fn row(
        &self,
        row: usize,
        source: *const f32,
        weights: &[f32],
        target: *mut f32,
        scratch: &mut Scratch,
    ) {
        let (Some((along, outer)), width) = (self.axes.split_last(), self.dims[self.dims.len() - 2]) else {
            return;
        };
        let start = row / self.image_rows * self.image;
        self.outer_taps(outer, row % self.image_rows, start, scratch);
        let Scratch { outer, taps, plane, .. } = scratch;
        // With several results of a channel, all first results are computed, then all second ones.
        plane.resize(if self.multiplier == 1 { 0 } else { width * self.channels }, 0.0);
        for which in 0..self.multiplier {
            let to = if self.multiplier == 1 { target } else { plane.as_mut_ptr() };
            let mut pixel = 0;
            while pixel < width {
                let count = if self.inside.contains(&pixel) { self.inside.end - pixel } else { 1 };
                taps.clear();
                for outer in &*outer {
                    for (element, &place) in along.of(pixel).iter().enumerate() {
                        if place != Places::PADDING {
                            let tap = (outer.weight * along.size() + element) * self.multiplier + which;
                            taps.push(Tap { source: outer.source + place, weight: tap * self.channels });
                        }
                    }
                }
                let group = Group { pixels: count, step: self.step, channels: self.channels };
                // SAFETY: places are inside the image, weights were counted, and the pixels are in the row.
                unsafe {
                    self.kernel.run(&group, taps, source, weights.as_ptr(), to.add(pixel * self.channels));
                };
                pixel += count;
            }
            if self.multiplier > 1 {
                for (at, &value) in plane.iter().enumerate() {
                    // SAFETY: the row has `multiplier` times as many elements as the plane.
                    unsafe { target.add(at * self.multiplier + which).write(value) };
                }
            }
        }
    }

    /// The elements of a window along all spatial dimensions but the last.
    fn outer_taps(&self, outer: &[Places], mut row: usize, start: usize, scratch: &mut Scratch) {
        scratch.outer.clear();
        scratch.outer.push(Tap { source: start, weight: 0 });
        let mut index = vec![0; outer.len()];
        for (at, axis) in index.iter_mut().zip(outer).rev() {
            *at = row % axis.windows();
            row /= axis.windows();
        }
        for (axis, at) in outer.iter().zip(index) {
            scratch.taps.clear();
            for tap in &scratch.outer {
                for (element, &place) in
                    axis.of(at).iter().enumerate().filter(|(_, place)| **place != Places::PADDING)
                {
                    let weight = tap.weight * axis.size() + element;
                    scratch.taps.push(Tap { source: tap.source + place, weight });
                }
            }
            std::mem::swap(&mut scratch.outer, &mut scratch.taps);
        }
    }
}

/// What a piece needs.
#[derive(Default)]
struct Scratch {
    row: Vec<f32>,
    plane: Vec<f32>,
    outer: Vec<Tap>,
    taps: Vec<Tap>,
}

//! Convolutions in bf16 over images whose pixels tiles are loaded from as they lie.
//!
//! The input, or a copy of it with padding, is taken as a row of pixels without end: at each of them the window covers
//! pixels that are as far away as at any other. Positions of the window that reach over the end of a line are computed too,
//! and forgotten. With strides, the copy has a plane for each remainder of a pixel's place by the stride.

use warpforge_tensor::ElementType;

use super::ConvError;
use super::geometry::{Dimension, Geometry, Line};
use super::padded::{Padded, Source};
use super::run::Input;
use crate::gemm::drive::Target;
use crate::gemm::{Even, Gemm, PackedRhs};
use crate::pool::Pool;

/// Elements of a run are a multiple of these: whole rows of tiles.
const RUN: usize = 32;
/// Bytes of a page.
const PAGE: usize = 4096;
/// Bytes of an element.
const BYTES: usize = 2;

/// A convolution of two dimensions so computed.
#[derive(Debug)]
pub(super) struct Evenly {
    planes: Vec<Padded>,
    /// For each tap its plane and its pixel there, for the first position of the window.
    taps: Vec<(usize, usize)>,
    /// Rows and columns of a plane.
    plane: (usize, usize),
    /// Rows and columns of the output.
    output: (usize, usize),
    /// Whether the one plane is the input.
    plain: bool,
}

impl Evenly {
    /// How a convolution is so computed, if its channels are whole rows of tiles.
    pub(super) fn new(geometry: &Geometry, lines: &[Line]) -> Option<Self> {
        let ([down, across], [rows, columns]) = (geometry.dimensions.as_slice(), lines) else { return None };
        let &Geometry { channels, groups, .. } = geometry;
        if groups != 1
            || channels == 0
            || !channels.is_multiple_of(RUN)
            || rows.outputs * columns.outputs == 0
        {
            return None;
        }
        let place = |dimension: &Dimension, element: usize| {
            let at = element * dimension.window_dilation;
            (at % dimension.stride, at / dimension.stride)
        };
        let size = |dimension: &Dimension, outputs: usize| outputs + place(dimension, dimension.window - 1).1;
        let plane = (size(down, rows.outputs), size(across, columns.outputs));
        let mut remainders: Vec<(usize, usize)> = Vec::new();
        let mut taps = Vec::new();
        for (y, x) in (0..down.window).flat_map(|y| (0..across.window).map(move |x| (y, x))) {
            let (y, x) = (place(down, y), place(across, x));
            let at = remainders.iter().position(|&known| known == (y.0, x.0)).unwrap_or_else(|| {
                remainders.push((y.0, x.0));
                remainders.len() - 1
            });
            taps.push((at, y.1 * plane.1 + x.1));
        }
        let along = |dimension: &Dimension, remainder: usize, size: usize| {
            (0..size).map(|at| dimension.element(at * dimension.stride + remainder)).collect()
        };
        let of =
            |&(y, x): &(usize, usize)| Padded::of(vec![along(down, y, plane.0), along(across, x, plane.1)]);
        let same = |dimension: &Dimension| *dimension == Dimension::new(dimension.input, 1);
        let plain = same(down) && same(across);
        let planes = remainders.iter().map(of).collect();
        Some(Self { planes, taps, plane, output: (rows.outputs, columns.outputs), plain })
    }

    /// Runs it; false where there are too few pixels, and nothing was done.
    ///
    /// # Safety
    ///
    /// As for [`Gemm::product`].
    pub(super) unsafe fn run(
        &self,
        gemm: &Gemm,
        pool: &Pool,
        geometry: &Geometry,
        input: &Input<'_>,
        weights: &PackedRhs,
        target: Target<'_>,
    ) -> Result<bool, ConvError> {
        let &Geometry { batch, channels, .. } = geometry;
        let dense = input.strides[0] == input.strides[1] * self.plane.1
            && (batch <= 1 || input.batch_stride == input.strides[0] * self.plane.0);
        let in_place = self.plain && input.element == ElementType::BF16 && dense;
        let (pixels, pixel) = (self.plane.0 * self.plane.1, channels * BYTES);
        let each = batch.saturating_mul(pixels).saturating_mul(pixel);
        let taps: Vec<usize> = self.taps.iter().map(|(plane, at)| plane * each + at * pixel).collect();
        let mut even = Even {
            data: input.data,
            row_bytes: if in_place { input.strides[1] * BYTES } else { pixel },
            taps: &taps,
            steps: channels / RUN,
            images: batch,
            image_bytes: pixels * pixel,
            lines: self.output.0,
            wanted: self.output.1,
            pitch: self.plane.1,
        };
        if self.plain {
            (even.images, even.lines, even.wanted, even.pitch) = (1, batch * pixels, 1, 1);
        }
        // Pixels that are whole pages apart share the same few places of a cache.
        if !even.fills_a_tile() || even.images == 0 || even.row_bytes.is_multiple_of(PAGE) {
            return Ok(false);
        }
        let copy;
        if !in_place {
            copy = gemm.lend(each.saturating_mul(self.planes.len()))?;
            let (_, convert) = gemm.row_copy(input.element)?;
            let source = Source {
                data: input.data,
                element: input.element,
                batch_stride: input.batch_stride,
                strides: input.strides,
                batch,
                channels,
            };
            for (at, plane) in self.planes.iter().enumerate() {
                // SAFETY: as the caller promises; the memory has room for all planes.
                unsafe { plane.fill(pool, &source, convert, copy.as_ptr().add(at * each), BYTES) };
            }
            even.data = copy.as_ptr();
        }
        // SAFETY: as the caller promises; all positions of the window lie inside a plane.
        unsafe { gemm.even_product(pool, &even, weights.view(), target)? };
        Ok(true)
    }
}

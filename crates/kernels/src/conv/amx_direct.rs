//! bf16 convolutions that load AMX tiles directly from the pixels of the input.
//!
//! The input, or a padded copy of it, is treated as one endless row of pixels: relative to every pixel the taps have
//! the same offsets. Window positions that wrap around the end of a line are computed too, and discarded. With strides,
//! the copy has one plane for each remainder of a pixel index modulo the stride.

use warpforge_tensor::ElementType;

use super::ConvError;
use super::geometry::{AxisTaps, Dimension, Geometry};
use super::input::Input;
use super::padded_copy::{CopySource, PaddedCopy};
use crate::gemm::drive::GemmTarget;
use crate::gemm::{Gemm, PackedView, StridedLhs};
use crate::pool::Pool;

/// Runs are a multiple of this many elements: whole rows of tiles.
const RUN: usize = 32;
/// Bytes of a page.
const PAGE: usize = 4096;
/// Bytes of an element.
const BYTES: usize = 2;

/// A two-dimensional convolution computed directly with AMX.
#[derive(Debug)]
pub(super) struct AmxDirect {
    planes: Vec<PaddedCopy>,
    /// For each tap, its plane and pixel for the first window position.
    taps: Vec<(usize, usize)>,
    /// Rows and columns of a plane.
    plane: (usize, usize),
    /// Rows and columns of the output.
    output: (usize, usize),
    /// Whether the only plane is the input.
    plain: bool,
}

impl AmxDirect {
    /// The plan of a convolution, if its channels are whole rows of tiles.
    pub(super) fn new(geometry: &Geometry, lines: &[AxisTaps]) -> Option<Self> {
        let ([down, across], [rows, columns]) = (geometry.dimensions.as_slice(), lines) else { return None };
        let &Geometry { channels, groups, .. } = geometry;
        if groups != 1
            || channels == 0
            || !channels.is_multiple_of(RUN)
            || rows.outputs * columns.outputs == 0
        {
            return None;
        }
        let input_index = |dimension: &Dimension, element: usize| {
            let at = element * dimension.window_dilation;
            (at % dimension.stride, at / dimension.stride)
        };
        let size =
            |dimension: &Dimension, outputs: usize| outputs + input_index(dimension, dimension.window - 1).1;
        let plane = (size(down, rows.outputs), size(across, columns.outputs));
        let mut remainders: Vec<(usize, usize)> = Vec::new();
        let mut taps = Vec::new();
        for (y, x) in (0..down.window).flat_map(|y| (0..across.window).map(move |x| (y, x))) {
            let (y, x) = (input_index(down, y), input_index(across, x));
            let at = remainders.iter().position(|&known| known == (y.0, x.0)).unwrap_or_else(|| {
                remainders.push((y.0, x.0));
                remainders.len() - 1
            });
            taps.push((at, y.1 * plane.1 + x.1));
        }
        let along = |dimension: &Dimension, remainder: usize, size: usize| {
            (0..size).map(|at| dimension.element(at * dimension.stride + remainder)).collect()
        };
        let of = |&(y, x): &(usize, usize)| {
            PaddedCopy::of(vec![along(down, y, plane.0), along(across, x, plane.1)])
        };
        let same = |dimension: &Dimension| *dimension == Dimension::new(dimension.input, 1);
        let plain = same(down) && same(across);
        let planes = remainders.iter().map(of).collect();
        Some(Self { planes, taps, plane, output: (rows.outputs, columns.outputs), plain })
    }

    /// Runs the convolution; returns false, without computing, where there are too few pixels.
    ///
    /// # Safety
    ///
    /// As for [`Gemm::multiply`].
    pub(super) unsafe fn run(
        &self,
        gemm: &Gemm,
        pool: &Pool,
        geometry: &Geometry,
        input: &Input<'_>,
        weights: PackedView<'_>,
        target: GemmTarget<'_>,
    ) -> Result<bool, ConvError> {
        let &Geometry { batch, channels, .. } = geometry;
        let dense = input.strides[0] == input.strides[1] * self.plane.1
            && (batch <= 1 || input.batch_stride == input.strides[0] * self.plane.0);
        let in_place = self.plain && input.element == ElementType::BF16 && dense;
        let (pixels, pixel) = (self.plane.0 * self.plane.1, channels * BYTES);
        let each = batch.saturating_mul(pixels).saturating_mul(pixel);
        let taps: Vec<usize> = self.taps.iter().map(|(plane, at)| plane * each + at * pixel).collect();
        let mut strided = StridedLhs {
            data: input.data,
            row_bytes: if in_place { input.strides[1] * BYTES } else { pixel },
            taps: &taps,
            steps: channels / RUN,
            images: batch,
            image_bytes: pixels * pixel,
            lines: self.output.0,
            valid: self.output.1,
            pitch: self.plane.1,
        };
        if self.plain {
            (strided.images, strided.lines, strided.valid, strided.pitch) = (1, batch * pixels, 1, 1);
        }
        // Pixels at multiples of a page map to the same few cache sets.
        if !strided.fills_a_tile() || strided.images == 0 || strided.row_bytes.is_multiple_of(PAGE) {
            return Ok(false);
        }
        let copy;
        if !in_place {
            copy = gemm.scratch_buffer(each.saturating_mul(self.planes.len()))?;
            let (_, convert) = gemm.row_pack_fn(input.element)?;
            let source = CopySource {
                data: input.data,
                element: input.element,
                batch_stride: input.batch_stride,
                channel_stride: input.channel_stride,
                strides: input.strides,
                batch,
                channels,
            };
            for (at, plane) in self.planes.iter().enumerate() {
                // SAFETY: guaranteed by the caller; the memory has space for all planes.
                unsafe { plane.fill(pool, &source, convert, copy.as_ptr().add(at * each), BYTES) };
            }
            strided.data = copy.as_ptr();
        }
        // SAFETY: guaranteed by the caller; all window positions are inside a plane.
        unsafe { gemm.multiply_strided(pool, &strided, weights, target)? };
        Ok(true)
    }
}

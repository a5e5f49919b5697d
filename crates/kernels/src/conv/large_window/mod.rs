//! Convolutions whose window has more elements than their output has pixels: gradients of weights.
//!
//! The gradient of a convolution's weights is a convolution too: channels of the input are its images, images its channels, and the gradient of the
//! output is its window. Few output pixels then sum over all pixels of all images. The GEMM's depth runs along lines of pixels: the input, read with
//! any strides, is copied so that the pixels of a line are contiguous, image by image ([`LineCopy`]), and each output pixel reads a run of every
//! line. The copy and the packed weights are made for as many lines at a time as stay in cache.

mod chunk;
mod line_copy;
#[cfg(test)]
mod tests;

use self::chunk::{Chunk, WindowLine};
use self::line_copy::{Line, LineCopy};
use super::ConvError;
use super::geometry::{AxisTaps, Dimension, Geometry};
use super::input::Input;
use super::weights::Weights;
use crate::gemm::drive::GemmTarget;
use crate::gemm::rows::LhsRows;
use crate::gemm::{ComputeType, Gemm, Operand, Shape};
use crate::pool::Pool;
use warpforge_tensor::ElementType;

/// Bytes of the copied lines and the packed weights that are multiplied at a time.
const CHUNK_BYTES: usize = 4 << 20;
/// Bytes of a line that is long enough: shorter ones are merged where they can be.
const LONG_LINE_BYTES: usize = 1 << 20;

/// A convolution of a large window.
#[derive(Debug)]
pub(super) struct LargeWindow {
    /// Images of the convolution: channels of what it is the gradient of.
    planes: usize,
    /// Channels of the convolution: images of what it is the gradient of.
    channels: usize,
    outputs: usize,
    dimensions: Vec<Dimension>,
}

/// One spatial dimension of the operands of a run.
#[derive(Debug, Clone, Copy)]
struct Axis {
    dimension: Dimension,
    /// From one element to the next, in elements of the input.
    stride: usize,
    /// From one element of the window to the next, in elements of the weights.
    window_stride: usize,
}

impl Axis {
    /// Whether each element of the window reads the element of the input at the same place, and there is one output.
    fn is_aligned(&self) -> bool {
        let Dimension { input, window, padding, window_dilation, .. } = self.dimension;
        input == window && padding == (0, 0) && (window_dilation == 1 || window == 1)
    }

    /// This axis and the one inside it as one, where both are aligned and lie one after the other in memory.
    fn merged(&self, inner: &Self) -> Option<Self> {
        let (inputs, window) = (inner.dimension.input, inner.dimension.window);
        let follows =
            self.stride == inputs * inner.stride && self.window_stride == window * inner.window_stride;
        (self.is_aligned() && inner.is_aligned() && follows).then(|| Self {
            dimension: Dimension::new(self.dimension.input * inputs, self.dimension.window * window),
            ..*inner
        })
    }
}

impl LargeWindow {
    /// The plan of a convolution, where it is one of a large window.
    pub(super) fn new(geometry: &Geometry, lines: &[AxisTaps], compute_type: ComputeType) -> Option<Self> {
        let Geometry { batch, channels, outputs, groups, dimensions } = geometry;
        let pixels: usize = lines.iter().map(|line| line.outputs).product();
        let taps: usize = lines.iter().map(|line| line.window).product();
        let dense = dimensions.iter().all(|dimension| dimension.base_dilation == 1);
        let computed = matches!(compute_type, ComputeType::F32 | ComputeType::F64);
        (*groups == 1 && *channels > 0 && dense && computed && pixels > 0 && taps > pixels).then(|| Self {
            planes: *batch,
            channels: *channels,
            outputs: *outputs,
            dimensions: dimensions.clone(),
        })
    }

    /// Whether it reads weights of these strides.
    pub(super) fn reads(&self, weights: &Weights) -> bool {
        weights.window_strides.iter().all(|&stride| stride >= 0)
    }

    /// The spatial dimensions with their strides; lines of pixels are merged while they are short.
    fn axes(&self, input: &Input<'_>, weights: &Weights) -> Vec<Axis> {
        let strides = input.strides.iter().zip(&weights.window_strides);
        let mut axes: Vec<Axis> = self
            .dimensions
            .iter()
            .zip(strides)
            .map(|(&dimension, (&stride, &window))| Axis {
                dimension,
                stride,
                window_stride: window.unsigned_abs(),
            })
            .collect();
        while let [.., outer, inner] = axes.as_slice()
            && inner.dimension.input * self.planes * input.element.byte_width() < LONG_LINE_BYTES
            && let Some(merged) = outer.merged(inner)
        {
            axes.truncate(axes.len() - 2);
            axes.push(merged);
        }
        axes
    }

    /// Runs the convolution.
    ///
    /// # Safety
    ///
    /// As for [`Gemm::multiply`].
    pub(super) unsafe fn run(
        &self,
        gemm: &Gemm,
        pool: &Pool,
        input: &Input<'_>,
        weights: &Weights,
        target: GemmTarget<'_>,
    ) -> Result<(), ConvError> {
        let mut axes = self.axes(input, weights);
        let last = axes.pop().ok_or(ConvError::Strides { found: 0, wanted: 1 })?;
        let bytes = input.element.byte_width();
        let line = Line::new(&last.dimension, last.stride);
        let numbered = axes.iter().enumerate();
        let taps =
            numbered.map(|(at, axis)| AxisTaps::new(&axis.dimension, at)).collect::<Result<Vec<_>, _>>()?;
        let pixels = line.outputs() * taps.iter().map(|axis| axis.outputs).product::<usize>();
        let shape = Shape { m: self.planes * pixels, n: self.outputs, k: 0 };
        if shape.m == 0 || shape.n == 0 {
            return Ok(());
        }
        let chunks = self.chunks(&axes, &line, bytes);
        let summed = match target.out {
            None if chunks.len() > 1 => Some(gemm.scratch_buffer(shape.m.saturating_mul(shape.n * bytes))?),
            _ => None,
        };
        let (out, stride) = match &summed {
            Some(summed) => (Some(summed.as_ptr()), shape.n),
            None => (target.out, target.stride),
        };
        let zeros = vec![0u8; last.dimension.window * bytes];
        for (at, chunk) in chunks.iter().enumerate() {
            let copy = LineCopy::new(&line, &taps, &axes_strides(&axes), chunk, self.planes, bytes);
            let lines = chunk.lines(&taps);
            let shape = Shape { k: lines.len() * last.dimension.window, ..shape };
            let copied = gemm.scratch_buffer(copy.bytes())?;
            let packed = gemm.scratch_buffer(gemm.packed_len(shape.k, shape.n)?)?;
            let operands: Vec<Operand> =
                lines.iter().map(|line| line_of(weights, &axes, &last, line)).collect();
            let is_last = at + 1 == chunks.len();
            let sink = target.sink.filter(|_| is_last);
            let target = GemmTarget { out, stride, accumulate: at > 0, sink, ..target };
            // SAFETY: guaranteed by the caller; the buffers have the sizes of the copies.
            unsafe {
                copy.fill(pool, input, copied.as_ptr());
                let rhs =
                    gemm.pack_taps_into(&operands, last.dimension.window, shape.n, packed.as_ptr(), pool)?;
                let rows = LineRows {
                    data: copied.as_ptr(),
                    element: input.element,
                    pitch: copy.plane_bytes(),
                    window: last.dimension.window,
                    lines: lines.len(),
                    line_offsets: copy.line_offsets(&taps, &lines),
                    pixel_offsets: line.pixel_offsets().map(|offset| offset * bytes).collect(),
                    zeros: zeros.as_ptr(),
                };
                gemm.multiply_rows(pool, shape, &rows, rhs, target)?;
            }
        }
        Ok(())
    }

    /// The channels and the elements of the outermost dimension's window that are summed at a time.
    fn chunks(&self, axes: &[Axis], line: &Line, bytes: usize) -> Vec<Chunk> {
        let inputs: usize = axes.iter().map(|axis| axis.dimension.input).product();
        let windows: usize = axes.iter().map(|axis| axis.dimension.window).product();
        let elements = self.planes * inputs * line.len() + windows * line.window() * self.outputs;
        let each = elements.saturating_mul(bytes).max(1);
        let window = axes.first().map_or(1, |axis| axis.dimension.window);
        let (together, parts) = match CHUNK_BYTES / each {
            0 => (1, each.div_ceil(CHUNK_BYTES).min(window).max(1)),
            together => (together, 1),
        };
        let channels = (0..self.channels).step_by(together);
        let channels = channels.map(|first| first..self.channels.min(first + together));
        let part = window.div_ceil(parts).max(1);
        channels
            .flat_map(|channels| {
                (0..window).step_by(part).map(move |first| Chunk {
                    channels: channels.clone(),
                    window: first..window.min(first + part),
                })
            })
            .collect()
    }
}

fn axes_strides(axes: &[Axis]) -> Vec<(usize, usize)> {
    axes.iter().map(|axis| (axis.dimension.input, axis.stride)).collect()
}

/// The weights of a line of the window.
fn line_of(weights: &Weights, axes: &[Axis], last: &Axis, line: &WindowLine) -> Operand {
    let place: usize = axes.iter().zip(&line.window).map(|(axis, at)| axis.window_stride * at).sum();
    let at = place + line.channel * weights.input_stride;
    Operand {
        data: weights.data.wrapping_add(at * weights.element.byte_width()),
        element: weights.element,
        row_stride: last.window_stride,
        column_stride: weights.output_stride,
    }
}

/// The left-hand operand: a row for each output pixel of each plane, with a run for each line of the window.
struct LineRows {
    data: *const u8,
    element: ElementType,
    /// From one plane to the next, in bytes.
    pitch: usize,
    /// Elements of a run.
    window: usize,
    lines: usize,
    /// Where a line is in a plane, in bytes, for each position of the window along all dimensions but the last; none in the padding.
    line_offsets: Vec<Option<usize>>,
    /// Where the run of an output pixel begins in a line, in bytes.
    pixel_offsets: Vec<usize>,
    zeros: *const u8,
}

// SAFETY: the copy is not written while rows are read.
unsafe impl Sync for LineRows {}

impl LhsRows for LineRows {
    fn taps(&self) -> usize {
        self.lines
    }

    fn run(&self) -> usize {
        self.window
    }

    fn element(&self) -> ElementType {
        self.element
    }

    fn addresses(&self, first: usize, count: usize, table: &mut [*const u8]) {
        let across = self.pixel_offsets.len();
        let positions = self.line_offsets.len() / self.lines.max(1);
        for at in 0..count {
            let (row, pixel) = ((first + at) / across, (first + at) % across);
            let (plane, position) = (row / positions, row % positions);
            let start = self.data.wrapping_add(plane * self.pitch + self.pixel_offsets[pixel]);
            let offsets = &self.line_offsets[position * self.lines..][..self.lines];
            for (address, offset) in table[at..].iter_mut().step_by(count).zip(offsets) {
                *address = offset.map_or(self.zeros, |offset| start.wrapping_add(offset));
            }
        }
    }
}

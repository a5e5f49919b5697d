//! Depthwise convolution.

use std::ops::Range;

use super::axis::{WindowAxis, WindowOffsets, bytes_of};
use super::depthwise_kernel::{DepthwiseKernel, PixelGroup, Tap};
use crate::data_movement::LayoutError;
use crate::output_block::{BlockSink, OutputBlock};
use crate::pool::Pool;

/// Approximate multiplications of a task.
const TASK_ELEMENTS: usize = 1 << 18;

/// A planned f32 depthwise convolution with zero padding. Images are row-major with channels last.
#[derive(Debug, Clone)]
pub struct Depthwise {
    /// Offsets along each spatial dimension, in elements.
    axes: Vec<WindowOffsets>,
    /// Windows along the last spatial dimension without padding, if they have a constant stride.
    inside: Range<usize>,
    /// Elements between neighbouring windows of those.
    step: usize,
    dims: Vec<usize>,
    channels: usize,
    multiplier: usize,
    /// Elements of an image of the input.
    image: usize,
    /// Rows along the last spatial dimension: of an image of the result, of all, of a task.
    image_rows: usize,
    rows: usize,
    rows_per_task: usize,
    kernel: DepthwiseKernel,
}

impl Depthwise {
    /// A convolution of images of `dims` (batch, spatial sizes, channels) with windows along the spatial dimensions.
    /// Each input channel has `multiplier` adjacent output channels.
    ///
    /// # Errors
    ///
    /// When there is no spatial dimension, sizes do not fit or values get too large.
    pub fn new(dims: &[usize], axes: &[WindowAxis], multiplier: usize) -> Result<Self, LayoutError> {
        let (&[batch, .., channels], Some(last)) = (dims, axes.last()) else {
            return Err(LayoutError::Sizes("an image has a batch, spatial dimensions and channels"));
        };
        let spatial = &dims[1..dims.len() - 1];
        crate::data_movement::check_rank("windows", axes.len(), spatial.len())?;
        let strides = crate::data_movement::row_major(dims)?;
        let all = spatial.iter().zip(axes).zip(&strides[1..]);
        let offsets: Vec<WindowOffsets> = all
            .map(|((&size, axis), stride)| axis.offsets(size, stride.unsigned_abs()))
            .collect::<Result<_, _>>()?;
        let mut result = vec![batch];
        result.extend(offsets.iter().map(WindowOffsets::windows));
        result.push(channels.checked_mul(multiplier).ok_or(LayoutError::Overflow)?);
        // The sizes of both arrays and of the weights must not overflow in bytes.
        let taps: Vec<usize> = axes.iter().map(|axis| axis.size).collect();
        let weights = [&taps[..], &result[result.len() - 1..]].concat();
        for sizes in [dims, &result, &weights] {
            bytes_of(sizes, size_of::<f32>())?;
        }
        let along = offsets.last().map_or(0, WindowOffsets::windows);
        let padded = |window: usize| {
            offsets.last().is_some_and(|last| last.of(window).contains(&WindowOffsets::PADDING))
        };
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
            axes: offsets,
            inside,
            step: last.stride.saturating_mul(channels),
            channels,
            multiplier,
            image: dims[1..].iter().product(),
            image_rows,
            rows: if empty { 0 } else { batch * image_rows },
            rows_per_task: (TASK_ELEMENTS / cost.max(1)).max(1),
            dims: result,
            kernel: DepthwiseKernel::best(),
        })
    }

    /// The sizes of the result: batch, spatial sizes, channels.
    #[must_use]
    pub fn dims(&self) -> &[usize] {
        &self.dims
    }

    /// Packs weights for [`run`](Self::run), from a row-major array of the window sizes and the output channels.
    ///
    /// # Errors
    ///
    /// When there are not as many.
    pub fn pack(&self, weights: &[f32]) -> Result<Vec<f32>, LayoutError> {
        let taps: usize = self.axes.iter().map(WindowOffsets::size).product();
        if weights.len() != taps * self.channels * self.multiplier {
            return Err(LayoutError::Sizes("there are not as many weights as windows and channels need"));
        }
        let mut packed = Vec::with_capacity(weights.len());
        // All channels, for each tap and each channel multiple.
        for tap in weights.chunks_exact((self.channels * self.multiplier).max(1)) {
            for which in 0..self.multiplier {
                packed.extend(tap.iter().skip(which).step_by(self.multiplier));
            }
        }
        Ok(packed)
    }

    /// Convolves, and passes each row of finished pixels to `sink`: pixels are counted through the whole batch. Without
    /// `target`, a row is valid only until the sink returns.
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
        sink: Option<&BlockSink<'_>>,
    ) {
        let taps: usize = self.axes.iter().map(WindowOffsets::size).product();
        assert_eq!(weights.len(), taps * self.channels * self.multiplier, "weights of this convolution");
        let (source, target) =
            (crate::shared_ptr::SharedPtr::new(source), crate::shared_ptr::SharedPtr::new(target));
        let [.., width, columns] = self.dims[..] else { return };
        pool.run(self.rows.div_ceil(self.rows_per_task), &|task, worker| {
            let mut scratch = Scratch::default();
            let own = if target.get().is_none() { width * columns } else { 0 };
            scratch.row.resize(own, 0.0);
            let first = task * self.rows_per_task;
            for row in first..(first + self.rows_per_task).min(self.rows) {
                let own = scratch.row.as_mut_ptr();
                // The row is one of the result's, and no other task has it.
                let data = target.get().map_or(own, |target| target.wrapping_add(row * width * columns));
                // SAFETY: the caller guarantees the buffers.
                unsafe { self.row(row, source.get(), weights, data, &mut scratch) };
                if let Some(sink) = sink {
                    let rows = row * width..(row + 1) * width;
                    sink(&OutputBlock {
                        rows,
                        columns: 0..columns,
                        data: data.cast(),
                        stride: columns,
                        worker,
                    });
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
        // With a multiplier, all first multiples are computed, then all second ones.
        plane.resize(if self.multiplier == 1 { 0 } else { width * self.channels }, 0.0);
        for which in 0..self.multiplier {
            let to = if self.multiplier == 1 { target } else { plane.as_mut_ptr() };
            let mut pixel = 0;
            while pixel < width {
                let count = if self.inside.contains(&pixel) { self.inside.end - pixel } else { 1 };
                taps.clear();
                for outer in &*outer {
                    for (element, &input_index) in along.of(pixel).iter().enumerate() {
                        if input_index != WindowOffsets::PADDING {
                            let tap = (outer.weight * along.size() + element) * self.multiplier + which;
                            taps.push(Tap {
                                source: outer.source + input_index,
                                weight: tap * self.channels,
                            });
                        }
                    }
                }
                let group = PixelGroup { pixels: count, step: self.step, channels: self.channels };
                // SAFETY: offsets are inside the image, weights were counted, and the pixels are in the row.
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
    fn outer_taps(&self, outer: &[WindowOffsets], mut row: usize, start: usize, scratch: &mut Scratch) {
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
                for (element, &input_index) in axis
                    .of(at)
                    .iter()
                    .enumerate()
                    .filter(|(_, input_index)| **input_index != WindowOffsets::PADDING)
                {
                    let weight = tap.weight * axis.size() + element;
                    scratch.taps.push(Tap { source: tap.source + input_index, weight });
                }
            }
            std::mem::swap(&mut scratch.outer, &mut scratch.taps);
        }
    }
}

/// Scratch memory of a task.
#[derive(Default)]
struct Scratch {
    row: Vec<f32>,
    plane: Vec<f32>,
    outer: Vec<Tap>,
    taps: Vec<Tap>,
}

//! Copies of inputs whose lines of pixels are contiguous, plane by plane.

use std::ops::Range;

use super::chunk::{Chunk, WindowLine};
use crate::conv::geometry::{AxisTaps, Dimension};
use crate::conv::input::Input;
use crate::data_movement::{StridedLoop, TransposeKernel, copy_elements};
use crate::pool::Pool;
use crate::shared_ptr::SharedPtr;

/// The last dimension. Its pixels are copied phase by phase: those that one element of the output reads are contiguous whatever the window dilation.
#[derive(Debug)]
pub(super) struct Line {
    dimension: Dimension,
    /// From one pixel to the next, in elements.
    stride: usize,
    /// The phases that are read.
    phases: Vec<usize>,
    /// For each output the index of its phase, and the first pixel that it reads of it.
    starts: Vec<(usize, usize)>,
    /// Pixels of a phase.
    phase_len: usize,
}

impl Line {
    pub(super) fn new(dimension: &Dimension, stride: usize) -> Self {
        let Dimension { input, window, stride: step, padding, window_dilation: dilation, .. } = *dimension;
        let reach = (window.max(1) - 1) * dilation + 1;
        let padded = input as i64 + padding.0 + padding.1;
        let outputs = usize::try_from(padded - reach as i64).map_or(0, |room| room / step + 1);
        let mut phases: Vec<usize> = (0..outputs).map(|output| output * step % dilation).collect();
        phases.sort_unstable();
        phases.dedup();
        let starts: Vec<(usize, usize)> = (0..outputs)
            .map(|output| {
                let phase = output * step % dilation;
                (phases.partition_point(|&other| other < phase), output * step / dilation)
            })
            .collect();
        let phase_len = window + starts.iter().map(|&(_, first)| first).max().unwrap_or(0);
        Self { dimension: *dimension, stride, phases, starts, phase_len }
    }

    /// Elements of the output along the line.
    pub(super) fn outputs(&self) -> usize {
        self.starts.len()
    }

    /// Elements of the window along the line.
    pub(super) fn window(&self) -> usize {
        self.dimension.window
    }

    /// Pixels of a copied line.
    pub(super) fn len(&self) -> usize {
        self.phases.len() * self.phase_len
    }

    /// Where the run of each output begins in a copied line.
    pub(super) fn pixel_offsets(&self) -> impl Iterator<Item = usize> {
        self.starts.iter().map(|&(phase, first)| phase * self.phase_len + first)
    }

    /// The pixels of a phase that are not padding, and the pixel of the input that the first of them is.
    fn inside(&self, phase: usize) -> (Range<usize>, usize) {
        let by = self.dimension.window_dilation as i64;
        let before = self.dimension.padding.0 - phase as i64;
        let bound = |pixel: i64| {
            (pixel.div_euclid(by) + i64::from(pixel.rem_euclid(by) != 0)).clamp(0, self.phase_len as i64)
        };
        let first = bound(before);
        let end = bound(self.dimension.input as i64 + before).max(first);
        (first as usize..end as usize, (first * by - before).max(0) as usize)
    }
}

/// The copy of the lines of a chunk: planes of channels of lines.
#[derive(Debug)]
pub(super) struct LineCopy<'a> {
    line: &'a Line,
    channels: Range<usize>,
    /// For each dimension but the last the elements that are copied, and from one to the next in the input, in elements.
    axes: Vec<(Range<usize>, usize)>,
    planes: usize,
    /// Bytes of an element.
    bytes: usize,
}

/// Bytes of a cache line.
const CACHE_LINE: usize = 64;
/// Distances of planes at multiples of so many bytes would map them to the same few cache sets.
const ALIASED: usize = 512;

impl<'a> LineCopy<'a> {
    /// The copy of the lines of the input that a chunk reads. `sizes` has the elements of each dimension but the last, and the distance between them.
    pub(super) fn new(
        line: &'a Line,
        taps: &[AxisTaps],
        sizes: &[(usize, usize)],
        chunk: &Chunk,
        planes: usize,
        bytes: usize,
    ) -> Self {
        let mut axes: Vec<(Range<usize>, usize)> =
            sizes.iter().map(|&(size, stride)| (0..size, stride)).collect();
        if let (Some((elements, _)), Some(taps)) = (axes.first_mut(), taps.first()) {
            let window = chunk.window.clone();
            let read = (0..taps.outputs).flat_map(|output| taps.at(output)[window.clone()].iter().flatten());
            let read = read.map(|&element| element as usize);
            let (low, high) = read.fold((usize::MAX, 0), |(low, high), at| (low.min(at), high.max(at + 1)));
            *elements = low.min(high)..high;
        }
        Self { line, channels: chunk.channels.clone(), axes, planes, bytes }
    }

    /// Lines of a channel.
    fn lines(&self) -> usize {
        self.axes.iter().map(|(elements, _)| elements.len()).product()
    }

    /// Bytes of a plane.
    pub(super) fn plane_bytes(&self) -> usize {
        let bytes = self.channels.len() * self.lines() * self.line.len() * self.bytes;
        let whole = bytes.next_multiple_of(CACHE_LINE);
        whole + if whole.is_multiple_of(ALIASED) { CACHE_LINE } else { 0 }
    }

    /// Bytes of the copy.
    pub(super) fn bytes(&self) -> usize {
        self.planes.saturating_mul(self.plane_bytes())
    }

    /// Where the lines of the window are in a plane, for each position of the window along all dimensions but the last; none in the padding.
    pub(super) fn line_offsets(&self, taps: &[AxisTaps], lines: &[WindowLine]) -> Vec<Option<usize>> {
        let positions: usize = taps.iter().map(|axis| axis.outputs).product();
        let offset = |position: usize, line: &WindowLine| {
            let mut place = line.channel - self.channels.start;
            let mut below = positions;
            for ((axis, &element), (copied, _)) in taps.iter().zip(&line.window).zip(&self.axes) {
                below /= axis.outputs;
                let read = axis.at(position / below % axis.outputs)[element]? as usize;
                place = place * copied.len() + (read - copied.start);
            }
            Some(place * self.line.len() * self.bytes)
        };
        (0..positions).flat_map(|position| lines.iter().map(move |line| offset(position, line))).collect()
    }

    /// Makes the copy.
    ///
    /// # Safety
    ///
    /// The input has the elements of the copy, and `to` as many bytes; nothing else uses them during the call.
    pub(super) unsafe fn fill(&self, pool: &Pool, input: &Input<'_>, to: *mut u8) {
        let to = SharedPtr::new(to);
        let lines = self.lines();
        let input = SharedInput(*input);
        pool.run(self.channels.len() * lines, &|at, _| {
            let input = &input;
            let mut place = (self.channels.start + at / lines) * input.0.channel_stride;
            let mut left = at % lines;
            for (elements, stride) in self.axes.iter().rev() {
                place += (elements.start + left % elements.len()) * stride;
                left /= elements.len();
            }
            // SAFETY: guaranteed by the caller; tasks are lines.
            unsafe {
                let source = input.0.data.add(place * self.bytes);
                self.copy_line(source, input.0.batch_stride, to.get().add(at * self.line.len() * self.bytes));
            }
        });
    }

    /// Copies a line of all planes.
    unsafe fn copy_line(&self, source: *const u8, plane_stride: usize, to: *mut u8) {
        let (line, bytes) = (self.line, self.bytes);
        let pitch = self.plane_bytes();
        let step = line.stride * line.dimension.window_dilation;
        for (at, &phase) in line.phases.iter().enumerate() {
            let (inside, first) = line.inside(phase);
            // SAFETY: guaranteed by the caller; the pixels inside are those of the input.
            unsafe {
                let to = to.add(at * line.phase_len * bytes);
                for plane in 0..self.planes {
                    let to = to.add(plane * pitch);
                    to.write_bytes(0, inside.start * bytes);
                    to.add(inside.end * bytes).write_bytes(0, (line.phase_len - inside.end) * bytes);
                }
                if inside.is_empty() {
                    continue;
                }
                let (source, to) = (source.add(first * line.stride * bytes), to.add(inside.start * bytes));
                let planes = StridedLoop {
                    size: self.planes,
                    source: (plane_stride * bytes) as isize,
                    target: pitch as isize,
                };
                let pixels = StridedLoop {
                    size: inside.len(),
                    source: (step * bytes) as isize,
                    target: bytes as isize,
                };
                match plane_stride {
                    1 => TransposeKernel::best(bytes).transpose_block(
                        bytes,
                        (planes, pixels),
                        source,
                        to,
                        false,
                    ),
                    _ => copy_elements(bytes, planes, pixels, source, to),
                }
            }
        }
    }
}

/// An input that tasks read.
struct SharedInput<'a>(Input<'a>);

// SAFETY: nothing writes to the input while the tasks run.
unsafe impl Sync for SharedInput<'_> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_hold_what_each_output_reads() {
        for dilation in 1..4 {
            for step in 1..3 {
                for padding in [(0, 0), (1, 1), (2, 0), (-1, 2), (5, 5)] {
                    let dimension = Dimension {
                        stride: step,
                        padding,
                        window_dilation: dilation,
                        ..Dimension::new(9, 4)
                    };
                    let (line, taps) = (Line::new(&dimension, 1), AxisTaps::new(&dimension, 0).unwrap());
                    assert_eq!(line.outputs(), taps.outputs, "{dimension:?}");
                    let mut copied = vec![None; line.len()];
                    for (at, &phase) in line.phases.iter().enumerate() {
                        let (inside, first) = line.inside(phase);
                        for (pixel, place) in inside.enumerate() {
                            copied[at * line.phase_len + place] = Some((first + pixel * dilation) as u32);
                        }
                    }
                    for (output, start) in line.pixel_offsets().enumerate() {
                        assert_eq!(
                            &copied[start..start + 4],
                            taps.at(output),
                            "{dimension:?}, output {output}"
                        );
                    }
                }
            }
        }
    }
}

//! A padded and dilated copy of an input, for inputs of few channels.

use warpforge_tensor::ElementType;

use super::geometry::{AxisTaps, Dimension};
use crate::gemm::pack_copy::{PackFn, PackRegion};
use crate::pool::Pool;
use crate::shared_ptr::SharedPtr;

/// The layout of a copy: for each element along each dimension the element of the input, or padding.
#[derive(Debug, Clone)]
pub(super) struct PaddedCopy {
    inputs: Vec<Vec<Option<u32>>>,
}

/// The copy's source.
pub(super) struct CopySource<'a> {
    pub(super) data: *const u8,
    pub(super) element: ElementType,
    /// In elements.
    pub(super) batch_stride: usize,
    /// In elements.
    pub(super) channel_stride: usize,
    /// In elements, for each dimension.
    pub(super) strides: &'a [usize],
    pub(super) batch: usize,
    pub(super) channels: usize,
}

// SAFETY: the caller guarantees that nothing writes to its input during the call.
unsafe impl Sync for CopySource<'_> {}

impl PaddedCopy {
    /// A copy with padding and dilation.
    pub(super) fn new(dimensions: &[Dimension]) -> Self {
        let inputs = dimensions.iter().map(|dimension| {
            let dilated =
                (dimension.input.max(1) - 1) * dimension.base_dilation + usize::from(dimension.input > 0);
            let extent = dilated as i64 + dimension.padding.0 + dimension.padding.1;
            (0..extent.max(0) as usize).map(|at| dimension.element(at))
        });
        Self { inputs: inputs.map(Iterator::collect).collect() }
    }

    /// A copy of these elements along each dimension.
    pub(super) fn of(inputs: Vec<Vec<Option<u32>>>) -> Self {
        Self { inputs }
    }

    /// A copy without padding.
    pub(super) fn plain(dimensions: &[Dimension]) -> Self {
        let all = |dimension: &Dimension| (0..dimension.input as u32).map(Some).collect();
        Self { inputs: dimensions.iter().map(all).collect() }
    }

    /// The sizes of the copy's dimensions.
    pub(super) fn sizes(&self) -> Vec<usize> {
        self.inputs.iter().map(Vec::len).collect()
    }

    /// The taps over the copy, with the last dimension of the window merged into the run.
    pub(super) fn merged(&self, dimensions: &[Dimension], lines: &[AxisTaps]) -> Vec<AxisTaps> {
        let last = dimensions.len() - 1;
        let line = |(at, dimension): (usize, &Dimension)| {
            let input_index = |output: usize, element: usize| {
                Some((output * dimension.stride + element * dimension.window_dilation) as u32)
            };
            let window = if at == last { 1 } else { dimension.window };
            AxisTaps::from_fn(lines[at].outputs, window, input_index)
        };
        dimensions.iter().enumerate().map(line).collect()
    }

    /// Fills the copy: dense images, one after another, with elements of `bytes` bytes.
    ///
    /// # Safety
    ///
    /// The source is valid for its sizes, the target for those of the copy; `copy` converts from the element type of
    /// the source to that of the target.
    pub(super) unsafe fn fill(
        &self,
        pool: &Pool,
        source: &CopySource<'_>,
        copy: PackFn,
        target: *mut u8,
        bytes: usize,
    ) {
        let Some((line, outer)) = self.inputs.split_last() else { return };
        let rows: usize = outer.iter().map(Vec::len).product();
        let row_bytes = line.len() * source.channels * bytes;
        let target = SharedPtr::new(target);
        pool.run(source.batch * rows, &|at, _| {
            // SAFETY: each row belongs to one task.
            let to = unsafe { target.get().add(at * row_bytes) };
            let mut offset = Some(at / rows * source.batch_stride);
            let mut left = at % rows;
            for (inputs, stride) in outer.iter().zip(source.strides).rev() {
                let input_index = inputs[left % inputs.len()];
                offset = offset
                    .zip(input_index)
                    .map(|(offset, input_index)| offset + input_index as usize * stride);
                left /= inputs.len();
            }
            // SAFETY: guaranteed by the caller.
            unsafe {
                match offset {
                    Some(offset) => {
                        let from = source.data.add(offset * source.element.byte_width());
                        row(source, line, copy, from, to, bytes);
                    }
                    None => to.write_bytes(0, row_bytes),
                }
            }
        });
    }
}

/// Copies one row of pixels, those that follow each other at once.
unsafe fn row(
    source: &CopySource<'_>,
    line: &[Option<u32>],
    copy: PackFn,
    from: *const u8,
    to: *mut u8,
    bytes: usize,
) {
    let (channels, stride) = (source.channels, source.strides[source.strides.len() - 1]);
    let mut at = 0;
    while at < line.len() {
        // SAFETY: the row has that many pixels.
        let to = unsafe { to.add(at * channels * bytes) };
        let Some(input_index) = line[at] else {
            let padding = line[at..].iter().take_while(|input_index| input_index.is_none()).count();
            // SAFETY: as above.
            unsafe { to.write_bytes(0, padding * channels * bytes) };
            at += padding;
            continue;
        };
        let next = |&(ahead, other): &(usize, &Option<u32>)| *other == Some(input_index + ahead as u32);
        let pixels = line[at..].iter().enumerate().take_while(next).count();
        let dense = source.channel_stride == 1 && stride == channels;
        let (rows, columns) = if dense { (1, pixels * channels) } else { (pixels, channels) };
        // SAFETY: that many pixels follow each other in the source and the target.
        unsafe {
            copy(&PackRegion {
                source: from.add(input_index as usize * stride * source.element.byte_width()),
                row_stride: stride,
                column_stride: source.channel_stride,
                rows,
                columns,
                rows_written: rows,
                columns_written: columns,
                first_row: 0,
                group: 1,
                target: to,
                target_stride: channels,
            });
        }
        at += pixels;
    }
}

//! A copy of an input with its padding and dilation, for inputs of few channels.

use warpforge_tensor::ElementType;

use super::geometry::{Dimension, Line};
use crate::gemm::drive::Shared;
use crate::gemm::pack::{Copy, Part};
use crate::pool::Pool;

/// What a copy of an input looks like: along each dimension the element of the input that each element is, or padding.
#[derive(Debug, Clone)]
pub(super) struct Padded {
    places: Vec<Vec<Option<u32>>>,
}

/// The copy's source.
pub(super) struct Source<'a> {
    pub(super) data: *const u8,
    pub(super) element: ElementType,
    /// In elements.
    pub(super) batch_stride: usize,
    /// In elements, for each dimension.
    pub(super) strides: &'a [usize],
    pub(super) batch: usize,
    pub(super) channels: usize,
}

// SAFETY: who runs the convolution promises that nobody writes to its input meanwhile.
unsafe impl Sync for Source<'_> {}

impl Padded {
    /// A copy with padding and dilation.
    pub(super) fn new(dimensions: &[Dimension]) -> Self {
        let places = dimensions.iter().map(|dimension| {
            let dilated =
                (dimension.input.max(1) - 1) * dimension.base_dilation + usize::from(dimension.input > 0);
            let extent = dilated as i64 + dimension.padding.0 + dimension.padding.1;
            (0..extent.max(0) as usize).map(|at| dimension.element(at))
        });
        Self { places: places.map(Iterator::collect).collect() }
    }

    /// A copy of these elements along each dimension.
    pub(super) fn of(places: Vec<Vec<Option<u32>>>) -> Self {
        Self { places }
    }

    /// A copy of the input as it is.
    pub(super) fn plain(dimensions: &[Dimension]) -> Self {
        let all = |dimension: &Dimension| (0..dimension.input as u32).map(Some).collect();
        Self { places: dimensions.iter().map(all).collect() }
    }

    /// The sizes of the copy's dimensions.
    pub(super) fn sizes(&self) -> Vec<usize> {
        self.places.iter().map(Vec::len).collect()
    }

    /// The convolution over the copy, whose window has its last dimension in the run.
    pub(super) fn merged(&self, dimensions: &[Dimension], lines: &[Line]) -> Vec<Line> {
        let last = dimensions.len() - 1;
        let line = |(at, dimension): (usize, &Dimension)| {
            let place = |output: usize, element: usize| {
                Some((output * dimension.stride + element * dimension.window_dilation) as u32)
            };
            let window = if at == last { 1 } else { dimension.window };
            Line::from_fn(lines[at].outputs, window, place)
        };
        dimensions.iter().enumerate().map(line).collect()
    }

    /// Makes the copy: images after each other, each dense, of elements of `bytes` bytes.
    ///
    /// # Safety
    ///
    /// The source is good for its sizes, the target for those of the copy; `copy` makes the target's elements of the
    /// source's.
    pub(super) unsafe fn fill(
        &self,
        pool: &Pool,
        source: &Source<'_>,
        copy: Copy,
        target: *mut u8,
        bytes: usize,
    ) {
        let Some((line, outer)) = self.places.split_last() else { return };
        let rows: usize = outer.iter().map(Vec::len).product();
        let row_bytes = line.len() * source.channels * bytes;
        let target = Shared(target);
        pool.run(source.batch * rows, &|at, _| {
            // SAFETY: each row is one piece's own.
            let to = unsafe { target.get().add(at * row_bytes) };
            let mut offset = Some(at / rows * source.batch_stride);
            let mut left = at % rows;
            for (places, stride) in outer.iter().zip(source.strides).rev() {
                let place = places[left % places.len()];
                offset = offset.zip(place).map(|(offset, place)| offset + place as usize * stride);
                left /= places.len();
            }
            // SAFETY: as the caller promises.
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

/// Copies one row of pixels, as many at a time as lie side by side.
unsafe fn row(
    source: &Source<'_>,
    line: &[Option<u32>],
    copy: Copy,
    from: *const u8,
    to: *mut u8,
    bytes: usize,
) {
    let (channels, stride) = (source.channels, source.strides[source.strides.len() - 1]);
    let mut at = 0;
    while at < line.len() {
        // SAFETY: the row has so many pixels.
        let to = unsafe { to.add(at * channels * bytes) };
        let Some(place) = line[at] else {
            let padding = line[at..].iter().take_while(|place| place.is_none()).count();
            // SAFETY: as above.
            unsafe { to.write_bytes(0, padding * channels * bytes) };
            at += padding;
            continue;
        };
        let next = |&(ahead, other): &(usize, &Option<u32>)| *other == Some(place + ahead as u32);
        let together =
            if stride == channels { line[at..].iter().enumerate().take_while(next).count() } else { 1 };
        // SAFETY: so many pixels lie side by side in the source and the target.
        unsafe {
            copy(&Part {
                source: from.add(place as usize * stride * source.element.byte_width()),
                row_stride: 0,
                column_stride: 1,
                rows: 1,
                columns: together * channels,
                rows_written: 1,
                columns_written: together * channels,
                first_row: 0,
                group: 1,
                target: to,
                target_stride: 0,
            });
        }
        at += together;
    }
}

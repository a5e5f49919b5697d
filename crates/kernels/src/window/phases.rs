//! Windows side by side as lanes: a row of elements parted by their place in the stride.
//!
//! Neighbouring windows read elements a stride apart. Parted into as many rows as the stride is long, the elements that
//! neighbouring windows read lie side by side.

use super::axis::WindowAxis;
use crate::data_movement::LayoutError;

/// Windows that are lanes at once, at most: their elements stay in the nearest cache.
const MOST_WINDOWS: usize = 512;

/// Fewer windows are reduced one by one.
const LEAST_WINDOWS: usize = 4;

/// Elements that a window reaches over, at most.
const MOST_REACH: usize = 1 << 12;

/// The windows along the last dimension of an array whose elements are lanes of their own.
#[derive(Debug, Clone)]
pub(super) struct Phases {
    windows: usize,
    /// Windows of a block.
    block: usize,
    stride: usize,
    low: i64,
    /// Elements of a row of the array.
    elements: usize,
    element_size: usize,
    /// The places in a stride that windows have elements at.
    phases: Vec<usize>,
    /// Elements of a phase for a block, beyond as many as it has windows.
    beyond: usize,
    /// Where the first window's elements are among the parted ones, in bytes.
    offsets: Vec<usize>,
}

impl Phases {
    /// How to part rows of `elements` elements, if that is worth it.
    pub(super) fn new(
        axis: &WindowAxis,
        elements: usize,
        element_size: usize,
    ) -> Result<Option<Self>, LayoutError> {
        let windows = axis.count(elements)?;
        let reach = (axis.size - 1).saturating_mul(axis.dilation);
        if windows < LEAST_WINDOWS
            || axis.base_dilation != 1
            || reach > MOST_REACH
            || ![1, 2, 4, 8].contains(&element_size)
        {
            return Ok(None);
        }
        let (stride, block) = (axis.stride, windows.min(MOST_WINDOWS));
        let places = (0..axis.size).map(|element| element * axis.dilation);
        let mut phases: Vec<usize> = places.clone().map(|place| place % stride).collect();
        phases.sort_unstable();
        phases.dedup();
        let beyond = reach / stride;
        let pitch = block + beyond;
        let offset = |place: usize| {
            let phase = phases.partition_point(|&phase| phase < place % stride);
            (phase * pitch + place / stride) * element_size
        };
        let offsets = places.map(offset).collect();
        Ok(Some(Self {
            windows,
            block,
            stride,
            low: axis.low,
            elements,
            element_size,
            phases,
            beyond,
            offsets,
        }))
    }

    /// Windows of a row.
    pub(super) fn windows(&self) -> usize {
        self.windows
    }

    /// Blocks of windows in a row.
    pub(super) fn blocks(&self) -> usize {
        self.windows.div_ceil(self.block)
    }

    /// Windows of a block, at most.
    pub(super) fn block(&self) -> usize {
        self.block
    }

    /// The windows of a block.
    pub(super) fn windows_of(&self, block: usize) -> std::ops::Range<usize> {
        block * self.block..((block + 1) * self.block).min(self.windows)
    }

    /// Bytes of a parted row.
    pub(super) fn bytes(&self) -> usize {
        self.phases.len() * (self.block + self.beyond) * self.element_size
    }

    /// Where the elements of a block's first window are in a parted row; those of the next windows follow each.
    pub(super) fn offsets(&self) -> &[usize] {
        &self.offsets
    }

    /// Parts the elements of a row that a block reads. Padding is `init`, one or more elements.
    ///
    /// # Safety
    ///
    /// A row of the array may be read at `row`.
    pub(super) unsafe fn part(&self, row: *const u8, block: usize, init: &[u8], parted: &mut [u8]) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            match self.element_size {
                1 => self.part_as::<u8>(row, block, init, parted),
                2 => self.part_as::<u16>(row, block, init, parted),
                4 => self.part_as::<u32>(row, block, init, parted),
                _ => self.part_as::<u64>(row, block, init, parted),
            }
        }
    }

    /// # Safety
    ///
    /// As for [`Self::part`]; elements are of type `T`.
    unsafe fn part_as<T: bytemuck::Pod>(&self, row: *const u8, block: usize, init: &[u8], parted: &mut [u8]) {
        let size = size_of::<T>();
        let init: T = bytemuck::pod_read_unaligned(&init[..size]);
        let windows = self.windows_of(block);
        let count = windows.len() + self.beyond;
        let pitch = (self.block + self.beyond) * size;
        for (&phase, parted) in self.phases.iter().zip(parted.chunks_exact_mut(pitch)) {
            let parted = parted[..count * size].as_mut_ptr().cast::<T>();
            // The element of the row that comes first; negative in the padding.
            let first = (windows.start * self.stride + phase) as i64 - self.low;
            let before =
                usize::try_from(-first).map_or(0, |lacking| lacking.div_ceil(self.stride)).min(count);
            let start = first + (before * self.stride) as i64;
            let inside = usize::try_from(self.elements as i64 - start)
                .map_or(0, |left| left.div_ceil(self.stride))
                .min(count - before);
            // SAFETY: there is room for as many elements, and those from `start` on lie in the row.
            unsafe {
                for at in (0..before).chain(before + inside..count) {
                    parted.add(at).write_unaligned(init);
                }
                let (from, to) = (row.cast::<T>().wrapping_offset(start as isize), parted.add(before));
                match self.stride {
                    1 => std::ptr::copy_nonoverlapping(from.cast::<u8>(), to.cast::<u8>(), inside * size),
                    2 => strided::<T, 2>(from, to, inside),
                    3 => strided::<T, 3>(from, to, inside),
                    stride => {
                        for at in 0..inside {
                            to.add(at).write_unaligned(from.add(at * stride).read_unaligned());
                        }
                    }
                }
            }
        }
    }
}

/// Copies every `S`th element.
///
/// # Safety
///
/// The elements may be read and written.
unsafe fn strided<T: Copy, const S: usize>(from: *const T, to: *mut T, count: usize) {
    for at in 0..count {
        // SAFETY: guaranteed by the caller.
        unsafe { to.add(at).write_unaligned(from.add(at * S).read_unaligned()) };
    }
}

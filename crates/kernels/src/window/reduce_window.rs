//! Reduction of every window of an array: pooling.

use warpforge_tensor::ElementType;

use super::axis::{WindowAxis, WindowOffsets, bytes_of};
use super::phases::Phases;
use crate::data_movement::LayoutError;
use crate::pool::Pool;
use crate::reduce::{ReduceElement, ReduceLanes, ReduceOp, for_element, reduce_lanes};

/// Approximate elements of a task.
const TASK_ELEMENTS: usize = 1 << 16;

/// A planned `reduce_window` of a row-major array.
#[derive(Debug, Clone)]
pub struct ReduceWindow {
    /// Offsets along each dimension that windows span, in bytes.
    axes: Vec<WindowOffsets>,
    dims: Vec<usize>,
    /// Elements of the trailing dimensions; where there are none, windows side by side.
    lanes: usize,
    /// How windows side by side are the lanes.
    phases: Option<Phases>,
    reduction: ReduceLanes,
    /// `lanes` times the initial value.
    init: Vec<u8>,
    /// Whether padding does not affect the result.
    neutral: bool,
    element_size: usize,
    windows: usize,
    windows_per_task: usize,
}

impl ReduceWindow {
    /// Reduces windows of an array of `dims`, each starting from `init`, an element, which is also the value of
    /// padding.
    ///
    /// # Errors
    ///
    /// When sizes are inconsistent or overflow, or the reduction does not support the element type.
    pub fn new(
        element: ElementType,
        reduction: ReduceOp,
        dims: &[usize],
        axes: &[WindowAxis],
        init: &[u8],
    ) -> Result<Self, LayoutError> {
        crate::data_movement::check_rank("windows", axes.len(), dims.len())?;
        let element_size = element.byte_width();
        if init.len() != element_size {
            return Err(LayoutError::Sizes("the initial value is not one element"));
        }
        let function = reduce_lanes(reduction, element)
            .ok_or(LayoutError::Element { what: "a window reduction", found: element })?;
        let strides = crate::data_movement::row_major(dims)?;
        let touched = dims.len() - axes.iter().rev().take_while(|axis| axis.is_plain()).count();
        let (front, back) = dims.split_at(touched);
        let lanes = bytes_of(back, 1)?;
        bytes_of(dims, element_size)?;
        let offsets = front.iter().zip(axes).zip(&strides);
        let offsets: Vec<WindowOffsets> = offsets
            .map(|((&size, axis), &stride)| axis.offsets(size, stride.unsigned_abs() * element_size))
            .collect::<Result<_, _>>()?;
        let counts: Vec<usize> =
            offsets.iter().map(WindowOffsets::windows).chain(back.iter().copied()).collect();
        bytes_of(&counts, element_size)?;
        let windows = bytes_of(&counts[..touched], 1)?;
        let size = axes.iter().fold(lanes, |size, axis| size.saturating_mul(axis.size));
        let (axes, mut offsets) = (&axes[..touched], offsets);
        let phases = match (lanes, axes.last(), front.last()) {
            (1, Some(axis), Some(&elements)) => Phases::new(axis, elements, element_size)?,
            _ => None,
        };
        let (lanes, windows, size) = match &phases {
            Some(phases) => {
                offsets.pop();
                let block = phases.block();
                (block, windows / phases.windows() * phases.blocks(), size.saturating_mul(block))
            }
            None => (lanes, windows, size),
        };
        let neutral = reduction.is_idempotent() || is_neutral(reduction, element, init);
        Ok(Self {
            axes: offsets,
            dims: counts,
            lanes,
            phases,
            reduction: function,
            init: init.repeat(lanes),
            neutral,
            element_size,
            windows: if lanes == 0 { 0 } else { windows },
            windows_per_task: (TASK_ELEMENTS / size.max(1)).max(1),
        })
    }

    /// The sizes of the result.
    #[must_use]
    pub fn dims(&self) -> &[usize] {
        &self.dims
    }

    /// Runs the reduction.
    ///
    /// # Safety
    ///
    /// The array may be read at `source` and the result written at `target`; they have no byte in common.
    pub unsafe fn run(&self, pool: &Pool, source: *const u8, target: *mut u8) {
        let (source, target) =
            (crate::shared_ptr::SharedPtr::new(source), crate::shared_ptr::SharedPtr::new(target));
        pool.run(self.windows.div_ceil(self.windows_per_task), &|task, _| {
            let first = task * self.windows_per_task;
            let last = (first + self.windows_per_task).min(self.windows);
            // SAFETY: tasks write different windows; the caller guarantees the buffers.
            unsafe { self.task(first..last, source.get(), target.get()) }
        });
    }

    /// # Safety
    ///
    /// As for [`Self::run`], with the target's windows written by this thread alone.
    unsafe fn task(&self, windows: std::ops::Range<usize>, source: *const u8, target: *mut u8) {
        if let Some(phases) = &self.phases {
            // SAFETY: guaranteed by the caller.
            return unsafe { self.blocks(phases, windows, source, target) };
        }
        let (along, outer) = match self.axes.split_last() {
            Some((last, outer)) => (last.windows(), outer),
            None => (1, &*self.axes),
        };
        let bytes = self.lanes * self.element_size;
        let (mut rows, mut spare) = (Vec::new(), Vec::new());
        let mut elements: Vec<*const u8> = Vec::new();
        let mut row = None;
        for window in windows {
            if row != Some(window / along) {
                row = Some(window / along);
                self.row(outer, window / along, &mut rows, &mut spare);
            }
            elements.clear();
            elements.push(self.init.as_ptr());
            let columns = self.axes.last().map_or(&[0][..], |last| last.of(window % along));
            for &row in &rows {
                for &column in columns {
                    if row != WindowOffsets::PADDING && column != WindowOffsets::PADDING {
                        elements.push(source.wrapping_add(row + column));
                    } else if !self.neutral {
                        elements.push(self.init.as_ptr());
                    }
                }
            }
            // SAFETY: offsets are inside the array, the window is one of the result's.
            unsafe { (self.reduction)(&elements, self.lanes, target.add(window * bytes)) };
        }
    }

    /// Reduces blocks of windows that are side by side along the last dimension.
    ///
    /// # Safety
    ///
    /// As for [`Self::task`].
    unsafe fn blocks(
        &self,
        phases: &Phases,
        blocks: std::ops::Range<usize>,
        source: *const u8,
        target: *mut u8,
    ) {
        let (mut rows, mut spare, mut parted) = (Vec::new(), Vec::new(), Vec::new());
        let mut elements: Vec<*const u8> = Vec::new();
        for block in blocks {
            let (row, block) = (block / phases.blocks(), block % phases.blocks());
            let windows = phases.windows_of(block);
            self.row(&self.axes, row, &mut rows, &mut spare);
            parted.resize(rows.len() * phases.bytes(), 0);
            elements.clear();
            elements.push(self.init.as_ptr());
            for (&row, parted) in rows.iter().zip(parted.chunks_exact_mut(phases.bytes())) {
                if row == WindowOffsets::PADDING {
                    elements.extend(phases.offsets().iter().map(|_| self.init.as_ptr()));
                } else {
                    // SAFETY: the row is inside the array.
                    unsafe { phases.part(source.wrapping_add(row), block, &self.init, parted) };
                    elements.extend(phases.offsets().iter().map(|&at| parted.as_ptr().wrapping_add(at)));
                }
            }
            let at = (row * phases.windows() + windows.start) * self.element_size;
            // SAFETY: parted rows have the elements of all windows of a block, which are some of the result's.
            unsafe { (self.reduction)(&elements, windows.len(), target.add(at)) };
        }
    }

    /// The offsets of a window along all dimensions but the last, in order.
    fn row(&self, outer: &[WindowOffsets], mut at: usize, rows: &mut Vec<usize>, spare: &mut Vec<usize>) {
        let mut index = vec![0; outer.len()];
        for (input_index, axis) in index.iter_mut().zip(outer).rev() {
            *input_index = at % axis.windows();
            at /= axis.windows();
        }
        rows.clear();
        rows.push(0);
        for (axis, at) in outer.iter().zip(index) {
            spare.clear();
            for &row in &*rows {
                let sums = axis.of(at).iter().map(|&input_index| {
                    if row == WindowOffsets::PADDING || input_index == WindowOffsets::PADDING {
                        WindowOffsets::PADDING
                    } else {
                        row + input_index
                    }
                });
                spare.extend(
                    sums.filter(|&input_index| !self.neutral || input_index != WindowOffsets::PADDING),
                );
            }
            std::mem::swap(rows, spare);
        }
    }
}

/// Whether reducing `init` into a sum or product that started from it changes nothing.
fn is_neutral(reduction: ReduceOp, element: ElementType, init: &[u8]) -> bool {
    fn same<T: ReduceElement + bytemuck::Pod>(reduction: ReduceOp, init: &[u8]) -> bool {
        let Ok(init) = bytemuck::try_pod_read_unaligned::<T>(init) else { return false };
        let zero: T = bytemuck::Zeroable::zeroed();
        match reduction {
            // A negative zero becomes a positive one.
            ReduceOp::Sum => bytemuck::bytes_of(&init) == bytemuck::bytes_of(&zero),
            // Only one and the zeros are their own squares, and only one is an identity.
            ReduceOp::Product => init.multiply(init) == init && init != zero && init.add(init) != init,
            _ => false,
        }
    }
    for_element!(element, T => same::<T>(reduction, init), else false)
}

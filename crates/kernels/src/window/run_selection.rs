//! Select-and-scatter where elements of a last dimension that windows do not span lie next to each other: they are the lanes of the function,
//! those of several windows at a time.

use super::axis::WindowOffsets;
use super::selection::Selection;
use crate::fused_loop::Scratch;
use crate::isa::Isa;

/// The selection of a group of windows, each for a run of lanes.
pub(super) struct RunSelection {
    run: usize,
    /// Windows of a group.
    group: usize,
    /// The elements of each window of the group, in bytes, in row-major order; as many for each.
    elements: Vec<usize>,
    /// The number of the selected element of each lane among those of its window.
    best: Vec<u32>,
    /// Its value, and that of the one that is looked at.
    most: Vec<u64>,
    other: Vec<u64>,
    keeps: Vec<u8>,
    scratch: Scratch,
    isa: Isa,
}

/// Before an element is selected.
const NONE: u32 = u32::MAX;

impl RunSelection {
    /// The selection for runs of so many lanes, of at most so many lanes at a time.
    pub(super) fn new(plan: &Selection, run: usize, most_lanes: usize) -> Self {
        let group = (most_lanes / run).clamp(1, plan.windows.max(1));
        let lanes = group * run;
        let values = || vec![0; (lanes * plan.element_size).div_ceil(size_of::<u64>())];
        Self {
            run,
            group,
            elements: Vec::new(),
            best: vec![0; lanes],
            most: values(),
            other: values(),
            keeps: vec![0; lanes],
            scratch: Scratch::new(),
            isa: Isa::best(),
        }
    }

    /// Selects an element of each window for each lane, and combines the window's element of the source into it, window by window.
    ///
    /// # Safety
    ///
    /// The elements of all windows of these lanes may be read, those of the result written.
    pub(super) unsafe fn all_windows(
        &mut self,
        plan: &Selection,
        operand: *const u8,
        source: *const u8,
        result: *mut u8,
    ) {
        let mut window = vec![0; plan.spanned.len()];
        let mut sources = Vec::with_capacity(self.group);
        for first in (0..plan.windows).step_by(self.group) {
            self.elements.clear();
            sources.clear();
            for _ in first..plan.windows.min(first + self.group) {
                append_elements(plan, &window, &mut self.elements);
                let axes = plan.spanned.iter().zip(&window);
                sources.push(axes.map(|(axis, at)| axis.source_step * at).sum::<usize>());
                for (at, axis) in window.iter_mut().zip(&plan.spanned).rev() {
                    *at += 1;
                    if *at < axis.offsets.windows() {
                        break;
                    }
                    *at = 0;
                }
            }
            // SAFETY: guaranteed by the caller.
            unsafe {
                match plan.element_size {
                    1 => self.select::<u8>(plan, operand, sources.len()),
                    2 => self.select::<u16>(plan, operand, sources.len()),
                    4 => self.select::<u32>(plan, operand, sources.len()),
                    _ => self.select::<u64>(plan, operand, sources.len()),
                }
                for (at, &from) in sources.iter().enumerate() {
                    self.scatter(plan, (at, sources.len()), source.add(from), result);
                }
            }
        }
    }

    /// # Safety
    ///
    /// The elements of these windows may be read and have the size of `T`.
    unsafe fn select<T: Copy>(&mut self, plan: &Selection, operand: *const u8, windows: usize) {
        let (run, volume) = (self.run, self.elements.len() / windows.max(1));
        let (most, other) = (self.most.as_mut_ptr().cast::<T>(), self.other.as_mut_ptr().cast::<T>());
        self.best[..windows * run].fill(NONE);
        for number in 0..volume {
            // SAFETY: guaranteed by the caller; the memory of the selection has space for all lanes. Where there is padding the selected element is
            // looked at again.
            unsafe {
                for window in 0..windows {
                    let from = match self.elements[window * volume + number] {
                        WindowOffsets::PADDING => most.add(window * run).cast_const(),
                        offset => operand.add(offset).cast::<T>(),
                    };
                    other.add(window * run).copy_from_nonoverlapping(from, run);
                }
                let arguments = [most.cast_const().cast::<u8>(), other.cast_const().cast()];
                plan.select.run(&mut self.scratch, &arguments, &[self.keeps.as_mut_ptr()], windows * run);
                for window in 0..windows {
                    if self.elements[window * volume + number] == WindowOffsets::PADDING {
                        continue;
                    }
                    let lanes = window * run..(window + 1) * run;
                    if self.best[lanes.start] == NONE {
                        self.keeps[lanes.clone()].fill(0);
                    }
                    let (most, other) = (
                        std::slice::from_raw_parts_mut(most.add(lanes.start), run),
                        std::slice::from_raw_parts(other.add(lanes.start), run),
                    );
                    let (best, keeps) = (&mut self.best[lanes.clone()], &self.keeps[lanes]);
                    replace(self.isa, keeps, (best, number as u32), (most, other));
                }
            }
        }
    }

    /// # Safety
    ///
    /// The lanes of the source may be read, the elements selected of this window of the group written.
    unsafe fn scatter(
        &self,
        plan: &Selection,
        (window, windows): (usize, usize),
        source: *const u8,
        result: *mut u8,
    ) {
        let size = plan.element_size;
        let volume = self.elements.len() / windows.max(1);
        let elements = &self.elements[window * volume..][..volume];
        for (lane, &best) in self.best[window * self.run..][..self.run].iter().enumerate() {
            let Some(best) = elements.get(best as usize) else { continue };
            // SAFETY: guaranteed by the caller.
            unsafe {
                let (to, from) = (result.add(best + lane * size), source.add(lane * size));
                match plan.combine {
                    Some(combine) => combine(&[to.cast_const(), from], 1, to),
                    None => to.copy_from_nonoverlapping(from, size),
                }
            }
        }
    }
}

/// Replaces what does not stay by another value, and its number.
fn replace<T: Copy>(isa: Isa, keeps: &[u8], best: (&mut [u32], u32), values: (&mut [T], &[T])) {
    #[cfg(target_arch = "x86_64")]
    match isa {
        // SAFETY: the CPU has these instructions.
        Isa::Avx512 => return unsafe { replace_avx512(keeps, best, values) },
        // SAFETY: as above.
        Isa::Avx2 => return unsafe { replace_avx2(keeps, best, values) },
        Isa::Portable => {}
    }
    let _ = isa;
    replace_lanes(keeps, best, values);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn replace_avx512<T: Copy>(keeps: &[u8], best: (&mut [u32], u32), values: (&mut [T], &[T])) {
    replace_lanes(keeps, best, values);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn replace_avx2<T: Copy>(keeps: &[u8], best: (&mut [u32], u32), values: (&mut [T], &[T])) {
    replace_lanes(keeps, best, values);
}

#[inline(always)]
fn replace_lanes<T: Copy>(
    keeps: &[u8],
    (best, number): (&mut [u32], u32),
    (values, others): (&mut [T], &[T]),
) {
    for ((best, &keeps), (value, &other)) in best.iter_mut().zip(keeps).zip(values.iter_mut().zip(others)) {
        *best = if keeps == 0 { number } else { *best };
        *value = if keeps == 0 { other } else { *value };
    }
}

/// Appends where the elements of a window are, in row-major order, or that they are padding.
fn append_elements(plan: &Selection, window: &[usize], elements: &mut Vec<usize>) {
    let first = elements.len();
    elements.push(0);
    for (axis, &at) in plan.spanned.iter().zip(window) {
        let outer = elements.split_off(first);
        for before in outer {
            elements.extend(axis.offsets.of(at).iter().map(|&offset| match (before, offset) {
                (WindowOffsets::PADDING, _) | (_, WindowOffsets::PADDING) => WindowOffsets::PADDING,
                (before, offset) => before + offset,
            }));
        }
    }
}

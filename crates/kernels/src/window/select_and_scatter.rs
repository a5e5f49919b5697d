//! Select-and-scatter, the gradient of pooling: an element of each window is selected by a function, and a value combined into it.

use warpforge_tensor::ElementType;

use super::axis::{WindowAxis, WindowOffsets, bytes_of};
use super::run_selection::RunSelection;
use super::selection::{Selection, Spanned};
use crate::data_movement::{LayoutError, Update, check_rank, row_major};
use crate::fused_loop::Scratch;
use crate::lane_function::{LaneFunction, LaneFunctionError};
use crate::pool::Pool;
use crate::reduce::reduce_lanes;
use crate::shared_ptr::SharedPtr;

/// Windows whose elements are selected at a time: the lanes of the function.
const LANES: usize = 512;

/// Positions of a last dimension that windows do not span from which on they are the lanes: they lie next to each other.
const MIN_RUN: usize = 8;

/// The most of them in a task.
const MAX_RUN: usize = 128;

/// Approximate windows of a task.
const TASK_WINDOWS: usize = 1 << 13;

/// A dimension that windows do not span: each of its positions has windows of its own.
#[derive(Debug, Clone, Copy)]
struct Plain {
    size: usize,
    /// Bytes from one position to the next, in the operand and in the source.
    step: usize,
    source_step: usize,
}

/// A planned select-and-scatter of row-major arrays.
#[derive(Debug)]
pub struct SelectAndScatter {
    plain: Vec<Plain>,
    selection: Selection,
    elements: usize,
    /// Positions of the last dimension, where they are the lanes; it is none of the plain ones then.
    run: Option<usize>,
}

impl SelectAndScatter {
    /// Selects an element of each window of an array of `dims`. `select` says of two elements whether the first stays selected; an element
    /// of an array of `source`, one for each window, is combined into the selected one by `scatter`. Padding is never selected.
    ///
    /// # Errors
    ///
    /// When sizes are inconsistent or overflow, or there is no kernel for a function or an element type.
    pub fn new(
        element: ElementType,
        dims: &[usize],
        source: &[usize],
        axes: &[WindowAxis],
        select: &LaneFunction,
        scatter: Update,
    ) -> Result<Self, LaneFunctionError> {
        check_rank("windows", axes.len(), dims.len())?;
        check_rank("the source", source.len(), dims.len())?;
        if select.arguments != [element; 2] {
            return Err(LayoutError::Element { what: "a selection", found: element }.into());
        }
        let element_size = element.byte_width();
        bytes_of(dims, element_size)?;
        bytes_of(source, element_size)?;
        let bytes = |strides: Vec<isize>| -> Vec<usize> {
            strides.iter().map(|stride| stride.unsigned_abs() * element_size).collect()
        };
        let (steps, source_steps) = (bytes(row_major(dims)?), bytes(row_major(source)?));
        let (mut plain, mut spanned) = (Vec::new(), Vec::new());
        for (at, axis) in axes.iter().enumerate() {
            if axis.count(dims[at])? != source[at] {
                return Err(LayoutError::Sizes("the source does not have one element per window").into());
            }
            let (step, source_step) = (steps[at], source_steps[at]);
            match axis.is_plain() {
                true => plain.push(Plain { size: dims[at], step, source_step }),
                false => spanned.push(Spanned { offsets: axis.offsets(dims[at], step)?, source_step }),
            }
        }
        let last_is_plain = axes.last().is_some_and(WindowAxis::is_plain);
        let run = dims.last().copied().filter(|&size| last_is_plain && size >= MIN_RUN);
        if run.is_some() {
            plain.pop();
        }
        let combine = match scatter {
            Update::Set => None,
            Update::Reduce(reduction) => {
                let missing = LayoutError::Element { what: "a scatter", found: element };
                Some(reduce_lanes(reduction, element).ok_or(missing)?)
            }
        };
        let selection = Selection {
            select: select.over(LANES, &[1, 1], &[ElementType::Bool])?,
            combine,
            element_size,
            windows: spanned.iter().map(|axis| axis.offsets.windows()).product(),
            spanned,
        };
        Ok(Self { plain, selection, elements: dims.iter().product(), run })
    }

    /// Runs on an operand, a source and an initial value, with which the result begins.
    ///
    /// # Safety
    ///
    /// The operand, the source and one element at `init` may be read; the result has the size of the operand, may be written, and has
    /// no byte in common with them. All are aligned to the element type.
    pub unsafe fn run(
        &self,
        pool: &Pool,
        operand: *const u8,
        source: *const u8,
        init: *const u8,
        result: *mut u8,
    ) {
        let size = self.selection.element_size;
        let [operand, source, init] = [operand, source, init].map(SharedPtr::new);
        let result = SharedPtr::new(result);
        pool.run(self.elements.div_ceil(TASK_WINDOWS), &|task, _| {
            let first = task * TASK_WINDOWS;
            for at in first..(first + TASK_WINDOWS).min(self.elements) {
                // SAFETY: guaranteed by the caller; tasks write different elements.
                unsafe { result.get().add(at * size).copy_from_nonoverlapping(init.get(), size) };
            }
        });
        // Windows of different positions of the plain dimensions have no element in common.
        let positions: usize = self.plain.iter().map(|axis| axis.size).product();
        if self.elements == 0 || self.selection.windows == 0 {
            return;
        }
        if let Some(run) = self.run {
            // SAFETY: guaranteed by the caller.
            unsafe { self.run_along(run, pool, operand.get(), source.get(), result.get()) };
            return;
        }
        let per_task = (TASK_WINDOWS / self.selection.windows).max(1);
        pool.run(positions.div_ceil(per_task), &|task, _| {
            let mut lanes = Lanes::new(size);
            for position in task * per_task..((task + 1) * per_task).min(positions) {
                let (to, from) = self.place(position);
                for first in (0..self.selection.windows).step_by(LANES) {
                    let count = LANES.min(self.selection.windows - first);
                    // SAFETY: guaranteed by the caller; tasks select among different elements.
                    unsafe {
                        lanes.select(&self.selection, operand.get().add(to), first, count);
                        lanes.scatter(&self.selection, source.get().add(from), result.get().add(to), count);
                    }
                }
            }
        });
    }
}

impl SelectAndScatter {
    /// Where a position of the plain dimensions is in the operand and in the source, in bytes.
    fn place(&self, mut position: usize) -> (usize, usize) {
        let (mut to, mut from) = (0, 0);
        for axis in self.plain.iter().rev() {
            let index = position % axis.size;
            position /= axis.size;
            (to, from) = (to + index * axis.step, from + index * axis.source_step);
        }
        (to, from)
    }

    /// Selects for all positions of the last dimension at once.
    unsafe fn run_along(
        &self,
        run: usize,
        pool: &Pool,
        operand: *const u8,
        source: *const u8,
        result: *mut u8,
    ) {
        let [operand, source] = [operand, source].map(SharedPtr::new);
        let result = SharedPtr::new(result);
        let positions: usize = self.plain.iter().map(|axis| axis.size).product();
        let parts = run.div_ceil(MAX_RUN);
        pool.run(positions * parts, &|task, _| {
            let (position, part) = (task / parts, task % parts);
            let lanes = part * run / parts..(part + 1) * run / parts;
            let (to, from) = self.place(position);
            let first = lanes.start * self.selection.element_size;
            // SAFETY: guaranteed by the caller; tasks have different lanes or positions.
            unsafe {
                let (operand, source) = (operand.get().add(to + first), source.get().add(from + first));
                let mut selection = RunSelection::new(&self.selection, lanes.len(), LANES);
                selection.all_windows(&self.selection, operand, source, result.get().add(to + first));
            }
        });
    }
}

/// The windows that a task works on.
struct Lanes {
    /// The position of each window in the source, in bytes.
    source: Vec<usize>,
    /// The element selected so far, in bytes, and its value.
    best: Vec<usize>,
    most: Vec<u64>,
    /// The element that is looked at, and its value.
    candidate: Vec<usize>,
    other: Vec<u64>,
    /// The window along each spanned dimension.
    windows: Vec<Vec<usize>>,
    keeps: Vec<u64>,
    scratch: Scratch,
}

impl Lanes {
    fn new(element_size: usize) -> Self {
        let values = || vec![0; (LANES * element_size).div_ceil(size_of::<u64>())];
        Self {
            source: vec![0; LANES],
            best: vec![0; LANES],
            most: values(),
            candidate: vec![0; LANES],
            other: values(),
            windows: Vec::new(),
            keeps: vec![0; LANES.div_ceil(size_of::<u64>())],
            scratch: Scratch::new(),
        }
    }

    /// Selects an element of each of some windows.
    ///
    /// # Safety
    ///
    /// The elements of the windows may be read.
    unsafe fn select(&mut self, plan: &Selection, operand: *const u8, first: usize, count: usize) {
        self.place(plan, first, count);
        self.best[..count].fill(WindowOffsets::PADDING);
        let sizes: Vec<usize> = plan.spanned.iter().map(|axis| axis.offsets.size()).collect();
        let volume: usize = sizes.iter().product();
        let mut element = vec![0; sizes.len()];
        for number in 0..volume {
            self.look_at(plan, &element, count);
            // SAFETY: guaranteed by the caller; lanes have space for that many elements.
            unsafe {
                match plan.element_size {
                    1 => self.take::<u8>(plan, operand, count, number == 0),
                    2 => self.take::<u16>(plan, operand, count, number == 0),
                    4 => self.take::<u32>(plan, operand, count, number == 0),
                    _ => self.take::<u64>(plan, operand, count, number == 0),
                }
            }
            for (at, &size) in element.iter_mut().zip(&sizes).rev() {
                *at += 1;
                if *at < size {
                    break;
                }
                *at = 0;
            }
        }
    }

    /// The place of each window along the spanned dimensions, and in the source.
    fn place(&mut self, plan: &Selection, first: usize, count: usize) {
        self.windows.resize(plan.spanned.len(), vec![0; LANES]);
        for lane in 0..count {
            let mut at = first + lane;
            self.source[lane] = 0;
            for (axis, windows) in plan.spanned.iter().zip(&mut self.windows).rev() {
                windows[lane] = at % axis.offsets.windows();
                at /= axis.offsets.windows();
                self.source[lane] += windows[lane] * axis.source_step;
            }
        }
    }

    /// The position of an element of each window.
    fn look_at(&mut self, plan: &Selection, element: &[usize], count: usize) {
        self.candidate[..count].fill(0);
        for ((axis, windows), &element) in plan.spanned.iter().zip(&self.windows).zip(element) {
            for (candidate, &window) in self.candidate[..count].iter_mut().zip(windows) {
                let offset = axis.offsets.of(window)[element];
                let inside = *candidate != WindowOffsets::PADDING && offset != WindowOffsets::PADDING;
                *candidate = if inside { *candidate + offset } else { WindowOffsets::PADDING };
            }
        }
    }

    /// Takes the elements that are looked at where they are selected.
    ///
    /// # Safety
    ///
    /// The elements may be read and have the size of `T`.
    unsafe fn take<T: Copy>(&mut self, plan: &Selection, operand: *const u8, count: usize, is_first: bool) {
        let (most, other) = (self.most.as_mut_ptr().cast::<T>(), self.other.as_mut_ptr().cast::<T>());
        let keeps = self.keeps.as_mut_ptr().cast::<u8>();
        // SAFETY: guaranteed by the caller; all lanes have values, those of padding the selected ones.
        unsafe {
            for (lane, &candidate) in self.candidate[..count].iter().enumerate() {
                let value = match candidate {
                    WindowOffsets::PADDING => most.add(lane).read(),
                    inside => operand.add(inside).cast::<T>().read(),
                };
                other.add(lane).write(value);
            }
            if !is_first {
                let arguments = [most.cast_const().cast::<u8>(), other.cast_const().cast()];
                plan.select.run(&mut self.scratch, &arguments, &[keeps], count);
            }
            for lane in 0..count {
                let (candidate, best) = (self.candidate[lane], &mut self.best[lane]);
                let stays = !is_first && *best != WindowOffsets::PADDING && keeps.add(lane).read() != 0;
                if candidate != WindowOffsets::PADDING && !stays {
                    *best = candidate;
                    most.add(lane).write(other.add(lane).read());
                }
            }
        }
    }

    /// Combines an element of the source into the selected element of each window, in order.
    ///
    /// # Safety
    ///
    /// The elements may be read and written.
    unsafe fn scatter(&self, plan: &Selection, source: *const u8, result: *mut u8, count: usize) {
        for (&best, &from) in self.best[..count].iter().zip(&self.source) {
            if best == WindowOffsets::PADDING {
                continue;
            }
            // SAFETY: guaranteed by the caller.
            unsafe {
                let (to, from) = (result.add(best), source.add(from));
                match plan.combine {
                    Some(combine) => combine(&[to.cast_const(), from], 1, to),
                    None => to.copy_from_nonoverlapping(from, plan.element_size),
                }
            }
        }
    }
}

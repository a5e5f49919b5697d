//! Scatter.

use warpforge_tensor::ElementType;

use super::copy::row_major;
use super::error::LayoutError;
use super::indices::{IndexVectors, Indices, others};
use crate::pool::Pool;
use crate::reduce::{ReduceLanes, ReduceOp, reduce_lanes};
use crate::shared_ptr::SharedPtr;

/// Minimum elements of a task, to amortize reading the indices again.
const TASK_ELEMENTS: usize = 1 << 15;

/// Windows whose places are found together.
const TOGETHER: usize = 64;

/// The place of a window that is not wholly inside of the operand.
const CROPPED: usize = usize::MAX;

/// How an update is combined with the operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Update {
    /// Replaces the element; the last update wins.
    Set,
    /// Reduces both, in the order of the updates.
    Reduce(ReduceOp),
}

/// The parameters of a scatter.
#[derive(Debug, Clone)]
pub struct ScatterSpec {
    /// The type of the elements.
    pub element: ElementType,
    /// The sizes of the operand, which is row-major.
    pub operand: Vec<usize>,
    /// Start indices of the windows. Elements outside of the operand are dropped.
    pub indices: Indices,
    /// The sizes of the updates, which are row-major.
    pub updates: Vec<usize>,
    /// The dimensions of the updates that are those of a window; the others are those of the indices.
    pub update_window_dims: Vec<usize>,
    /// Inserted dimensions of the operand; batching dimensions are not listed.
    pub inserted: Vec<usize>,
    /// How an update is combined with the operand.
    pub update: Update,
}

/// One dimension of the operand.
#[derive(Debug, Clone, Copy)]
struct Axis {
    size: i64,
    step: usize,
    /// How far a window reaches along it, and the bytes from one of its elements to the next in the updates.
    window: i64,
    update_step: usize,
}

/// A planned scatter into an existing row-major array.
#[derive(Debug, Clone)]
pub struct Scatter {
    vectors: IndexVectors,
    axes: Vec<Axis>,
    /// Bytes of the updates from one window to the next along each dimension of the indices.
    steps: Vec<usize>,
    element_size: usize,
    reduction: Option<ReduceLanes>,
    count: usize,
    /// A dimension that no index moves, and the number of tasks that it is split into: each handles one part of all
    /// windows, in order.
    cut: Option<(usize, usize)>,
}

impl Scatter {
    /// Plans a scatter.
    ///
    /// # Errors
    ///
    /// When dimensions and sizes are inconsistent, a size overflows, or the reduction does not support the element
    /// type.
    pub fn new(spec: &ScatterSpec) -> Result<Self, LayoutError> {
        let rank = spec.operand.len();
        let vectors = IndexVectors::new(&spec.indices, rank)?;
        let batched: Vec<usize> = spec.indices.batching.iter().map(|&(dim, _)| dim).collect();
        let axes = others(rank, &[&spec.inserted, &batched]);
        let scatter_dims = others(spec.updates.len(), &[&spec.update_window_dims]);
        let batch: Vec<usize> = scatter_dims.iter().map(|&dim| spec.updates[dim]).collect();
        let fits = axes.len() == spec.update_window_dims.len()
            && spec.update_window_dims.iter().all(|&dim| dim < spec.updates.len())
            && spec.update_window_dims.is_sorted_by(|a, b| a < b)
            && batch == vectors.batch;
        if !fits {
            return Err(LayoutError::Sizes("the updates are not windows of the operand"));
        }
        if !keeps_order(spec, &vectors, &axes, &scatter_dims) {
            return Err(LayoutError::Sizes("windows that overlap are not in the order of the updates"));
        }
        let reduction = match spec.update {
            Update::Set => None,
            Update::Reduce(reduction) => {
                let found = spec.element;
                Some(
                    reduce_lanes(reduction, found)
                        .ok_or(LayoutError::Element { what: "a scatter", found })?,
                )
            }
        };
        let element_size = spec.element.byte_width();
        let bytes =
            |stride: &isize| stride.unsigned_abs().checked_mul(element_size).ok_or(LayoutError::Overflow);
        let to: Vec<usize> = row_major(&spec.operand)?.iter().map(bytes).collect::<Result<_, _>>()?;
        let from: Vec<usize> = row_major(&spec.updates)?.iter().map(bytes).collect::<Result<_, _>>()?;
        let mut list: Vec<Axis> = spec
            .operand
            .iter()
            .zip(&to)
            .map(|(&size, &step)| Axis { size: size as i64, step, window: 1, update_step: 0 })
            .collect();
        for (&axis, &dim) in axes.iter().zip(&spec.update_window_dims) {
            list[axis].window = spec.updates[dim] as i64;
            list[axis].update_step = from[dim];
        }
        let steps = scatter_dims.iter().map(|&dim| from[dim]).collect();
        let elements: usize = spec.updates.iter().product();
        let cut = cut(&list, &vectors.map, elements);
        let count = if elements == 0 { 0 } else { vectors.count() };
        Ok(Self { vectors, axes: list, steps, element_size, reduction, count, cut })
    }

    /// Scatters into `target`, which holds the operand.
    ///
    /// # Safety
    ///
    /// Indices and updates may be read, the target may be read and written and has no byte in common with them.
    pub unsafe fn run(&self, pool: &Pool, target: *mut u8, indices: *const u8, updates: *const u8) {
        if self.count == 0 {
            return;
        }
        let (target, indices, updates) =
            (SharedPtr::new(target), SharedPtr::new(indices), SharedPtr::new(updates));
        let tasks = self.cut.map_or(1, |(_, parts)| parts);
        let step = self.steps.last().copied().unwrap_or(0);
        pool.run(tasks, &|task, _| {
            let part = self.part(task);
            let (mut index, mut left) = (self.vectors.index(0), self.count);
            let mut window = Window { axes: self.axes.clone(), at: vec![0; self.axes.len()] };
            let mut cropped = index.clone();
            while left > 0 {
                let count = left.min(self.vectors.left_in_line(&index)).min(TOGETHER);
                let first: usize = index.iter().zip(&self.steps).map(|(at, step)| at * step).sum();
                // SAFETY: windows are inside of the operand, or cropped to it; tasks update disjoint elements.
                unsafe {
                    let places = self.places(indices.get(), &index, count);
                    for (at, &place) in places[..count].iter().enumerate() {
                        let updates = updates.get().add(first + at * step);
                        if place == CROPPED {
                            cropped.clone_from(&index);
                            self.vectors.advance(&mut cropped, at);
                            self.window(&mut window, task, target.get(), indices.get(), updates, &cropped);
                        } else {
                            let to = target.get().add(place + part.to);
                            self.apply(&part.axes, to, updates.add(part.from));
                        }
                    }
                }
                self.vectors.advance(&mut index, count);
                left -= count;
            }
        });
    }

    /// The dimension that is split and the bounds of a task's part in windows that are not cropped.
    fn bounds(&self, task: usize) -> Option<(usize, i64, i64)> {
        let (dim, parts) = self.cut?;
        let bound = |part: usize| self.axes[dim].window * part as i64 / parts as i64;
        Some((dim, bound(task), bound(task + 1)))
    }

    /// A task's part of every window that is not cropped.
    fn part(&self, task: usize) -> Part {
        let mut part = Part { axes: self.axes.clone(), to: 0, from: 0 };
        if let Some((dim, low, high)) = self.bounds(task) {
            let axis = &mut part.axes[dim];
            axis.window = high - low;
            (part.to, part.from) = (low as usize * axis.step, low as usize * axis.update_step);
        }
        part.axes.retain(|axis| axis.window != 1);
        part
    }

    /// The bytes of the operand at which the windows of consecutive vectors begin.
    ///
    /// # Safety
    ///
    /// The indices may be read, and that many vectors are left in the line.
    #[inline(always)]
    unsafe fn places(&self, indices: *const u8, index: &[usize], count: usize) -> [usize; TOGETHER] {
        let fits = self.axes.iter().all(|axis| axis.window <= axis.size);
        let (mut places, mut starts) = ([if fits { 0 } else { CROPPED }; TOGETHER], [0; TOGETHER]);
        let add = |dim: usize, starts: &[i64]| {
            let Axis { size, step, window, .. } = self.axes[dim];
            for (place, &at) in places.iter_mut().zip(starts) {
                let is_inside = *place != CROPPED && (0..=size - window).contains(&at);
                *place = if is_inside { *place + at as usize * step } else { CROPPED };
            }
        };
        // SAFETY: guaranteed by the caller.
        unsafe { self.vectors.positions(indices, index, &mut starts[..count], add) };
        places
    }

    /// Applies the part of a window that belongs to the task and is inside the operand.
    ///
    /// # Safety
    ///
    /// As for [`Self::run`], with the task's elements touched by this thread alone.
    unsafe fn window(
        &self,
        window: &mut Window,
        task: usize,
        target: *mut u8,
        indices: *const u8,
        updates: *const u8,
        index: &[usize],
    ) {
        window.at.fill(0);
        // SAFETY: guaranteed by the caller.
        unsafe { self.vectors.positions(indices, index, &mut [0], |dim, at| window.at[dim] = at[0]) };
        let (mut to, mut from) = (0, 0);
        for (dim, axis) in self.axes.iter().enumerate() {
            let first = window.at[dim];
            let (mut low, mut high) =
                ((-first.max(-axis.window)).max(0), axis.size.saturating_sub(first).min(axis.window));
            if let Some((_, first, end)) = self.bounds(task).filter(|&(cut, ..)| cut == dim) {
                (low, high) = (low.max(first), high.min(end));
            }
            if low >= high {
                return;
            }
            to += (first + low) as usize * axis.step;
            from += low as usize * axis.update_step;
            window.axes[dim].window = high - low;
        }
        // SAFETY: the window was cut to what is inside.
        unsafe { self.apply(&window.axes, target.add(to), updates.add(from)) }
    }

    /// # Safety
    ///
    /// The window may be read at `updates` and updated at `target`.
    unsafe fn apply(&self, axes: &[Axis], target: *mut u8, updates: *const u8) {
        // Dimensions of which a window has one element need no loop.
        let Some((first, rest)) = axes.split_first() else {
            // SAFETY: guaranteed by the caller.
            return unsafe { self.lanes(1, target, updates) };
        };
        let neighbours = rest.iter().all(|axis| axis.window == 1)
            && first.step == self.element_size
            && first.update_step == self.element_size;
        // SAFETY: guaranteed by the caller.
        unsafe {
            if neighbours {
                return self.lanes(first.window as usize, target, updates);
            }
            for at in 0..first.window as usize {
                self.apply(rest, target.add(at * first.step), updates.add(at * first.update_step));
            }
        }
    }

    /// # Safety
    ///
    /// That many contiguous elements may be read at `updates` and updated at `target`.
    #[inline(always)]
    unsafe fn lanes(&self, count: usize, target: *mut u8, updates: *const u8) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            match self.reduction {
                Some(reduction) => reduction(&[target.cast_const(), updates], count, target),
                None => std::ptr::copy_nonoverlapping(updates, target, count * self.element_size),
            }
        }
    }
}

/// Whether applying updates window by window keeps the order of the updates of each element.
fn keeps_order(spec: &ScatterSpec, vectors: &IndexVectors, axes: &[usize], scatter_dims: &[usize]) -> bool {
    let leading = scatter_dims.iter().copied().eq(0..scatter_dims.len());
    let fixed = |axis: &usize| {
        let place = axes.iter().position(|other| other == axis);
        place.is_none_or(|place| spec.updates[spec.update_window_dims[place]] <= 1)
    };
    leading || vectors.map.iter().all(fixed)
}

/// A task's part of a window, and the bytes to where it begins in the operand and in the updates.
struct Part {
    axes: Vec<Axis>,
    to: usize,
    from: usize,
}

/// A cropped window and its start.
struct Window {
    axes: Vec<Axis>,
    at: Vec<i64>,
}

/// The dimension to split: the widest window dimension that indices do not move, if there is enough work.
fn cut(axes: &[Axis], moved: &[usize], elements: usize) -> Option<(usize, usize)> {
    let free = (0..axes.len()).filter(|dim| !moved.contains(dim));
    let widest = free.max_by_key(|&dim| axes[dim].window)?;
    // A cache line of f32, to avoid false sharing.
    let parts = (elements / TASK_ELEMENTS).min(axes[widest].window as usize / 16).min(8);
    (parts > 1).then_some((widest, parts))
}

//! Scattering windows to positions that are data.

use warpforge_tensor::ElementType;

use super::copy::row_major;
use super::error::LayoutError;
use super::pointer::Shared;
use super::vectors::{Indices, Vectors, others};
use crate::fold::Fold;
use crate::pool::Pool;
use crate::window::{FoldLanes, fold_lanes};

/// Fewest elements that a piece updates, so that reading the indices again for it is worth it.
const PIECE: usize = 1 << 15;

/// What becomes of an element and its update.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Update {
    /// The update; the last one where there are several.
    Set,
    /// Both folded, one update after the other in their order.
    Fold(Fold),
}

/// Which windows of the updates go where.
#[derive(Debug, Clone)]
pub struct ScatterSpec {
    /// The type of the elements.
    pub element: ElementType,
    /// The sizes of the operand, which is row-major.
    pub operand: Vec<usize>,
    /// Where the windows begin. What of a window lies outside the operand has no effect.
    pub indices: Indices,
    /// The sizes of the updates, which are row-major.
    pub updates: Vec<usize>,
    /// The dimensions of the updates that are those of a window; the others are those of the indices.
    pub update_window_dims: Vec<usize>,
    /// The dimensions of the operand that windows have one element of and the updates have not. Those that go together
    /// with a dimension of the indices are not listed.
    pub inserted: Vec<usize>,
    /// What becomes of an element and its update.
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

/// A planned scatter into a row-major array that is there.
#[derive(Debug, Clone)]
pub struct Scatter {
    vectors: Vectors,
    axes: Vec<Axis>,
    /// Bytes of the updates from one window to the next along each dimension of the indices.
    steps: Vec<usize>,
    element_size: usize,
    fold: Option<FoldLanes>,
    count: usize,
    /// A dimension along which no index moves windows, and how many parts it is cut into: each piece does one of them,
    /// of all windows in order.
    cut: Option<(usize, usize)>,
}

impl Scatter {
    /// Plans a scatter.
    ///
    /// # Errors
    ///
    /// When dimensions and sizes do not fit together, bytes cannot be counted, or there is no such fold of such elements.
    pub fn new(spec: &ScatterSpec) -> Result<Self, LayoutError> {
        let rank = spec.operand.len();
        let vectors = Vectors::new(&spec.indices, rank)?;
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
        let fold = match spec.update {
            Update::Set => None,
            Update::Fold(fold) => {
                let found = spec.element;
                Some(
                    fold_lanes(fold, found)
                        .ok_or(LayoutError::Element { what: "what is scattered", found })?,
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
        Ok(Self { vectors, axes: list, steps, element_size, fold, count, cut })
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
        let (target, indices, updates) = (Shared::new(target), Shared::new(indices), Shared::new(updates));
        let pieces = self.cut.map_or(1, |(_, parts)| parts);
        pool.run(pieces, &|piece, _| {
            let mut index = self.vectors.index(0);
            let mut window = Window { axes: self.axes.clone(), at: vec![0; self.axes.len()] };
            for _ in 0..self.count {
                let from: usize = index.iter().zip(&self.steps).map(|(at, step)| at * step).sum();
                // SAFETY: what lies outside is cut away; pieces update different elements.
                unsafe {
                    self.window(
                        &mut window,
                        piece,
                        target.get(),
                        indices.get(),
                        updates.get().add(from),
                        &index,
                    );
                }
                self.vectors.advance(&mut index);
            }
        });
    }

    /// Applies the part of a window that is the piece's and inside the operand.
    ///
    /// # Safety
    ///
    /// As for [`Self::run`], with the piece's elements touched by this thread alone.
    unsafe fn window(
        &self,
        window: &mut Window,
        piece: usize,
        target: *mut u8,
        indices: *const u8,
        updates: *const u8,
        index: &[usize],
    ) {
        window.at.fill(0);
        // SAFETY: the caller's promise.
        unsafe { self.vectors.positions(indices, index, |dim, at| window.at[dim] = at) };
        let (mut to, mut from) = (0, 0);
        for (dim, axis) in self.axes.iter().enumerate() {
            let first = window.at[dim];
            let (mut low, mut high) =
                ((-first.max(-axis.window)).max(0), axis.size.saturating_sub(first).min(axis.window));
            if let Some((cut, parts)) = self.cut.filter(|&(cut, _)| cut == dim) {
                let bound = |part: usize| self.axes[cut].window * part as i64 / parts as i64;
                (low, high) = (low.max(bound(piece)), high.min(bound(piece + 1)));
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
            // SAFETY: the caller's promise.
            return unsafe { self.lanes(1, target, updates) };
        };
        let neighbours = rest.iter().all(|axis| axis.window == 1)
            && first.step == self.element_size
            && first.update_step == self.element_size;
        // SAFETY: the caller's promise.
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
    /// So many neighbours may be read at `updates` and updated at `target`.
    #[inline(always)]
    unsafe fn lanes(&self, count: usize, target: *mut u8, updates: *const u8) {
        // SAFETY: the caller's promise.
        unsafe {
            match self.fold {
                Some(fold) => fold(&[target.cast_const(), updates], count, target),
                None => std::ptr::copy_nonoverlapping(updates, target, count * self.element_size),
            }
        }
    }
}

/// Whether going window by window applies the updates of each element in their order: either that is their order, or an
/// element is at the same place in every window that has it.
fn keeps_order(spec: &ScatterSpec, vectors: &Vectors, axes: &[usize], scatter_dims: &[usize]) -> bool {
    let leading = scatter_dims.iter().copied().eq(0..scatter_dims.len());
    let fixed = |axis: &usize| {
        let place = axes.iter().position(|other| other == axis);
        place.is_none_or(|place| spec.updates[spec.update_window_dims[place]] <= 1)
    };
    leading || vectors.map.iter().all(fixed)
}

/// A window that has been cut, and where it begins.
struct Window {
    axes: Vec<Axis>,
    at: Vec<i64>,
}

/// The dimension to cut for pieces: the widest of a window that indices do not move, if there is enough to do.
fn cut(axes: &[Axis], moved: &[usize], elements: usize) -> Option<(usize, usize)> {
    let free = (0..axes.len()).filter(|dim| !moved.contains(dim));
    let widest = free.max_by_key(|&dim| axes[dim].window)?;
    // Sixteen elements are a cache line, which two threads do not want to share.
    let parts = (elements / PIECE).min(axes[widest].window as usize / 16).min(8);
    (parts > 1).then_some((widest, parts))
}

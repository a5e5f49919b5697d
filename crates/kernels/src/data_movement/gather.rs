//! Gather: rows of a table, elements along a dimension.

use super::copy::row_major;
use super::error::{LayoutError, check_rank};
use super::indices::{IndexVectors, Indices, others};
use super::loop_nest::{LoopCounter, LoopNest};
use super::strided_loop::StridedLoop;
use crate::pool::Pool;
use crate::prefetch::prefetch_l2;
use crate::shared_ptr::SharedPtr;

/// Approximate bytes of a task.
const TASK_BYTES: usize = 64 << 10;

/// Windows whose places are found together.
const TOGETHER: usize = 256;

/// Fewest vectors of a line for which parts of windows are copied vector by vector.
const LONG_LINE: usize = 8;

/// Bytes of a window to prefetch, and how many windows before it is copied.
const AHEAD_BYTES: usize = 256;
const AHEAD: usize = 4;

/// The parameters of a gather.
#[derive(Debug, Clone)]
pub struct GatherSpec {
    /// The bytes of an element.
    pub element_size: usize,
    /// The sizes of the operand, which is row-major.
    pub operand: Vec<usize>,
    /// Start indices of the windows, clamped to the operand.
    pub indices: Indices,
    /// The sizes of a window, one for each dimension of the operand.
    pub window: Vec<usize>,
    /// Collapsed dimensions of the operand; batching dimensions are not listed.
    pub collapsed: Vec<usize>,
    /// The dimensions of the result that are those of a window; the others are those of the indices.
    pub offset_dims: Vec<usize>,
}

/// A planned gather into a row-major array.
#[derive(Debug, Clone)]
pub struct Gather {
    vectors: IndexVectors,
    /// For each dimension of the operand the last valid start index, and its stride in bytes.
    starts: Vec<(i64, usize)>,
    /// Bytes of the result from one window to the next along each dimension of the indices.
    steps: Vec<usize>,
    /// Dimensions of a window that are outside of all those of the indices: parts of windows are copied for one position in them at a time.
    outer: Vec<StridedLoop>,
    /// The rest of a window.
    window: Option<LoopNest>,
    /// The bytes of a part of a window, if it is contiguous on both sides.
    run: Option<usize>,
    dims: Vec<usize>,
    count: usize,
    /// Windows and outer positions of a task.
    per_task: (usize, usize),
}

impl Gather {
    /// Plans a gather.
    ///
    /// # Errors
    ///
    /// When dimensions and sizes are inconsistent, or a size overflows.
    pub fn new(spec: &GatherSpec) -> Result<Self, LayoutError> {
        let rank = spec.operand.len();
        let vectors = IndexVectors::new(&spec.indices, rank)?;
        check_rank("a window", spec.window.len(), rank)?;
        if spec.window.iter().zip(&spec.operand).any(|(window, size)| window > size) {
            return Err(LayoutError::Sizes("a window is larger than the operand"));
        }
        let batched: Vec<usize> = spec.indices.batching.iter().map(|&(dim, _)| dim).collect();
        let single = |&dim: &usize| spec.window.get(dim).is_some_and(|&size| size <= 1);
        if !spec.collapsed.iter().chain(&batched).all(single) {
            return Err(LayoutError::Sizes("a dimension that is left out has windows of one element"));
        }
        let kept = others(rank, &[&spec.collapsed, &batched]);
        let result_rank = vectors.batch.len() + kept.len();
        let batch_dims = others(result_rank, &[&spec.offset_dims]);
        if spec.offset_dims.len() != kept.len() || batch_dims.len() != vectors.batch.len() {
            return Err(LayoutError::Sizes("offset_dims are not those of a window"));
        }
        let mut dims = vec![0; result_rank];
        batch_dims.iter().zip(&vectors.batch).for_each(|(&dim, &size)| dims[dim] = size);
        spec.offset_dims.iter().zip(&kept).for_each(|(&dim, &axis)| dims[dim] = spec.window[axis]);
        let (from, to) = (row_major(&spec.operand)?, row_major(&dims)?);
        let bytes =
            |stride: isize| stride.unsigned_abs().checked_mul(spec.element_size).ok_or(LayoutError::Overflow);
        let is_around =
            |dim: usize| vectors.batch.last().is_some_and(|&line| line >= LONG_LINE) && dim < batch_dims[0];
        let (around, inside) =
            kept.split_at(spec.offset_dims.iter().take_while(|&&dim| is_around(dim)).count());
        let (around_dims, inside_dims) = spec.offset_dims.split_at(around.len());
        let outer = around.iter().zip(around_dims).map(|(&axis, &dim)| {
            let step = |stride: isize| Ok::<_, LayoutError>(bytes(stride)? as isize);
            Ok(StridedLoop { size: spec.window[axis], source: step(from[axis])?, target: step(to[dim])? })
        });
        let outer = StridedLoop::merged(&outer.collect::<Result<Vec<_>, LayoutError>>()?);
        let sizes: Vec<usize> = inside.iter().map(|&axis| spec.window[axis]).collect();
        let window_from: Vec<isize> = inside.iter().map(|&axis| from[axis]).collect();
        let window_to: Vec<isize> = inside_dims.iter().map(|&dim| to[dim]).collect();
        let window = LoopNest::new(spec.element_size, &sizes, &window_from, &window_to)?;
        let starts = spec.operand.iter().zip(&spec.window).zip(&from);
        let starts = starts.map(|((&size, &window), &stride)| Ok(((size - window) as i64, bytes(stride)?)));
        let length = window.as_ref().map_or(1, LoopNest::bytes);
        let count = vectors.count();
        let windows = (TASK_BYTES / length).clamp(1, count.max(1));
        Ok(Self {
            starts: starts.collect::<Result<_, LayoutError>>()?,
            steps: batch_dims.iter().map(|&dim| bytes(to[dim])).collect::<Result<_, _>>()?,
            per_task: (windows, (TASK_BYTES / (length * windows)).max(1)),
            outer,
            run: window.as_ref().filter(|nest| nest.is_one_run()).map(LoopNest::bytes),
            window: window.filter(|_| !dims.contains(&0)),
            count,
            vectors,
            dims,
        })
    }

    /// The sizes of the result.
    #[must_use]
    pub fn dims(&self) -> &[usize] {
        &self.dims
    }

    /// How many bytes are written.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.window.as_ref().map_or(0, |window| window.bytes() * self.count * self.outer_count())
    }

    fn outer_count(&self) -> usize {
        self.outer.iter().map(|each| each.size).product()
    }

    /// Runs the gather.
    ///
    /// # Safety
    ///
    /// The operand and the indices may be read, the result may be written and has no byte in common with them.
    pub unsafe fn run(&self, pool: &Pool, operand: *const u8, indices: *const u8, target: *mut u8) {
        let Some(window) = &self.window else { return };
        let (operand, indices, target) =
            (SharedPtr::new(operand), SharedPtr::new(indices), SharedPtr::new(target));
        let (windows, positions) = (self.count.div_ceil(self.per_task.0), self.outer_count());
        pool.run(windows * positions.div_ceil(self.per_task.1), &|task, _| {
            let first = task % windows * self.per_task.0;
            let mut left = self.per_task.0.min(self.count - first);
            let mut index = self.vectors.index(first);
            let outer = task / windows * self.per_task.1;
            let outer = outer..positions.min(outer + self.per_task.1);
            let (mut offsets, mut starts) = ([0; TOGETHER], [0; TOGETHER]);
            while left > 0 {
                let count = left.min(self.vectors.left_in_line(&index)).min(TOGETHER);
                let to: usize = index.iter().zip(&self.steps).map(|(at, step)| at * step).sum();
                // SAFETY: start indices were clamped to the operand, and parts of windows of the result are disjoint.
                unsafe {
                    self.offsets(indices.get(), &index, &mut starts[..count], &mut offsets[..count]);
                    let mut at = LoopCounter::new(&self.outer, outer.start);
                    for _ in outer.clone() {
                        let (from, to) =
                            (operand.get().offset(at.source), target.get().offset(at.target).add(to));
                        self.copy(window, from, &offsets[..count], to);
                        at.advance();
                    }
                }
                self.vectors.advance(&mut index, count);
                left -= count;
            }
        });
    }

    /// Copies the windows of consecutive vectors, which begin at these bytes of the operand.
    ///
    /// # Safety
    ///
    /// The windows may be read, and written from `target` on.
    unsafe fn copy(&self, window: &LoopNest, operand: *const u8, from: &[usize], target: *mut u8) {
        let step = self.steps.last().copied().unwrap_or(0);
        macro_rules! elements {
            ($integer:ident) => {
                for (at, &from) in from.iter().enumerate() {
                    // SAFETY: guaranteed by the caller.
                    unsafe {
                        let value = operand.add(from).cast::<$integer>().read_unaligned();
                        target.add(at * step).cast::<$integer>().write_unaligned(value);
                    }
                }
            };
        }
        match self.run {
            Some(1) => elements!(u8),
            Some(2) => elements!(u16),
            Some(4) => elements!(u32),
            Some(8) => elements!(u64),
            Some(bytes) => {
                let prefetch = |from: usize| {
                    let lines = (0..bytes.min(AHEAD_BYTES)).step_by(64);
                    lines.for_each(|at| prefetch_l2(operand.wrapping_add(from + at)));
                };
                from.iter().take(AHEAD).copied().for_each(prefetch);
                for (at, &now) in from.iter().enumerate() {
                    from.get(at + AHEAD).copied().into_iter().for_each(prefetch);
                    // SAFETY: guaranteed by the caller.
                    unsafe {
                        std::ptr::copy_nonoverlapping(operand.add(now), target.add(at * step), bytes);
                    }
                }
            }
            None => {
                for (at, &from) in from.iter().enumerate() {
                    for task in 0..window.tasks() {
                        // SAFETY: guaranteed by the caller.
                        unsafe { window.run(task, operand.add(from), target.add(at * step)) };
                    }
                }
            }
        }
    }

    /// Finds the bytes of the operand at which the windows of consecutive vectors begin.
    ///
    /// # Safety
    ///
    /// The indices may be read, and that many vectors are left in the line.
    #[inline(always)]
    unsafe fn offsets(&self, indices: *const u8, index: &[usize], starts: &mut [i64], offsets: &mut [usize]) {
        offsets.fill(0);
        let add = |dim: usize, starts: &[i64]| {
            let (last, step) = self.starts[dim];
            for (offset, &at) in offsets.iter_mut().zip(starts) {
                *offset += at.clamp(0, last) as usize * step;
            }
        };
        // SAFETY: guaranteed by the caller.
        unsafe { self.vectors.positions(indices, index, starts, add) };
    }
}

//! Gathering windows from positions that are data: rows of a table, elements along a dimension.

use super::copy::row_major;
use super::error::{LayoutError, check_rank};
use super::nest::Nest;
use super::pointer::Shared;
use super::prefetch::prefetch;
use super::vectors::{Indices, Vectors, others};
use crate::pool::Pool;

/// Bytes that a piece copies, more or less.
const PIECE_BYTES: usize = 64 << 10;

/// Bytes of the next window that are asked for while one is copied.
const AHEAD_BYTES: usize = 256;

/// Which windows of an operand go where.
#[derive(Debug, Clone)]
pub struct GatherSpec {
    /// The bytes of an element.
    pub element_size: usize,
    /// The sizes of the operand, which is row-major.
    pub operand: Vec<usize>,
    /// Where the windows begin. A window that would reach beyond the operand is moved inside.
    pub indices: Indices,
    /// The sizes of a window, one for each dimension of the operand.
    pub window: Vec<usize>,
    /// The dimensions of the operand that windows have one element of and the result has not. Those that go together
    /// with a dimension of the indices are not listed.
    pub collapsed: Vec<usize>,
    /// The dimensions of the result that are those of a window; the others are those of the indices.
    pub offset_dims: Vec<usize>,
}

/// A planned gather into a row-major array.
#[derive(Debug, Clone)]
pub struct Gather {
    vectors: Vectors,
    /// For each dimension of the operand the last position where a window can begin, and bytes from one to the next.
    starts: Vec<(i64, usize)>,
    /// Bytes of the result from one window to the next along each dimension of the indices.
    steps: Vec<usize>,
    window: Option<Nest>,
    /// The bytes of a window, if they are neighbours on both sides.
    run: Option<usize>,
    dims: Vec<usize>,
    count: usize,
    count_in_piece: usize,
}

impl Gather {
    /// Plans a gather.
    ///
    /// # Errors
    ///
    /// When dimensions and sizes do not fit together, or bytes cannot be counted.
    pub fn new(spec: &GatherSpec) -> Result<Self, LayoutError> {
        let rank = spec.operand.len();
        let vectors = Vectors::new(&spec.indices, rank)?;
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
        let sizes: Vec<usize> = kept.iter().map(|&axis| spec.window[axis]).collect();
        let window_from: Vec<isize> = kept.iter().map(|&axis| from[axis]).collect();
        let window_to: Vec<isize> = spec.offset_dims.iter().map(|&dim| to[dim]).collect();
        let window = Nest::new(spec.element_size, &sizes, &window_from, &window_to)?;
        let starts = spec.operand.iter().zip(&spec.window).zip(&from);
        let starts = starts.map(|((&size, &window), &stride)| Ok(((size - window) as i64, bytes(stride)?)));
        let length = window.as_ref().map_or(0, Nest::bytes);
        Ok(Self {
            starts: starts.collect::<Result<_, LayoutError>>()?,
            steps: batch_dims.iter().map(|&dim| bytes(to[dim])).collect::<Result<_, _>>()?,
            run: window.as_ref().filter(|nest| nest.is_one_run()).map(Nest::bytes),
            window: window.filter(|_| !dims.contains(&0)),
            count: vectors.count(),
            count_in_piece: (PIECE_BYTES / length.max(1)).max(1),
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
        self.window.as_ref().map_or(0, |window| window.bytes() * self.count)
    }

    /// Gathers.
    ///
    /// # Safety
    ///
    /// The operand and the indices may be read, the result may be written and has no byte in common with them.
    pub unsafe fn run(&self, pool: &Pool, operand: *const u8, indices: *const u8, target: *mut u8) {
        let Some(window) = &self.window else { return };
        let (operand, indices, target) = (Shared::new(operand), Shared::new(indices), Shared::new(target));
        pool.run(self.count.div_ceil(self.count_in_piece), &|piece, _| {
            let first = piece * self.count_in_piece;
            let count = self.count_in_piece.min(self.count - first);
            let mut index = self.vectors.index(first);
            // SAFETY: windows were moved inside the operand, and no two are the same part of the result.
            unsafe {
                let mut from = self.start(operand.get(), indices.get(), &index);
                for left in (0..count).rev() {
                    let to = index.iter().zip(&self.steps).map(|(at, step)| at * step).sum();
                    let (now, to) = (from, target.get().add(to));
                    if left > 0 {
                        self.vectors.advance(&mut index);
                        from = self.start(operand.get(), indices.get(), &index);
                    }
                    match self.run {
                        Some(4) => to.cast::<u32>().write_unaligned(now.cast::<u32>().read_unaligned()),
                        Some(8) => to.cast::<u64>().write_unaligned(now.cast::<u64>().read_unaligned()),
                        Some(bytes) => {
                            (0..bytes.min(AHEAD_BYTES))
                                .step_by(64)
                                .for_each(|at| prefetch::<false>(from.wrapping_add(at)));
                            std::ptr::copy_nonoverlapping(now, to, bytes);
                        }
                        None => (0..window.pieces()).for_each(|piece| window.run(piece, now, to)),
                    }
                }
            }
        });
    }

    /// Where the window of an index vector begins.
    ///
    /// # Safety
    ///
    /// The indices may be read.
    #[inline(always)]
    unsafe fn start(&self, operand: *const u8, indices: *const u8, index: &[usize]) -> *const u8 {
        let mut offset = 0;
        let add = |dim: usize, at: i64| {
            let (last, step) = self.starts[dim];
            offset += at.clamp(0, last) as usize * step;
        };
        // SAFETY: the caller's promise.
        unsafe { self.vectors.positions(indices, index, add) };
        operand.wrapping_add(offset)
    }
}

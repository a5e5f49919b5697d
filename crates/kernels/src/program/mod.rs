//! Small vector programs over a domain of rows and columns: chains of element-wise operations, folds over the columns of
//! rows, and what is done to the blocks of a matrix product.
//!
//! A [`Program`] is made once and run any number of times. It is evaluated tile by tile, each [`Step`] one loop over a tile
//! that stays in the first-level cache, so memory is read once and written once whatever the number of steps.

// Buffers are given as addresses.
#![allow(unsafe_code)]

mod check;
mod column_fold;
mod compute;
mod domain;
mod error;
mod execute;
mod fold;
#[cfg(target_arch = "x86_64")]
mod jit;
mod lane;
mod layout;
mod long;
mod loops;
mod number;
mod plan;
mod recover;
mod scratch;
mod slots;
mod step;
mod tile;
mod transfer;
mod vector;
mod vector_fold;

#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::ops::Range;

use warpforge_tensor::ElementType;

pub use column_fold::{ColumnFold, ColumnOutput};
pub use domain::{Access, Domain, Input, Output, Sink, Source};
pub use error::ProgramError;
pub use scratch::Scratch;
pub use step::{BinaryOp, Direction, Order, Register, Step, UnaryOp};

use crate::isa::Isa;
use crate::pool::Pool;
use plan::Plan;
use tile::Buffers;

/// Elements of a piece of work for one worker.
const PIECE: usize = 16 * 1024;

thread_local! {
    static SCRATCH: RefCell<Scratch> = const { RefCell::new(Scratch::new()) };
}

/// Calls a function with the scratch memory of the calling thread.
fn with_scratch<R>(f: impl FnOnce(&mut Scratch) -> R) -> R {
    SCRATCH.with_borrow_mut(f)
}

/// A program: steps on the elements of inputs, some of whose values are outputs.
#[derive(Debug)]
pub struct Program {
    types: Vec<ElementType>,
    /// For blocks, whose rows and columns are those of the domain.
    block: Plan,
    /// For the whole domain, where that may be cut in another way.
    whole: Option<Plan>,
}

impl Program {
    /// A program for the best instructions of this machine.
    ///
    /// # Errors
    ///
    /// When registers, types, dimensions or sizes do not fit together, or there is no such operation on a type.
    pub fn new(
        domain: &Domain,
        inputs: &[Input],
        steps: &[Step],
        outputs: &[Output],
    ) -> Result<Self, ProgramError> {
        Self::with_isa(Isa::best(), domain, inputs, steps, outputs)
    }

    /// A program for some instructions, which this machine must have.
    ///
    /// # Errors
    ///
    /// As [`Program::new`].
    pub(crate) fn with_isa(
        isa: Isa,
        domain: &Domain,
        inputs: &[Input],
        steps: &[Step],
        outputs: &[Output],
    ) -> Result<Self, ProgramError> {
        Self::made(isa, true, domain, inputs, steps, outputs)
    }

    /// A program that is interpreted, whether there could be machine code for it or not.
    #[cfg(test)]
    fn interpreted(
        isa: Isa,
        domain: &Domain,
        inputs: &[Input],
        steps: &[Step],
        outputs: &[Output],
    ) -> Result<Self, ProgramError> {
        Self::made(isa, false, domain, inputs, steps, outputs)
    }

    fn made(
        isa: Isa,
        compiled: bool,
        domain: &Domain,
        inputs: &[Input],
        steps: &[Step],
        outputs: &[Output],
    ) -> Result<Self, ProgramError> {
        let types = check::types(inputs, steps)?;
        check::places(domain, inputs, steps, outputs, &types)?;
        if let Some((steps, outputs)) = recover::recovered(steps, outputs, &types) {
            let recovered = Self::made(isa, compiled, domain, inputs, &steps, &outputs)?;
            return Ok(Self { types, ..recovered });
        }
        let plan = |apart| Plan::new(isa, domain, inputs, steps, outputs, &types, apart);
        let compile = |plan: Plan| if compiled { plan.compiled(isa, steps, &types) } else { plan };
        let block = plan(true)?;
        let tiled = inputs.iter().any(|input| input.source == Source::Tile)
            || outputs.iter().any(|output| output.sink == Sink::Tile);
        // Only what is run often is worth machine code: blocks where there are tiles, else the whole domain.
        let (block, whole) = match tiled || block.whole_rows {
            true => (compile(block), None),
            false => (block, Some(compile(plan(false)?))),
        };
        Ok(Self { types, block, whole })
    }

    /// The type of a step's value; `None` if there is no such step.
    #[must_use]
    pub fn element(&self, register: Register) -> Option<ElementType> {
        self.types.get(register.0).copied()
    }

    /// Runs the program over its whole domain.
    ///
    /// # Safety
    ///
    /// There is a buffer for each input and each output, aligned to its elements, that holds all elements which its access
    /// names and that nothing else writes (or, for outputs, reads) meanwhile. Outputs overlap neither each other nor an
    /// input, but an output may be an input's buffer if both have the same access and type width. The program has no
    /// [`Source::Tile`] and no [`Sink::Tile`].
    pub unsafe fn run(&self, pool: &Pool, inputs: &[*const u8], outputs: &[*mut u8]) {
        let plan = self.whole.as_ref().unwrap_or(&self.block);
        let tile = std::ptr::null_mut();
        let buffers = Buffers { inputs, outputs, tile, tile_stride: 0, tile_origin: (0, 0) };
        let (rows, columns) = (plan.layout.row_count, plan.layout.column_count);
        if plan.long_rows() {
            // SAFETY: the caller's promise.
            return unsafe { long::run(plan, Some(pool), &mut Scratch::new(), &buffers, 0..rows) };
        }
        let part = if plan.whole_rows { columns.max(1) } else { columns.clamp(1, PIECE) };
        let across = columns.div_ceil(part).max(1);
        let height = (PIECE / part).max(1);
        let down = rows.div_ceil(height);
        let past_caches = plan.can_stream(outputs);
        let buffers = &buffers;
        pool.run(down * across, &|piece, _| {
            let (row, column) = (piece / across * height, piece % across * part);
            let rows = row..(row + height).min(rows);
            let columns = column..(column + part).min(columns);
            with_scratch(|scratch| {
                // SAFETY: the caller's promise; pieces do not overlap.
                unsafe { execute::block(plan, scratch, buffers, rows, columns, past_caches) }
            });
        });
    }

    /// Runs the program over a block of its domain on the calling thread. The tile's first element is that of the block's
    /// first row and column; its rows lie `tile_stride` elements apart. A program with a [`Step::Reduce`] takes all
    /// columns.
    ///
    /// # Safety
    ///
    /// As [`Program::run`] for the elements of the block; the tile can be read and written as the program's inputs and
    /// outputs say, and overlaps no buffer.
    #[allow(clippy::too_many_arguments)] // What a block is takes that many words.
    pub unsafe fn run_block(
        &self,
        scratch: &mut Scratch,
        inputs: &[*const u8],
        outputs: &[*mut u8],
        rows: Range<usize>,
        columns: Range<usize>,
        tile: *mut u8,
        tile_stride: usize,
    ) {
        let tile_origin = (rows.start, columns.start);
        let buffers = Buffers { inputs, outputs, tile, tile_stride, tile_origin };
        // SAFETY: the caller's promise.
        unsafe { execute::block(&self.block, scratch, &buffers, rows, columns, false) }
    }
}

//! Fused loops: a small vector IR over a domain of rows and columns, for chains of elementwise operations, reductions
//! over the columns of rows, and GEMM epilogues.
//!
//! A [`FusedLoop`] is created once and run any number of times. It is interpreted tile by tile, each [`Inst`] as one
//! loop over a tile that stays in the L1 cache, or compiled to machine code (`jit`); memory is read once and written
//! once in either case.

// Buffers are passed as pointers.
#![allow(unsafe_code)]

mod check;
mod column_reduction;
mod compiled;
mod domain;
mod error;
mod execute;
mod inst;
#[cfg(target_arch = "x86_64")]
mod jit;
mod lane_type;
mod layout;
mod long_rows;
mod loop_plan;
mod loop_select;
mod loops;
mod reduce;
mod scalar_ops;
mod scratch;
mod scratch_slots;
mod tile_eval;
mod transfer;
mod vector_loops;
mod vector_reduce;

#[cfg(test)]
mod tests;

use std::ops::Range;

use warpforge_tensor::ElementType;

pub use column_reduction::{ColumnOutput, ColumnReduction};
pub use domain::{Access, Domain, Input, Output, Sink, Source};
pub use error::FusedLoopError;
pub use inst::{Direction, Inst, Order, Register};
pub use scratch::Scratch;
pub use warpforge_tensor::elementwise::Function;

use crate::isa::Isa;
use crate::pool::Pool;
use compiled::CompiledLoop;
use loop_plan::LoopPlan;
use scratch::with_scratch;
use tile_eval::LoopBuffers;

/// Elements of a task.
const TASK_ELEMENTS: usize = 16 * 1024;

/// A fused loop: instructions on the elements of inputs, some of whose values are outputs.
#[derive(Debug)]
pub struct FusedLoop {
    types: Vec<ElementType>,
    /// The plan for blocks, with the rows and columns of the domain.
    block: CompiledLoop,
    /// The plan for the whole domain, where that may be split differently.
    whole: Option<CompiledLoop>,
}

impl FusedLoop {
    /// Creates a fused loop for the best instruction set of this CPU.
    ///
    /// # Errors
    ///
    /// When registers, types, dimensions or sizes are inconsistent, or an operation does not support an element type.
    pub fn new(
        domain: &Domain,
        inputs: &[Input],
        insts: &[Inst],
        outputs: &[Output],
    ) -> Result<Self, FusedLoopError> {
        Self::with_isa(Isa::best(), domain, inputs, insts, outputs)
    }

    /// Creates a fused loop for an instruction set, which this CPU must have.
    ///
    /// # Errors
    ///
    /// As [`FusedLoop::new`].
    pub(crate) fn with_isa(
        isa: Isa,
        domain: &Domain,
        inputs: &[Input],
        insts: &[Inst],
        outputs: &[Output],
    ) -> Result<Self, FusedLoopError> {
        Self::with_options(isa, true, domain, inputs, insts, outputs)
    }

    /// Creates a fused loop that is interpreted even if it could be compiled: the oracle of compiled loops.
    ///
    /// # Errors
    ///
    /// As [`FusedLoop::new`].
    pub fn interpreted(
        domain: &Domain,
        inputs: &[Input],
        insts: &[Inst],
        outputs: &[Output],
    ) -> Result<Self, FusedLoopError> {
        Self::with_options(Isa::best(), false, domain, inputs, insts, outputs)
    }

    /// Whether the loop runs as machine code; otherwise it is interpreted.
    #[must_use]
    pub fn is_compiled(&self) -> bool {
        self.whole.as_ref().unwrap_or(&self.block).is_compiled()
    }

    fn with_options(
        isa: Isa,
        compiled: bool,
        domain: &Domain,
        inputs: &[Input],
        insts: &[Inst],
        outputs: &[Output],
    ) -> Result<Self, FusedLoopError> {
        let types = check::types(inputs, insts)?;
        check::accesses(domain, inputs, insts, outputs, &types)?;
        let plan = |apart| LoopPlan::new(isa, domain, inputs, insts, outputs, &types, apart);
        let compile = |plan: LoopPlan| match compiled {
            true => CompiledLoop::compiled(plan, isa, insts, &types),
            false => CompiledLoop::interpreted(plan),
        };
        let block = plan(true)?;
        let tiled = inputs.iter().any(|input| input.source == Source::Tile)
            || outputs.iter().any(|output| output.sink == Sink::Tile);
        // Only plans that run often are compiled: blocks where there are tiles, else the whole domain.
        let (block, whole) = match tiled || block.whole_rows {
            true => (compile(block), None),
            false => (CompiledLoop::interpreted(block), Some(compile(plan(false)?))),
        };
        Ok(Self { types, block, whole })
    }

    /// The element type of a register; `None` if it does not exist.
    #[must_use]
    pub fn element(&self, register: Register) -> Option<ElementType> {
        self.types.get(register.0).copied()
    }

    /// Runs over the whole domain.
    ///
    /// # Safety
    ///
    /// There is a buffer for each input and output, aligned to its elements, that holds all elements of its access;
    /// nothing else writes it (or, for outputs, reads it) during the call. Outputs overlap neither each other nor an
    /// input, except that an output may be the buffer of an input with the same access and element size. The loop has
    /// no [`Source::Tile`] and no [`Sink::Tile`].
    pub unsafe fn run(&self, pool: &Pool, inputs: &[*const u8], outputs: &[*mut u8]) {
        let compiled = self.whole.as_ref().unwrap_or(&self.block);
        let plan = &compiled.plan;
        let tile = std::ptr::null_mut();
        let buffers = LoopBuffers { inputs, outputs, tile, tile_stride: 0, tile_origin: (0, 0) };
        let (rows, columns) = (plan.layout.row_count, plan.layout.column_count);
        if plan.has_long_rows() {
            // SAFETY: guaranteed by the caller.
            return unsafe { long_rows::run(plan, Some(pool), &mut Scratch::new(), &buffers, 0..rows) };
        }
        let part = if plan.whole_rows { columns.max(1) } else { columns.clamp(1, TASK_ELEMENTS) };
        let across = columns.div_ceil(part).max(1);
        let height = (TASK_ELEMENTS / part).max(1);
        let down = rows.div_ceil(height);
        let nontemporal = compiled.can_stream(outputs);
        let buffers = &buffers;
        pool.run(down * across, &|task, _| {
            let (row, column) = (task / across * height, task % across * part);
            let rows = row..(row + height).min(rows);
            let columns = column..(column + part).min(columns);
            with_scratch(|scratch| {
                // SAFETY: guaranteed by the caller; tasks do not overlap.
                unsafe { execute::block(compiled, scratch, buffers, rows, columns, nontemporal) }
            });
        });
    }

    /// Runs over a block of the domain on the calling thread. The first element of the tile is that of the first row
    /// and column of the block; its rows are `tile_stride` elements apart. A loop with an [`Inst::Reduce`] needs blocks
    /// with all columns.
    ///
    /// # Safety
    ///
    /// As [`FusedLoop::run`] for the elements of the block; the tile can be read and written as inputs and outputs say,
    /// and overlaps no buffer.
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
        let buffers = LoopBuffers { inputs, outputs, tile, tile_stride, tile_origin };
        // SAFETY: guaranteed by the caller.
        unsafe { execute::block(&self.block, scratch, &buffers, rows, columns, false) }
    }
}

//! Column reductions: reductions over the rows of a domain, with a result per column.
//!
//! Rows are reduced in runs of [`RUN`] in the element type: those of a tile by halves, tiles one after the other. Runs are reduced like parts of long
//! rows: sums of floats in f64.

// Buffers are passed as pointers.
#![allow(unsafe_code)]

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use warpforge_tensor::ElementType;

use crate::isa::Isa;
use crate::pool::Pool;

use super::domain::{Access, Domain, Input, Output, Sink};
use super::error::FusedLoopError;
use super::inst::{Inst, Register};
use super::lane_type::{LaneType, NarrowFloat};
use super::layout::{AccessPattern, IterationLayout, position};
use super::loop_plan::LoopPlan;
use super::loops::{LoopCall, LoopKernel, LoopOperand};
use super::reduce::{self, ColumnLoops, ReduceLoop};
use super::scratch::Scratch;
use super::scratch::with_scratch;
use super::tile_eval::{LoopBuffers, Region, TileEvaluator};
use super::transfer::{self, StridedRun};
use super::{check, loop_select};
use crate::reduce::ReduceOp;
use warpforge_tensor::elementwise::Function;

/// Rows that are reduced sequentially.
const RUN: usize = 128;

/// Columns of a task.
const COLUMNS: usize = 512;

/// Elements of a task.
const TASK_ELEMENTS: usize = 16 * 1024;

/// A value reduced over all rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnOutput {
    /// The reduction operator.
    pub reduction: ReduceOp,
    /// The value of each position.
    pub value: Register,
    /// The access of the result of each column; it has no row strides.
    pub access: Access,
}

/// Instructions on the elements of inputs and reductions of their values over the rows of the domain.
#[derive(Debug)]
pub struct ColumnReduction {
    plan: LoopPlan,
    outputs: Vec<ReducedOutput>,
}

#[derive(Debug)]
struct ReducedOutput {
    value: usize,
    width: usize,
    /// Combines two rows.
    combine: LoopKernel,
    rounding: Option<LoopKernel>,
    /// Reduces runs.
    runs: ReduceLoop,
    narrow: Option<NarrowFloat>,
    columns: Vec<usize>,
    pattern: AccessPattern,
}

impl ColumnReduction {
    /// Creates a column reduction for the best instruction set of this CPU.
    ///
    /// # Errors
    ///
    /// As for [`FusedLoop::new`](super::FusedLoop::new); besides, [`Inst::Reduce`] and tiles are not allowed.
    pub fn new(
        domain: &Domain,
        inputs: &[Input],
        insts: &[Inst],
        outputs: &[ColumnOutput],
    ) -> Result<Self, FusedLoopError> {
        Self::with_isa(Isa::best(), domain, inputs, insts, outputs)
    }

    pub(crate) fn with_isa(
        isa: Isa,
        domain: &Domain,
        inputs: &[Input],
        insts: &[Inst],
        outputs: &[ColumnOutput],
    ) -> Result<Self, FusedLoopError> {
        let types = check::types(inputs, insts)?;
        check::accesses(domain, inputs, insts, &[], &types)?;
        let reduced = outputs
            .iter()
            .enumerate()
            .map(|(at, output)| ReducedOutput::new(isa, domain, at, output, insts.len(), &types))
            .collect::<Result<Vec<_>, _>>()?;
        // Reduced values are not written by the plan, but live to its end.
        let kept: Vec<Output> =
            outputs.iter().map(|output| Output { value: output.value, sink: Sink::Tile }).collect();
        let plan = LoopPlan::new(isa, domain, inputs, insts, &kept, &types, true)?;
        match insts.iter().position(|inst| matches!(inst, Inst::Reduce(..))) {
            Some(inst) => Err(FusedLoopError::NestedReduction { inst }),
            None => Ok(Self { plan, outputs: reduced }),
        }
    }

    /// Reduces the whole domain.
    ///
    /// # Safety
    ///
    /// There is a buffer for each input and output, aligned to its elements, that holds all elements of its access;
    /// nothing else writes it (or, for outputs, reads it) during the call. Outputs overlap nothing.
    pub unsafe fn run(&self, pool: &Pool, inputs: &[*const u8], outputs: &[*mut u8]) {
        let (rows, columns) = (self.plan.layout.row_count, self.plan.layout.column_count);
        let tile = std::ptr::null_mut();
        let buffers = &LoopBuffers { inputs, outputs, tile, tile_stride: 0, tile_origin: (0, 0) };
        let across = columns.div_ceil(COLUMNS);
        let height = (TASK_ELEMENTS / columns.clamp(1, COLUMNS)).next_multiple_of(RUN);
        let down = rows.div_ceil(height);
        let words: Vec<Mutex<Vec<u64>>> = (0..down * across).map(|_| Mutex::new(Vec::new())).collect();
        pool.run(words.len(), &|task, _| {
            let (row, column) = (task / across * height, task % across * COLUMNS);
            let found = with_scratch(|scratch| {
                let (rows, columns) =
                    (row..(row + height).min(rows), column..(column + COLUMNS).min(columns));
                // SAFETY: guaranteed by the caller.
                unsafe { self.task(scratch, buffers, rows, columns) }
            });
            *words[task].lock().unwrap_or_else(PoisonError::into_inner) = found;
        });
        let words: Vec<Vec<u64>> = words
            .into_iter()
            .map(|words| words.into_inner().unwrap_or_else(PoisonError::into_inner))
            .collect();
        for (at, reduced) in self.outputs.iter().enumerate() {
            for block in 0..across {
                let first = block * COLUMNS;
                let width = COLUMNS.min(columns - first);
                let parts = words.iter().skip(block).step_by(across);
                let mut parts = parts.map(|words| &words[at * width..(at + 1) * width]);
                let mut totals = match parts.next() {
                    Some(totals) => totals.to_vec(),
                    None => vec![(reduced.runs.partial)([0u64].as_ptr().cast(), 0); width],
                };
                parts.for_each(|more| (reduced.runs.columns.combine)(&mut totals, more));
                // SAFETY: guaranteed by the caller.
                unsafe { reduced.write(&totals, first, outputs[at]) };
            }
        }
    }

    /// The partial results of a task, those of the first output first.
    ///
    /// # Safety
    ///
    /// As [`ColumnReduction::run`].
    unsafe fn task(
        &self,
        scratch: &mut Scratch,
        buffers: &LoopBuffers<'_>,
        rows: Range<usize>,
        columns: Range<usize>,
    ) -> Vec<u64> {
        let width = columns.len();
        let mut words = vec![0; self.outputs.len() * width];
        let height = (self.plan.capacity / width.max(1)).max(1);
        let mut sums = vec![Sums::new(height, width); self.outputs.len()];
        let mut state = TileEvaluator::new(&self.plan, scratch, buffers, None);
        let mut region = Region { row: rows.start, rows: 1, column: columns.start, columns: width };
        // SAFETY: guaranteed by the caller.
        unsafe { state.evaluate(&region, false) };
        for run in rows.clone().step_by(RUN) {
            let end = (run + RUN).min(rows.end);
            region.row = run;
            while region.row < end {
                region.rows = height.min(end - region.row);
                // SAFETY: guaranteed by the caller.
                unsafe { state.evaluate(&region, true) };
                for (reduced, sums) in self.outputs.iter().zip(&mut sums) {
                    let values = state.row(reduced.value, &region);
                    let tile = Tile { data: values.data, row_stride: values.row_stride, rows: region.rows };
                    reduced.take(tile, width, sums, region.row == run);
                }
                region.row += region.rows;
            }
            for (at, (reduced, sums)) in self.outputs.iter().zip(&sums).enumerate() {
                let ColumnLoops { start, take, .. } = &reduced.runs.columns;
                let totals = &mut words[at * width..(at + 1) * width];
                let of_run = if run == rows.start { start } else { take };
                of_run(sums.total.as_ptr().cast(), totals);
            }
        }
        words
    }
}

/// Rows of values.
#[derive(Clone, Copy)]
struct Tile {
    data: *const u8,
    row_stride: isize,
    rows: usize,
}

impl Tile {
    /// The rows from this one on.
    fn from(self, row: usize) -> Self {
        let data = self.data.wrapping_offset(self.row_stride * row as isize);
        Self { data, rows: self.rows - row, ..self }
    }
}

/// The reduction of a run so far, and space for the next one, for halves of a tile in turn, and for unrounded values. Elements of any type fit.
#[derive(Clone)]
struct Sums {
    total: Vec<u64>,
    next: Vec<u64>,
    halves: [Vec<u64>; 2],
    unrounded: Vec<u64>,
}

impl Sums {
    /// Of tiles of so many rows and columns.
    fn new(rows: usize, columns: usize) -> Self {
        let space = |rows: usize| vec![0; rows * columns];
        let half = rows.div_ceil(2);
        Self { total: space(1), next: space(1), halves: [space(half), space(half)], unrounded: space(half) }
    }
}

impl ReducedOutput {
    fn new(
        isa: Isa,
        domain: &Domain,
        at: usize,
        output: &ColumnOutput,
        insts: usize,
        types: &[ElementType],
    ) -> Result<Self, FusedLoopError> {
        let register = output.value.0;
        let &element = types.get(register).ok_or(FusedLoopError::Register { inst: insts, register })?;
        let (rows, columns) = (output.access.rows.len(), output.access.columns.len());
        if (rows, columns) != (0, domain.columns.len()) {
            let (of_rows, of_columns) = (0, domain.columns.len());
            return Err(FusedLoopError::Rank {
                what: format!("output {at}"),
                rows,
                columns,
                of_rows,
                of_columns,
            });
        }
        let layout = IterationLayout::new(&[], &domain.columns, std::slice::from_ref(&output.access), true)?;
        let unsupported = || FusedLoopError::Unsupported {
            inst: register,
            operation: format!("{:?}", output.reduction),
            element,
        };
        let lane = LaneType::of(element).ok_or_else(unsupported)?;
        let narrow = NarrowFloat::of(element);
        let combine = match output.reduction {
            ReduceOp::Sum => Function::Add,
            ReduceOp::Product => Function::Multiply,
            ReduceOp::Maximum => Function::Maximum,
            ReduceOp::Minimum => Function::Minimum,
            ReduceOp::And => Function::And,
            ReduceOp::Or => Function::Or,
        };
        let mut patterns = layout.patterns.into_iter();
        let pattern = patterns.next().ok_or(FusedLoopError::TooLarge)?;
        if layout.column_count > 1 && !pattern.kind.columns {
            return Err(FusedLoopError::Overlap { output: at });
        }
        Ok(Self {
            value: register,
            width: lane.width(),
            combine: loop_select::binary(isa, combine, lane).ok_or_else(unsupported)?,
            rounding: narrow.map(|narrow| loop_select::rounding(isa, narrow)),
            runs: reduce::reduce_loop(isa, output.reduction, lane, narrow).ok_or_else(unsupported)?,
            narrow,
            columns: layout.columns,
            pattern,
        })
    }

    /// Reduces the rows of a tile of `columns` columns into the sums, or starts with them.
    fn take(&self, mut tile: Tile, columns: usize, sums: &mut Sums, first: bool) {
        let Sums { total, next, halves: [to, other], unrounded } = sums;
        let (mut to, mut other) = (to, other);
        while tile.rows > 1 {
            let (pairs, stride) = (tile.rows / 2, (columns * self.width) as isize);
            let out = StridedRun { data: to.as_mut_ptr().cast::<u8>(), stride: 1 };
            self.combine(pairs, columns, [tile, tile.from(pairs)], out.data, unrounded);
            if tile.rows % 2 == 1 {
                let last = StridedRun { data: tile.from(2 * pairs).data, stride: 1 };
                let out = StridedRun { data: out.data.wrapping_offset(stride * pairs as isize), stride: 1 };
                // SAFETY: a row has that many elements, and there is space for half of the rows and one more.
                unsafe { transfer::copy(self.width, last, out, columns) };
            }
            tile = Tile { data: out.data.cast_const(), row_stride: stride, rows: tile.rows.div_ceil(2) };
            std::mem::swap(&mut to, &mut other);
        }
        let to = StridedRun { data: next.as_mut_ptr().cast::<u8>(), stride: 1 };
        if first {
            // SAFETY: a row has that many elements and the sums have space for as many of the widest.
            unsafe { transfer::copy(self.width, StridedRun { data: tile.data, stride: 1 }, to, columns) };
        } else {
            let sum = Tile { data: total.as_ptr().cast(), row_stride: 0, rows: 1 };
            self.combine(1, columns, [sum, tile], to.data, unrounded);
        }
        std::mem::swap(total, next);
    }

    /// Combines rows of two tiles into rows that lie one behind the other.
    fn combine(&self, rows: usize, columns: usize, tiles: [Tile; 2], out: *mut u8, unrounded: &mut [u64]) {
        let out_stride = (columns * self.width) as isize;
        // Rows without gaps are one row.
        let is_dense = rows == 1 || tiles.iter().all(|tile| tile.row_stride == out_stride);
        let (rows, columns) = if is_dense { (1, rows * columns) } else { (rows, columns) };
        let operand =
            |tile: Tile| LoopOperand { data: tile.data, row_stride: tile.row_stride, one_column: false };
        let [a, b] = tiles.map(operand);
        let to = if self.rounding.is_some() { unrounded.as_mut_ptr().cast() } else { out };
        (self.combine.run)(&LoopCall { rows, columns, out: to, out_stride, operands: [a, b, b] });
        if let Some(rounding) = &self.rounding {
            let from = Tile { data: to.cast_const(), row_stride: out_stride, rows };
            let operands = [operand(from); 3];
            (rounding.run)(&LoopCall { rows, columns, out, out_stride, operands });
        }
    }

    /// Writes the results of columns from the first one on.
    ///
    /// # Safety
    ///
    /// The output has the elements that the access names.
    unsafe fn write(&self, totals: &[u64], first: usize, output: *mut u8) {
        let mut values = vec![0u64; totals.len()];
        (self.runs.columns.finish)(totals, values.as_mut_ptr().cast());
        for at in 0..totals.len() {
            let to = self.pattern.offset + position(&self.columns, &self.pattern.columns, first + at);
            let data = values.as_ptr().cast::<u8>().wrapping_add(at * self.width);
            let from = StridedRun { data, stride: 1 };
            // SAFETY: guaranteed by the caller.
            unsafe {
                match self.narrow {
                    Some(narrow) => {
                        let to = StridedRun { data: output.offset(to * 2), stride: 1 };
                        transfer::narrow(narrow, from, to, 1);
                    }
                    None => {
                        let to = StridedRun { data: output.offset(to * self.width as isize), stride: 1 };
                        transfer::copy(self.width, from, to, 1);
                    }
                }
            }
        }
    }
}

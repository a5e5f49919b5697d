//! Column reductions: reductions over the rows of a domain, with a result per column.
//!
//! Rows are reduced in runs of [`RUN`], sequentially in the element type, and runs like parts of long rows: sums of
//! floats in f64.

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
use super::reduce::{self, ReduceLoop};
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
const TASK_ELEMENTS: usize = 64 * 1024;

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
            for column in 0..columns {
                let (block, width) = (column / COLUMNS, COLUMNS.min(columns - column / COLUMNS * COLUMNS));
                let total = (0..down)
                    .map(|task| words[task * across + block][at * width + column % COLUMNS])
                    .reduce(|a, b| (reduced.runs.combine)(a, b))
                    .unwrap_or_else(|| (reduced.runs.partial)([0u64].as_ptr().cast(), 0));
                // SAFETY: guaranteed by the caller.
                unsafe { reduced.write(total, column, outputs[at]) };
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
        let mut words: Vec<u64> = Vec::with_capacity(self.outputs.len() * width);
        // The reduction of the run so far, a buffer for the next one, and unrounded values.
        let mut sums = vec![[vec![0u64; width], vec![0u64; width], vec![0u64; width]]; self.outputs.len()];
        let mut state = TileEvaluator::new(&self.plan, scratch, buffers, None);
        let height = (self.plan.capacity / width.max(1)).max(1);
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
                    for row in 0..region.rows {
                        let data = values.data.wrapping_offset(values.row_stride * row as isize);
                        reduced.take(data, width, sums, region.row + row == run);
                    }
                }
                region.row += region.rows;
            }
            for (at, (reduced, sums)) in self.outputs.iter().zip(&sums).enumerate() {
                for column in 0..width {
                    let sum = sums[0].as_ptr().cast::<u8>().wrapping_add(column * reduced.width);
                    let word = (reduced.runs.partial)(sum, 1);
                    match words.get_mut(at * width + column) {
                        Some(total) => *total = (reduced.runs.combine)(*total, word),
                        None => words.push(word),
                    }
                }
            }
        }
        words
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

    /// Reduces a row of `columns` columns into the sums, or starts with it.
    fn take(&self, row: *const u8, columns: usize, sums: &mut [Vec<u64>; 3], first: bool) {
        let [sum, next, unrounded] = sums;
        let to = StridedRun { data: next.as_mut_ptr().cast::<u8>(), stride: 1 };
        if first {
            // SAFETY: a row has that many elements and the sums have space for as many of the widest.
            unsafe { transfer::copy(self.width, StridedRun { data: row, stride: 1 }, to, columns) };
        } else {
            let operand = |data| LoopOperand { data, row_stride: 0, one_column: false };
            let (sum, row) = (operand(sum.as_ptr().cast()), operand(row));
            let out = if self.rounding.is_some() { unrounded.as_mut_ptr().cast() } else { to.data };
            (self.combine.run)(&LoopCall { rows: 1, columns, out, out_stride: 0, operands: [sum, row, row] });
            if let Some(rounding) = &self.rounding {
                let operands = [operand(out.cast_const()); 3];
                (rounding.run)(&LoopCall { rows: 1, columns, out: to.data, out_stride: 0, operands });
            }
        }
        std::mem::swap(sum, next);
    }

    /// Writes the result of a column.
    ///
    /// # Safety
    ///
    /// The output has the element that the access names.
    unsafe fn write(&self, total: u64, column: usize, output: *mut u8) {
        let mut value = [0u64; 1];
        (self.runs.finish)(total, value.as_mut_ptr().cast());
        let at = self.pattern.offset + position(&self.columns, &self.pattern.columns, column);
        let from = StridedRun { data: value.as_ptr().cast::<u8>(), stride: 1 };
        // SAFETY: guaranteed by the caller.
        unsafe {
            match self.narrow {
                Some(narrow) => {
                    transfer::narrow(narrow, from, StridedRun { data: output.offset(at * 2), stride: 1 }, 1);
                }
                None => {
                    let to = StridedRun { data: output.offset(at * self.width as isize), stride: 1 };
                    transfer::copy(self.width, from, to, 1);
                }
            }
        }
    }
}

//! Folds over the rows of a domain: a value for each column.
//!
//! Rows are folded in runs of [`RUN`], one after the other in the type of the value, and the runs like the parts of long
//! rows: sums of floats in binary64.

// Buffers are given as addresses.
#![allow(unsafe_code)]

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use warpforge_tensor::ElementType;

use crate::isa::Isa;
use crate::pool::Pool;

use super::domain::{Access, Domain, Input, Output, Sink};
use super::error::ProgramError;
use super::fold::{self, FoldLoop};
use super::lane::{Lane, Narrow};
use super::layout::{Layout, Walk, position};
use super::loops::{Call, Kernel, Operand};
use super::plan::Plan;
use super::scratch::Scratch;
use super::step::{BinaryOp, Register, Step};
use super::tile::{Buffers, Region, State};
use super::transfer::{self, Run};
use super::{check, compute, with_scratch};
use crate::fold::Fold;

/// Rows that are folded one after the other.
const RUN: usize = 128;

/// Columns of a piece of work.
const COLUMNS: usize = 512;

/// Elements of a piece of work.
const PIECE: usize = 64 * 1024;

/// A value folded over all rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnOutput {
    /// How it is folded.
    pub fold: Fold,
    /// The value of each position.
    pub value: Register,
    /// Where the result for each column goes; it has no row strides.
    pub access: Access,
}

/// Steps on the elements of inputs and folds of their values over the rows of the domain.
#[derive(Debug)]
pub struct ColumnFold {
    plan: Plan,
    outputs: Vec<Folded>,
}

#[derive(Debug)]
struct Folded {
    value: usize,
    width: usize,
    /// Folds one row into another.
    step: Kernel,
    rounding: Option<Kernel>,
    /// Folds runs.
    runs: FoldLoop,
    narrow: Option<Narrow>,
    columns: Vec<usize>,
    walk: Walk,
}

impl ColumnFold {
    /// Folds for the best instructions of this machine.
    ///
    /// # Errors
    ///
    /// As for programs; besides, the steps may have no [`Step::Reduce`] and no tile.
    pub fn new(
        domain: &Domain,
        inputs: &[Input],
        steps: &[Step],
        outputs: &[ColumnOutput],
    ) -> Result<Self, ProgramError> {
        Self::with_isa(Isa::best(), domain, inputs, steps, outputs)
    }

    pub(crate) fn with_isa(
        isa: Isa,
        domain: &Domain,
        inputs: &[Input],
        steps: &[Step],
        outputs: &[ColumnOutput],
    ) -> Result<Self, ProgramError> {
        let types = check::types(inputs, steps)?;
        check::places(domain, inputs, steps, &[], &types)?;
        let folded = outputs
            .iter()
            .enumerate()
            .map(|(at, output)| Folded::new(isa, domain, at, output, steps.len(), &types))
            .collect::<Result<Vec<_>, _>>()?;
        // Values that are written nowhere by the plan itself but live to its end.
        let kept: Vec<Output> =
            outputs.iter().map(|output| Output { value: output.value, sink: Sink::Tile }).collect();
        let plan = Plan::new(isa, domain, inputs, steps, &kept, &types, true)?;
        match steps.iter().position(|step| matches!(step, Step::Reduce(..))) {
            Some(step) => Err(ProgramError::NestedFold { step }),
            None => Ok(Self { plan, outputs: folded }),
        }
    }

    /// Folds the whole domain.
    ///
    /// # Safety
    ///
    /// There is a buffer for each input and each output, aligned to its elements, that holds all elements which its access
    /// names and that nothing else writes (or, for outputs, reads) meanwhile. Outputs overlap nothing.
    pub unsafe fn run(&self, pool: &Pool, inputs: &[*const u8], outputs: &[*mut u8]) {
        let (rows, columns) = (self.plan.layout.row_count, self.plan.layout.column_count);
        let tile = std::ptr::null_mut();
        let buffers = &Buffers { inputs, outputs, tile, tile_stride: 0, tile_origin: (0, 0) };
        let across = columns.div_ceil(COLUMNS);
        let height = (PIECE / columns.clamp(1, COLUMNS)).next_multiple_of(RUN);
        let down = rows.div_ceil(height);
        let words: Vec<Mutex<Vec<u64>>> = (0..down * across).map(|_| Mutex::new(Vec::new())).collect();
        pool.run(words.len(), &|piece, _| {
            let (row, column) = (piece / across * height, piece % across * COLUMNS);
            let found = with_scratch(|scratch| {
                let (rows, columns) =
                    (row..(row + height).min(rows), column..(column + COLUMNS).min(columns));
                // SAFETY: the caller's promise.
                unsafe { self.piece(scratch, buffers, rows, columns) }
            });
            *words[piece].lock().unwrap_or_else(PoisonError::into_inner) = found;
        });
        let words: Vec<Vec<u64>> = words
            .into_iter()
            .map(|words| words.into_inner().unwrap_or_else(PoisonError::into_inner))
            .collect();
        for (at, folded) in self.outputs.iter().enumerate() {
            for column in 0..columns {
                let (block, width) = (column / COLUMNS, COLUMNS.min(columns - column / COLUMNS * COLUMNS));
                let total = (0..down)
                    .map(|piece| words[piece * across + block][at * width + column % COLUMNS])
                    .reduce(|a, b| (folded.runs.combine)(a, b))
                    .unwrap_or_else(|| (folded.runs.partial)([0u64].as_ptr().cast(), 0));
                // SAFETY: the caller's promise.
                unsafe { folded.write(total, column, outputs[at]) };
            }
        }
    }

    /// The partial results of a piece, those of the first output first.
    ///
    /// # Safety
    ///
    /// As [`ColumnFold::run`].
    unsafe fn piece(
        &self,
        scratch: &mut Scratch,
        buffers: &Buffers<'_>,
        rows: Range<usize>,
        columns: Range<usize>,
    ) -> Vec<u64> {
        let width = columns.len();
        let mut words: Vec<u64> = Vec::with_capacity(self.outputs.len() * width);
        // The fold of a run so far, where the next one goes, and what is not yet rounded.
        let mut sums = vec![[vec![0u64; width], vec![0u64; width], vec![0u64; width]]; self.outputs.len()];
        let mut state = State::new(&self.plan, scratch, buffers, None);
        let height = (self.plan.capacity / width.max(1)).max(1);
        let mut region = Region { row: rows.start, rows: 1, column: columns.start, columns: width };
        // SAFETY: the caller's promise.
        unsafe { state.evaluate(&region, false) };
        for run in rows.clone().step_by(RUN) {
            let end = (run + RUN).min(rows.end);
            region.row = run;
            while region.row < end {
                region.rows = height.min(end - region.row);
                // SAFETY: the caller's promise.
                unsafe { state.evaluate(&region, true) };
                for (folded, sums) in self.outputs.iter().zip(&mut sums) {
                    let values = state.row(folded.value, &region);
                    for row in 0..region.rows {
                        let data = values.data.wrapping_offset(values.row_stride * row as isize);
                        folded.take(data, width, sums, region.row + row == run);
                    }
                }
                region.row += region.rows;
            }
            for (at, (folded, sums)) in self.outputs.iter().zip(&sums).enumerate() {
                for column in 0..width {
                    let sum = sums[0].as_ptr().cast::<u8>().wrapping_add(column * folded.width);
                    let word = (folded.runs.partial)(sum, 1);
                    match words.get_mut(at * width + column) {
                        Some(total) => *total = (folded.runs.combine)(*total, word),
                        None => words.push(word),
                    }
                }
            }
        }
        words
    }
}

impl Folded {
    fn new(
        isa: Isa,
        domain: &Domain,
        at: usize,
        output: &ColumnOutput,
        steps: usize,
        types: &[ElementType],
    ) -> Result<Self, ProgramError> {
        let register = output.value.0;
        let &element = types.get(register).ok_or(ProgramError::Register { step: steps, register })?;
        let (rows, columns) = (output.access.rows.len(), output.access.columns.len());
        if (rows, columns) != (0, domain.columns.len()) {
            let (of_rows, of_columns) = (0, domain.columns.len());
            return Err(ProgramError::Rank {
                what: format!("output {at}"),
                rows,
                columns,
                of_rows,
                of_columns,
            });
        }
        let layout = Layout::new(&[], &domain.columns, std::slice::from_ref(&output.access), true)?;
        let unsupported =
            || ProgramError::Unsupported { step: register, operation: format!("{:?}", output.fold), element };
        let lane = Lane::of(element).ok_or_else(unsupported)?;
        let narrow = Narrow::of(element);
        let step = match output.fold {
            Fold::Sum => BinaryOp::Add,
            Fold::Product => BinaryOp::Multiply,
            Fold::Maximum => BinaryOp::Maximum,
            Fold::Minimum => BinaryOp::Minimum,
            Fold::And => BinaryOp::And,
            Fold::Or => BinaryOp::Or,
        };
        let mut walks = layout.walks.into_iter();
        let walk = walks.next().ok_or(ProgramError::TooLarge)?;
        if layout.column_count > 1 && !walk.kind.columns {
            return Err(ProgramError::Overlap { output: at });
        }
        Ok(Self {
            value: register,
            width: lane.width(),
            step: compute::binary(isa, step, lane).ok_or_else(unsupported)?,
            rounding: narrow.map(|narrow| compute::rounding(isa, narrow)),
            runs: fold::fold(isa, output.fold, lane, narrow).ok_or_else(unsupported)?,
            narrow,
            columns: layout.columns,
            walk,
        })
    }

    /// Folds a row of so many columns into the sums, or starts with it.
    fn take(&self, row: *const u8, columns: usize, sums: &mut [Vec<u64>; 3], first: bool) {
        let [sum, next, unrounded] = sums;
        let to = Run { data: next.as_mut_ptr().cast::<u8>(), stride: 1 };
        if first {
            // SAFETY: a row has so many elements and the sums have room for as many of the widest.
            unsafe { transfer::copy(self.width, Run { data: row, stride: 1 }, to, columns) };
        } else {
            let operand = |data| Operand { data, row_stride: 0, one_column: false };
            let (sum, row) = (operand(sum.as_ptr().cast()), operand(row));
            let out = if self.rounding.is_some() { unrounded.as_mut_ptr().cast() } else { to.data };
            (self.step.run)(&Call { rows: 1, columns, out, out_stride: 0, operands: [sum, row, row] });
            if let Some(rounding) = &self.rounding {
                let operands = [operand(out.cast_const()); 3];
                (rounding.run)(&Call { rows: 1, columns, out: to.data, out_stride: 0, operands });
            }
        }
        std::mem::swap(sum, next);
    }

    /// Writes the result for a column.
    ///
    /// # Safety
    ///
    /// The output has the element that the access names.
    unsafe fn write(&self, total: u64, column: usize, output: *mut u8) {
        let mut value = [0u64; 1];
        (self.runs.finish)(total, value.as_mut_ptr().cast());
        let at = self.walk.offset + position(&self.columns, &self.walk.columns, column);
        let from = Run { data: value.as_ptr().cast::<u8>(), stride: 1 };
        // SAFETY: the caller's promise.
        unsafe {
            match self.narrow {
                Some(narrow) => {
                    transfer::narrow(narrow, from, Run { data: output.offset(at * 2), stride: 1 }, 1);
                }
                None => {
                    let to = Run { data: output.offset(at * self.width as isize), stride: 1 };
                    transfer::copy(self.width, from, to, 1);
                }
            }
        }
    }
}

//! Reductions over rows too long for a tile: part by part, in passes.
//!
//! A pass goes over the columns and computes the reductions whose operands need no other reduction, the next pass those
//! that need only these, and so on; the last pass stores the outputs. Parts of a row are distributed over the workers
//! and their partial results combined in order.

// Buffers are passed as pointers.
#![allow(unsafe_code)]

use std::ops::Range;
use std::sync::Mutex;

use crate::pool::Pool;

use super::layout::balanced_part;
use super::loop_plan::{Action, LoopPlan};
use super::scratch::{Scratch, with_scratch};
use super::tile_eval::{LoopBuffers, PassState, Region, TileEvaluator};

/// Columns of a part.
const PART: usize = 16 * 1024;

/// The pass of each instruction: that of a reduction is after those of its operands.
fn passes(plan: &LoopPlan) -> Vec<usize> {
    let mut passes: Vec<usize> = Vec::with_capacity(plan.planned.len());
    for planned_inst in &plan.planned {
        let pass = match &planned_inst.action {
            Action::Compute { operands, .. } => {
                operands.iter().map(|&operand| passes[operand]).max().unwrap_or(0)
            }
            Action::Reduce { operand, .. } => passes[*operand] + 1,
            _ => 0,
        };
        passes.push(pass);
    }
    passes
}

/// Marks the instructions that others need, up to complete reductions.
fn needed(plan: &LoopPlan, wanted: impl Iterator<Item = usize>, complete: &[Option<[u8; 8]>]) -> Vec<bool> {
    let mut needed = vec![false; plan.planned.len()];
    wanted.for_each(|at| needed[at] = true);
    for at in (0..plan.planned.len()).rev().filter(|&at| complete[at].is_none()) {
        if !needed[at] {
            continue;
        }
        match &plan.planned[at].action {
            Action::Compute { operands, .. } => operands.iter().for_each(|&operand| needed[operand] = true),
            Action::Reduce { operand, .. } => needed[*operand] = true,
            _ => {}
        }
    }
    needed
}

/// Runs a plan over some rows, all columns of each.
///
/// # Safety
///
/// The buffers hold what the loop's accesses name within the rows.
pub(super) unsafe fn run(
    plan: &LoopPlan,
    pool: Option<&Pool>,
    scratch: &mut Scratch,
    buffers: &LoopBuffers<'_>,
    rows: Range<usize>,
) {
    let pass_of = passes(plan);
    let last = pass_of.iter().copied().max().unwrap_or(0);
    let count = plan.layout.column_count.div_ceil(PART);
    for row in rows {
        let mut complete = vec![None; plan.planned.len()];
        for pass in 1..=last + 1 {
            let reductions: Vec<usize> = (0..plan.planned.len())
                .filter(|&at| matches!(plan.planned[at].action, Action::Reduce { .. }) && pass_of[at] == pass)
                .collect();
            let stores = plan.stores.iter().map(|store| store.value).filter(|_| pass > last);
            let needed = needed(plan, reductions.iter().copied().chain(stores), &complete);
            let parts = PassState { needed: &needed, complete: &complete };
            let partial: Vec<Mutex<Vec<u64>>> = (0..count).map(|_| Mutex::new(Vec::new())).collect();
            let job = |part: usize, scratch: &mut Scratch| {
                // SAFETY: guaranteed by the caller; parts do not overlap.
                let found = unsafe {
                    evaluate_part(plan, scratch, buffers, parts, &reductions, row, part, pass > last)
                };
                *partial[part].lock().unwrap_or_else(std::sync::PoisonError::into_inner) = found;
            };
            match pool {
                Some(pool) => pool.run(count, &|part, _| with_scratch(|scratch| job(part, scratch))),
                None => (0..count).for_each(|part| job(part, scratch)),
            }
            let partial: Vec<Vec<u64>> = partial
                .into_iter()
                .map(|part| part.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner))
                .collect();
            for (at, &reduction) in reductions.iter().enumerate() {
                let Action::Reduce { reduction: reduce_loop, .. } = &plan.planned[reduction].action else {
                    continue;
                };
                let total = partial.iter().map(|part| part[at]).reduce(|a, b| (reduce_loop.combine)(a, b));
                let mut value = [0u64; 1];
                (reduce_loop.finish)(total.unwrap_or_default(), value.as_mut_ptr().cast());
                complete[reduction] = Some(value[0].to_ne_bytes());
            }
        }
    }
}

/// Evaluates a part of a row: returns the partial results of the reductions, or stores the outputs.
///
/// # Safety
///
/// As [`run`].
#[allow(clippy::too_many_arguments)] // A part of a pass is as much as that.
unsafe fn evaluate_part(
    plan: &LoopPlan,
    scratch: &mut Scratch,
    buffers: &LoopBuffers<'_>,
    parts: PassState<'_>,
    reductions: &[usize],
    row: usize,
    part: usize,
    writes: bool,
) -> Vec<u64> {
    let end = ((part + 1) * PART).min(plan.layout.column_count);
    let most = balanced_part(end - part * PART, plan.capacity);
    let mut state = TileEvaluator::new(plan, scratch, buffers, Some(parts));
    let mut totals: Vec<Option<u64>> = vec![None; reductions.len()];
    let mut column = part * PART;
    while column < end {
        let region = Region { row, rows: 1, column, columns: most.min(end - column) };
        // SAFETY: guaranteed by the caller.
        unsafe {
            state.evaluate(&region, false);
            state.evaluate(&region, true);
            if writes {
                state.store(&region);
            }
        }
        for (total, &reduction) in totals.iter_mut().zip(reductions) {
            let Action::Reduce { reduction: reduce_loop, .. } = &plan.planned[reduction].action else {
                continue;
            };
            let found = state.partial(reduction, &region, 0);
            *total = match (*total, found) {
                (Some(total), Some(found)) => Some((reduce_loop.combine)(total, found)),
                (total, found) => found.or(total),
            };
        }
        column += region.columns;
    }
    totals.into_iter().map(Option::unwrap_or_default).collect()
}

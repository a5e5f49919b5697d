//! Folds over rows too long to be held whole: part by part, in passes.
//!
//! A pass goes through the columns and computes the folds whose operands need no other fold, the next one those that need
//! only these, and so on; the last writes the outputs. Parts of a row are shared among the workers and their partial
//! results combined in order.

// Buffers are given as addresses.
#![allow(unsafe_code)]

use std::ops::Range;
use std::sync::Mutex;

use crate::pool::Pool;

use super::execute::even_part;
use super::plan::{Action, Plan};
use super::scratch::Scratch;
use super::tile::{Buffers, Parts, Region, State};
use super::with_scratch;

/// Columns of a part.
const PART: usize = 16 * 1024;

/// For each step the pass that computes it: that of a fold comes after those of all that it folds.
fn passes(plan: &Plan) -> Vec<usize> {
    let mut passes: Vec<usize> = Vec::with_capacity(plan.nodes.len());
    for node in &plan.nodes {
        let pass = match &node.action {
            Action::Compute { operands, .. } => {
                operands.iter().map(|&operand| passes[operand]).max().unwrap_or(0)
            }
            Action::Fold { operand, .. } => passes[*operand] + 1,
            _ => 0,
        };
        passes.push(pass);
    }
    passes
}

/// Marks the steps that are needed for others, not going beyond folds that are complete.
fn needed(plan: &Plan, wanted: impl Iterator<Item = usize>, complete: &[Option<[u8; 8]>]) -> Vec<bool> {
    let mut needed = vec![false; plan.nodes.len()];
    wanted.for_each(|at| needed[at] = true);
    for at in (0..plan.nodes.len()).rev().filter(|&at| complete[at].is_none()) {
        if !needed[at] {
            continue;
        }
        match &plan.nodes[at].action {
            Action::Compute { operands, .. } => operands.iter().for_each(|&operand| needed[operand] = true),
            Action::Fold { operand, .. } => needed[*operand] = true,
            _ => {}
        }
    }
    needed
}

/// Runs a plan over some rows, all columns of each.
///
/// # Safety
///
/// The buffers hold what the program's accesses name within the rows.
pub(super) unsafe fn run(
    plan: &Plan,
    pool: Option<&Pool>,
    scratch: &mut Scratch,
    buffers: &Buffers<'_>,
    rows: Range<usize>,
) {
    let pass_of = passes(plan);
    let last = pass_of.iter().copied().max().unwrap_or(0);
    let count = plan.layout.column_count.div_ceil(PART);
    for row in rows {
        let mut complete = vec![None; plan.nodes.len()];
        for pass in 1..=last + 1 {
            let folds: Vec<usize> = (0..plan.nodes.len())
                .filter(|&at| matches!(plan.nodes[at].action, Action::Fold { .. }) && pass_of[at] == pass)
                .collect();
            let stores = plan.stores.iter().map(|store| store.value).filter(|_| pass > last);
            let needed = needed(plan, folds.iter().copied().chain(stores), &complete);
            let parts = Parts { needed: &needed, complete: &complete };
            let partial: Vec<Mutex<Vec<u64>>> = (0..count).map(|_| Mutex::new(Vec::new())).collect();
            let job = |part: usize, scratch: &mut Scratch| {
                // SAFETY: the caller's promise; parts do not overlap.
                let found =
                    unsafe { one_part(plan, scratch, buffers, parts, &folds, row, part, pass > last) };
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
            for (at, &fold) in folds.iter().enumerate() {
                let Action::Fold { fold: folding, .. } = &plan.nodes[fold].action else { continue };
                let total = partial.iter().map(|part| part[at]).reduce(|a, b| (folding.combine)(a, b));
                let mut value = [0u64; 1];
                (folding.finish)(total.unwrap_or_default(), value.as_mut_ptr().cast());
                complete[fold] = Some(value[0].to_ne_bytes());
            }
        }
    }
}

/// Goes through a part of a row: the partial results of the folds, or the outputs written.
///
/// # Safety
///
/// As [`run`].
#[allow(clippy::too_many_arguments)] // A part of a pass is as much as that.
unsafe fn one_part(
    plan: &Plan,
    scratch: &mut Scratch,
    buffers: &Buffers<'_>,
    parts: Parts<'_>,
    folds: &[usize],
    row: usize,
    part: usize,
    writes: bool,
) -> Vec<u64> {
    let end = ((part + 1) * PART).min(plan.layout.column_count);
    let most = even_part(end - part * PART, plan.capacity);
    let mut state = State::new(plan, scratch, buffers, Some(parts));
    let mut totals: Vec<Option<u64>> = vec![None; folds.len()];
    let mut column = part * PART;
    while column < end {
        let region = Region { row, rows: 1, column, columns: most.min(end - column) };
        // SAFETY: the caller's promise.
        unsafe {
            state.evaluate(&region, false);
            state.evaluate(&region, true);
            if writes {
                state.store(&region);
            }
        }
        for (total, &fold) in totals.iter_mut().zip(folds) {
            let Action::Fold { fold: folding, .. } = &plan.nodes[fold].action else { continue };
            let found = state.partial(fold, &region, 0);
            *total = match (*total, found) {
                (Some(total), Some(found)) => Some((folding.combine)(total, found)),
                (total, found) => found.or(total),
            };
        }
        column += region.columns;
    }
    totals.into_iter().map(Option::unwrap_or_default).collect()
}

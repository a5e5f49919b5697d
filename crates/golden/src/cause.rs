//! Following an inherited error back to the operation that made it.

use std::collections::{BTreeSet, HashMap, VecDeque};

use crate::Class;
use crate::order::Order;
use crate::replay::{Replayer, key_of};
use crate::report::{Cause, Operation, OriginVerdict, TensorReport};

/// Operations that are computed again for one answer, at most.
const MAX_REPLAYS: usize = 64;
/// An error that is less than one part in this many of what the tolerance allows is rounding.
const NEAR_TOLERANCE: f64 = 4.0;

/// The operation before `failed` that made the error which `failed` inherited, though its own value is still within its
/// tolerance: of the nodes that lead to it, the one that errs most for the size of its value.
///
/// There is none where the error came with the arguments: a weight that an earlier step has changed.
pub(crate) fn cause(
    failed: &Operation,
    tensors: &[TensorReport],
    order: &Order,
    replayer: &Replayer<'_>,
) -> Option<Cause> {
    if failed.origin.verdict != OriginVerdict::Inherited {
        return None;
    }
    let activations: HashMap<&str, &TensorReport> = tensors
        .iter()
        .filter(|report| report.class == Class::Activations && report.step == failed.step)
        .map(|report| (report.name.as_str(), report))
        .collect();
    let mut waiting: VecDeque<String> =
        failed.origin.replay.iter().flat_map(|one| one.inputs.clone()).collect();
    let mut seen: BTreeSet<String> = waiting.iter().cloned().collect();
    let mut most: Option<(f64, &TensorReport, f64)> = None;
    let mut replays = 0;
    while let Some(name) = waiting.pop_front().filter(|_| replays < MAX_REPLAYS) {
        let Some(report) = activations.get(name.as_str()) else { continue };
        replays += 1;
        let Some(replay) = replayer.origin(&key_of(report), &report.rule).replay else { continue };
        let own = replay.execution.max_abs + replay.import.max_abs;
        let largest = report.figures.as_ref().and_then(|figures| figures.largest).unwrap_or_default();
        let part = if largest > 0.0 { own / largest } else { own };
        let made_here =
            own >= replay.inherited.max_abs && part * NEAR_TOLERANCE >= report.rule.limits.rtol && own > 0.0;
        if made_here && most.is_none_or(|(before, ..)| part > before) {
            most = Some((part, report, own));
        }
        if replay.inherited.max_abs > 0.0 {
            waiting.extend(replay.inputs.into_iter().filter(|input| seen.insert(input.clone())));
        }
    }
    let (part, report, own) = most?;
    let node = order.node(order.position(report.class, &report.name, Some(replayer.graph))?);
    Some(Cause {
        node: node.name.clone(),
        target: node.target.clone(),
        module: node.module.clone(),
        source: node.source.clone(),
        step: report.step.clone(),
        tensor: report.name.clone(),
        max_abs: own,
        part_of_largest: part,
    })
}

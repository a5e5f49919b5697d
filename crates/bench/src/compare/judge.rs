//! Verdicts on all metrics together.

use warpforge_measure::stats::Interval;

use super::estimate::Estimate;
use super::outcome::{Change, MetricComparison};
use super::pairing::{Pair, tags};

/// The confidence of each metric's interval, and that no unchanged metric among all is called changed.
pub(super) const CONFIDENCE: f64 = 0.95;

/// Judges every pair; changes up to the threshold are never called one.
pub(super) fn judge(pairs: &[Pair<'_>], threshold_percent: f64) -> Vec<MetricComparison> {
    let estimates: Vec<Result<Estimate, String>> = pairs.iter().map(Estimate::of).collect();
    let p_values: Vec<_> = estimates.iter().map(|estimate| Some(estimate.as_ref().ok()?.p_value())).collect();
    let judged = pairs.iter().zip(&estimates).zip(holm(&p_values));
    judged.map(|((pair, estimate), confidence)| one(pair, estimate, confidence, threshold_percent)).collect()
}

/// The confidence to ask of each metric so that all verdicts of change hold together, by Holm's method: the least
/// probable result must hold against as many rivals as there are metrics, the next against one fewer, and from the
/// first that does not hold on, all are judged alike. An interval at this confidence leaves out zero exactly if the
/// method calls the metric changed.
fn holm(p_values: &[Option<f64>]) -> Vec<f64> {
    let mut ranked: Vec<(usize, f64)> =
        p_values.iter().enumerate().filter_map(|(i, p)| Some((i, (*p)?))).collect();
    ranked.sort_by(|a, b| a.1.total_cmp(&b.1));
    let mut confidences = vec![CONFIDENCE; p_values.len()];
    let mut rivals = ranked.len();
    let mut holding = true;
    for (index, p) in ranked {
        let error = (1.0 - CONFIDENCE) / rivals as f64;
        confidences[index] = 1.0 - error;
        holding &= p < error;
        if holding {
            rivals -= 1;
        }
    }
    confidences
}

fn one(
    pair: &Pair<'_>,
    estimate: &Result<Estimate, String>,
    family_confidence: f64,
    threshold: f64,
) -> MetricComparison {
    let Pair { benchmark, before, after } = *pair;
    let mut result = MetricComparison {
        benchmark: benchmark.clone(),
        name: before.name.clone(),
        unit: before.unit.clone(),
        higher_is_better: before.higher_is_better,
        tags: tags(before),
        before: before.value,
        after: after.value,
        change_percent: None,
        values_change_percent: None,
        speed_adjusted: false,
        ci_low_percent: None,
        ci_high_percent: None,
        family_ci_low_percent: None,
        family_ci_high_percent: None,
        verdict: Change::Inconclusive,
        note: None,
    };
    let change = (after.value / before.value - 1.0) * 100.0;
    result.values_change_percent = (before.unit == after.unit && change.is_finite()).then_some(change);
    match estimate {
        Err(reason) => {
            result.note = Some(reason.clone());
            result.change_percent = result.values_change_percent;
        }
        Ok(estimate) => {
            let alone = percent(estimate.interval(CONFIDENCE));
            let family = percent(estimate.interval(family_confidence));
            let change = estimate.change().exp_m1() * 100.0;
            result.change_percent = Some(change);
            (result.ci_low_percent, result.ci_high_percent) = (Some(alone.low), Some(alone.high));
            (result.family_ci_low_percent, result.family_ci_high_percent) =
                (Some(family.low), Some(family.high));
            let (verdict, reason) = verdict(change, alone, family, threshold, before.higher_is_better);
            result.verdict = verdict;
            result.speed_adjusted = estimate.adjusted;
            let single = "one round each, so what differs between processes is unknown";
            let single = estimate.single_round().then(|| single.to_owned());
            let notes: Vec<String> = [reason, single, estimate.note.clone()].into_iter().flatten().collect();
            result.note = (!notes.is_empty()).then(|| notes.join("; "));
        }
    }
    result
}

/// Logarithms as percent of change.
fn percent(logarithms: Interval) -> Interval {
    Interval { low: logarithms.low.exp_m1() * 100.0, high: logarithms.high.exp_m1() * 100.0 }
}

/// A change must hold against all metrics together and exceed the threshold; that there is none need only hold for
/// the metric alone, since nobody is alarmed by it.
fn verdict(
    change: f64,
    alone: Interval,
    family: Interval,
    threshold: f64,
    higher_is_better: bool,
) -> (Change, Option<String>) {
    if !family.contains(0.0) && change.abs() > threshold {
        let better = (change > 0.0) == higher_is_better;
        return (if better { Change::Improved } else { Change::Regressed }, None);
    }
    if alone.low >= -threshold && alone.high <= threshold {
        return (Change::Unchanged, None);
    }
    let note = if alone.contains(0.0) {
        format!("noise of {:.1} points hides a change of {threshold} %", alone.width() / 2.0)
    } else if change.abs() > threshold {
        "likely a change if it were the only metric; among so many it may be chance".to_owned()
    } else {
        format!("a small change that may or may not exceed {threshold} %")
    };
    (Change::Inconclusive, Some(note))
}

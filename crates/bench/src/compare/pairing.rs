//! Which metric of one run is which of the other.

use crate::record::{BenchmarkId, BenchmarkMetric, BenchmarkRunResult, BenchmarkSuiteRun, Tags, Verdict};

use super::outcome::{Broken, Side, Unmatched};

/// The same metric in both runs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pair<'a> {
    pub(crate) benchmark: &'a BenchmarkId,
    pub(crate) before: &'a BenchmarkMetric,
    pub(crate) after: &'a BenchmarkMetric,
}

/// What has a counterpart and what has none.
#[derive(Debug, Default)]
pub(crate) struct Pairing<'a> {
    pub(crate) pairs: Vec<Pair<'a>>,
    pub(crate) unmatched: Vec<Unmatched>,
    pub(crate) broken: Vec<Broken>,
}

type Located<'a> = (&'a BenchmarkRunResult, &'a BenchmarkMetric);

/// Pairs metrics by suite, benchmark, name and tags; among several alike, by their order.
pub(crate) fn pair<'a>(before: &'a BenchmarkSuiteRun, after: &'a BenchmarkSuiteRun) -> Pairing<'a> {
    let mut pairing = Pairing::default();
    let mut open: Vec<Located<'_>> = located(after).collect();
    for (result, metric) in located(before) {
        let id = &result.spec.id;
        match open.iter().position(|(other, candidate)| other.spec.id == *id && alike(metric, candidate)) {
            Some(found) => {
                let (_, counterpart) = open.remove(found);
                pairing.pairs.push(Pair { benchmark: id, before: metric, after: counterpart });
            }
            None => pairing.unmatched.push(unmatched((result, metric), Side::Before, after)),
        }
    }
    pairing.unmatched.extend(open.into_iter().map(|located| unmatched(located, Side::After, before)));
    let worked =
        |id: &BenchmarkId| before.benchmarks.iter().any(|result| result.spec.id == *id && result.success);
    pairing.broken = after
        .benchmarks
        .iter()
        .filter(|result| failed(result) && worked(&result.spec.id))
        .map(|result| Broken {
            benchmark: result.spec.id.clone(),
            error_message: result.error_message.clone(),
        })
        .collect();
    pairing
}

fn located(run: &BenchmarkSuiteRun) -> impl Iterator<Item = Located<'_>> {
    run.benchmarks.iter().flat_map(|result| result.metrics.iter().map(move |metric| (result, metric)))
}

fn alike(a: &BenchmarkMetric, b: &BenchmarkMetric) -> bool {
    a.name == b.name && tags(a) == tags(b)
}

/// The tags of a metric; none and empty are the same.
pub(crate) fn tags(metric: &BenchmarkMetric) -> Tags {
    metric.tags.clone().unwrap_or_default()
}

fn unmatched((result, metric): Located<'_>, only_in: Side, other: &BenchmarkSuiteRun) -> Unmatched {
    let counterpart = other.benchmarks.iter().find(|candidate| candidate.spec.id == result.spec.id);
    let reason = match counterpart {
        None => Some("the benchmark was not run".to_owned()),
        Some(counterpart) => counterpart.error_message.clone(),
    };
    Unmatched {
        benchmark: result.spec.id.clone(),
        name: metric.name.clone(),
        tags: tags(metric),
        only_in,
        reason,
    }
}

/// Whether it was tried and went wrong; one that was skipped or interrupted did not.
fn failed(result: &BenchmarkRunResult) -> bool {
    !result.success && matches!(result.verdict, None | Some(Verdict::Fail))
}

//! Putting the rounds of one benchmark together into its result.

use std::time::Duration;

use jiff::Timestamp;
use warpforge_inventory::ListOutput;
use warpforge_inventory::live::Conditions;

use super::beside::PeerProgress;
use crate::benchmark::{BenchmarkError, Event, MetricKey};
use crate::record::{BenchmarkMetric, BenchmarkRunResult, BenchmarkSpec, Verdict};
use crate::selection::Chosen;

/// What is known of one benchmark while the run goes on.
pub(super) struct Progress {
    spec: BenchmarkSpec,
    measured: Measured,
    peers: Vec<PeerProgress>,
    conditions: Vec<(Duration, Conditions)>,
    error: Option<BenchmarkError>,
    completed_rounds: u32,
    began: Timestamp,
    ended: Timestamp,
}

impl Progress {
    /// The state before the first round; a benchmark that cannot run here is closed at once.
    pub(super) fn new(chosen: &Chosen) -> Self {
        let params = chosen.spec.params.clone().unwrap_or_default();
        let error = chosen.benchmark.prepare(&params).err();
        let now = Timestamp::now();
        Self {
            spec: chosen.spec.clone(),
            measured: Measured::default(),
            peers: chosen.peers.iter().map(|&peer| PeerProgress::new(peer, &params)).collect(),
            conditions: Vec::new(),
            error,
            completed_rounds: 0,
            began: now,
            ended: now,
        }
    }

    pub(super) fn spec(&self) -> &BenchmarkSpec {
        &self.spec
    }

    /// Whether there is a point in running another round.
    pub(super) fn is_open(&self) -> bool {
        self.error.is_none()
    }

    pub(super) fn begin_round(&mut self, now: Timestamp) {
        if self.completed_rounds == 0 {
            self.began = now;
        }
    }

    pub(super) fn event(&mut self, event: Event) {
        self.measured.event(event);
    }

    /// The peers that are measured in turn with it.
    pub(super) fn peers(&mut self) -> &mut [PeerProgress] {
        &mut self.peers
    }

    /// Rounds that are still to come, its own and those of its peers, where it has so many.
    pub(super) fn open_rounds(&self, rounds: u32) -> usize {
        let peers = self.peers.iter().filter(|peer| peer.is_open()).count();
        if self.is_open() { (1 + peers) * rounds as usize } else { 0 }
    }

    pub(super) fn end_round(
        &mut self,
        outcome: Result<(), BenchmarkError>,
        now: Timestamp,
        took: Duration,
        conditions: Conditions,
    ) {
        self.ended = now;
        self.conditions.push((took, conditions));
        match outcome {
            Ok(()) => self.completed_rounds += 1,
            Err(error) => self.error = Some(error),
        }
    }

    /// The result as far as it is known, for a run of so many rounds.
    pub(super) fn result(&self, rounds: u32, system: Option<&ListOutput>) -> BenchmarkRunResult {
        let (verdict, error_message) = verdict(self.error.as_ref(), self.completed_rounds, rounds);
        let metrics = self.measured.metrics();
        let conditions = merge(&self.conditions);
        let mut warnings = self.measured.warnings.clone();
        warnings.extend(conditions.iter().flat_map(Conditions::warnings));
        BenchmarkRunResult {
            spec: self.spec.clone(),
            // What did not run has nothing to be compared with.
            beside: match self.measured.is_empty() && !self.is_open() {
                true => Vec::new(),
                false => self.peers.iter().map(|peer| peer.result(rounds, &metrics)).collect(),
            },
            metrics,
            success: verdict == Verdict::Pass,
            error_message,
            start_time: self.began,
            end_time: self.ended,
            system: system.cloned(),
            verdict: Some(verdict),
            conditions,
            warnings,
        }
    }
}

/// What a run that has gone so far comes to.
pub(super) fn verdict(
    error: Option<&BenchmarkError>,
    completed: u32,
    rounds: u32,
) -> (Verdict, Option<String>) {
    let interrupted = format!("stopped after {completed} of {rounds} rounds");
    match error {
        None if completed == rounds => (Verdict::Pass, None),
        None | Some(BenchmarkError::Stopped) => (Verdict::Inconclusive, Some(interrupted)),
        Some(error @ BenchmarkError::NotPossible(_)) => (Verdict::Skipped, Some(error.to_string())),
        Some(error) => (Verdict::Fail, Some(error.to_string())),
    }
}

/// What the rounds of one program have reported.
#[derive(Default)]
pub(super) struct Measured {
    metrics: Vec<(MetricKey, Vec<Vec<f64>>)>,
    core_speeds: Vec<(MetricKey, Vec<Vec<f64>>)>,
    pub(super) warnings: Vec<String>,
}

impl Measured {
    pub(super) fn event(&mut self, event: Event) {
        match event {
            Event::Metric { key, values } => add_round(&mut self.metrics, key, values),
            Event::CoreSpeed { key, values } => add_round(&mut self.core_speeds, key, values),
            Event::Warning { message } => {
                if !self.warnings.contains(&message) {
                    self.warnings.push(message);
                }
            }
            Event::Progress { .. } | Event::Version { .. } => {}
        }
    }

    fn is_empty(&self) -> bool {
        self.metrics.is_empty()
    }

    /// The metrics with their statistics.
    pub(super) fn metrics(&self) -> Vec<BenchmarkMetric> {
        self.metrics.iter().filter_map(|(key, rounds)| metric(key, rounds, self.speeds_of(key))).collect()
    }

    /// The core's speed in each round of a metric; empty if a round did not report it.
    fn speeds_of(&self, key: &MetricKey) -> &[Vec<f64>] {
        self.core_speeds.iter().find(|(known, _)| known == key).map_or(&[], |(_, rounds)| rounds)
    }
}

/// Adds a round to what is known of a metric.
fn add_round(known: &mut Vec<(MetricKey, Vec<Vec<f64>>)>, key: MetricKey, values: Vec<f64>) {
    match known.iter_mut().find(|(other, _)| *other == key) {
        Some((_, rounds)) => rounds.push(values),
        None => known.push((key, vec![values])),
    }
}

fn metric(key: &MetricKey, rounds: &[Vec<f64>], core_speeds: &[Vec<f64>]) -> Option<BenchmarkMetric> {
    let MetricKey { name, unit, higher_is_better, tags } = key;
    let mut metric = BenchmarkMetric::from_rounds(name, unit, *higher_is_better, tags.clone(), rounds)?;
    if let Some(statistics) = &mut metric.statistics {
        statistics.core_speeds = core_speeds.to_vec();
    }
    Some(metric)
}

/// The conditions of several rounds as one: shares weighted by time, extremes over all, events added up.
fn merge(rounds: &[(Duration, Conditions)]) -> Option<Conditions> {
    let first = &rounds.first()?.1;
    let average = |get: fn(&Conditions) -> Option<f64>| {
        let known: Vec<_> =
            rounds.iter().filter_map(|(took, c)| Some((took.as_secs_f64(), get(c)?))).collect();
        let total: f64 = known.iter().map(|(seconds, _)| seconds).sum();
        (total > 0.0).then(|| known.iter().map(|(seconds, share)| seconds * share).sum::<f64>() / total)
    };
    let all = |get: fn(&Conditions) -> Option<f64>| rounds.iter().filter_map(move |(_, c)| get(c));
    let throttled: Vec<_> = rounds.iter().filter_map(|(_, c)| c.throttle_events).collect();
    Some(Conditions {
        load_average_1m: first.load_average_1m,
        foreign_cpu_percent: average(|c| c.foreign_cpu_percent),
        steal_percent: average(|c| c.steal_percent),
        min_mhz: all(|c| c.min_mhz).min_by(f64::total_cmp),
        max_mhz: all(|c| c.max_mhz).max_by(f64::total_cmp),
        throttle_events: (!throttled.is_empty()).then(|| throttled.iter().sum()),
        max_temperature_celsius: all(|c| c.max_temperature_celsius).max_by(f64::total_cmp),
        governor: first.governor.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_weighted_by_time_and_unknown_stays_unknown() {
        let round = |foreign, events, mhz| Conditions {
            foreign_cpu_percent: foreign,
            throttle_events: events,
            min_mhz: mhz,
            max_mhz: mhz,
            ..Conditions::default()
        };
        let merged = merge(&[
            (Duration::from_secs(1), round(Some(40.0), Some(2), Some(2000.0))),
            (Duration::from_secs(3), round(Some(0.0), Some(1), Some(3000.0))),
            (Duration::from_secs(9), round(None, None, None)),
        ])
        .unwrap();
        assert_eq!(merged.foreign_cpu_percent, Some(10.0));
        assert_eq!(merged.throttle_events, Some(3));
        assert_eq!((merged.min_mhz, merged.max_mhz), (Some(2000.0), Some(3000.0)));
        assert_eq!(merged.steal_percent, None);
        assert_eq!(merge(&[]), None);
    }
}

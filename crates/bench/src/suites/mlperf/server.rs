//! The scenario Server: queries at random times, a bound of their latencies, and the largest rate that keeps it.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::loadgen::Summary;
use super::log::{Answered, Log};
use super::measure::{ALONE, Stage, TEST};
use super::system::System;
use crate::benchmark::{BenchmarkError, MetricKey};
use crate::energy::EnergyMeter;

/// Tests of a search at most.
const PROBES: usize = 8;
/// A search ends where the rate that misses the bound is so much larger than the one that keeps it.
const CLOSE: f64 = 1.04;
/// Sleep is not exact: the last part of a wait is spent awake.
const AWAKE: Duration = Duration::from_micros(100);

/// What one test gave.
struct Probe {
    rate: f64,
    summary: Summary,
    log: Log,
    joules: Option<f64>,
}

/// Runs at the rate that is asked for, or searches for the largest within the bound.
pub(super) fn run(stage: &mut Stage<'_, '_>) -> Result<(), BenchmarkError> {
    let batch = stage.system.batch();
    let most = batch as f64 / stage.calibrate(batch)?;
    let probe = match stage.settings.target {
        Some(rate) => {
            let probe = probe(stage, rate, stage.part(TEST))?;
            let missed = !probe.summary.within_bound();
            report(stage, &probe)?;
            if missed {
                return Err(missed_bound(&probe));
            }
            probe
        }
        None => {
            let probe = search(stage, most)?;
            report(stage, &probe)?;
            probe
        }
    };
    let queries = probe.log.answered();
    let limit = stage.part(ALONE);
    let stop = || stage.context.stopped();
    let alone = replay(stage.system, &queries, limit, &stop)?;
    let with: Vec<f64> = queries.iter().map(|query| query.time).collect();
    stage.overhead(&with, &alone)
}

fn missed_bound(probe: &Probe) -> BenchmarkError {
    let reason = probe.summary.invalid().unwrap_or_default();
    BenchmarkError::Failed(format!("{} queries/s miss the bound of the latency; {reason}", probe.rate))
}

fn report(stage: &mut Stage<'_, '_>, probe: &Probe) -> Result<(), BenchmarkError> {
    stage.report(&probe.summary, &probe.log, probe.joules)?;
    let done = probe.summary.needed("Completed samples per second")?;
    stage.record(MetricKey::more_is_better("samples_per_second", "samples/s"), vec![done])
}

fn probe(stage: &mut Stage<'_, '_>, rate: f64, seconds: f64) -> Result<Probe, BenchmarkError> {
    let mut conf = stage.settings.conf(seconds) + &format!("*.Server.target_qps = {rate}\n");
    if let Some(bound) = stage.settings.bound {
        conf += &format!("*.Server.target_latency = {bound}\n*.Server.ttft_latency = {bound}\n");
    }
    let mut meter = EnergyMeter::new();
    let before = meter.joules();
    let (summary, log) = stage.test(&format!("server_{rate:.3}_qps"), conf)?;
    let joules = before.zip(meter.joules()).map(|(before, after)| after - before);
    Ok(Probe { rate, summary, log, joules })
}

/// The largest rate that keeps the bound is between these.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Interval {
    kept: Option<f64>,
    missed: Option<f64>,
}

impl Interval {
    /// The rate to try next, for an engine that answers `most` samples a second; `None` where the ends are close.
    fn next(self, most: f64) -> Option<f64> {
        match (self.kept, self.missed) {
            (None, None) => Some(0.7 * most),
            (None, Some(missed)) => Some(missed / 2.0),
            (Some(kept), None) => Some(1.4 * kept),
            (Some(kept), Some(missed)) if missed / kept > CLOSE => Some((kept * missed).sqrt()),
            _ => None,
        }
    }
}

/// Searches for the largest rate that keeps the bound; returns the test at it.
fn search(stage: &mut Stage<'_, '_>, most: f64) -> Result<Probe, BenchmarkError> {
    let seconds = stage.part(TEST / PROBES as f64);
    let mut interval = Interval::default();
    let mut best = None;
    let mut worst = None;
    for _ in 0..PROBES {
        let Some(rate) = interval.next(most) else { break };
        let probe = probe(stage, rate, seconds)?;
        if probe.summary.within_bound() {
            interval.kept = Some(rate);
            best = Some(probe);
        } else {
            interval.missed = Some(rate);
            worst = Some(probe);
        }
    }
    for (end, rate) in [("kept", interval.kept), ("missed", interval.missed)] {
        if let Some(rate) = rate {
            let key = MetricKey::more_is_better("server_rate", "queries/s").tag("bound", end);
            stage.record(key, vec![rate])?;
        }
    }
    match (best, worst) {
        (Some(best), _) => Ok(best),
        (None, Some(worst)) => Err(missed_bound(&worst)),
        (None, None) => Err(BenchmarkError::Stopped),
    }
}

/// Answers queries that come at the times at which LoadGen issued them; returns the time of each.
fn replay(
    system: &mut dyn System,
    queries: &[Answered],
    seconds: f64,
    stop: &dyn Fn() -> bool,
) -> Result<Vec<f64>, BenchmarkError> {
    let queries: Vec<&Answered> = queries.iter().take_while(|query| query.at < seconds).collect();
    let mut times = vec![0.0; queries.len()];
    let mut waiting = VecDeque::new();
    let (mut next, mut done) = (0, 0);
    let began = Instant::now();
    while done < queries.len() && !stop() {
        while next < queries.len() && queries[next].at <= began.elapsed().as_secs_f64() {
            waiting.push_back(next);
            next += 1;
        }
        if waiting.is_empty() {
            wait_until(began + Duration::from_secs_f64(queries[next].at.max(0.0)));
            continue;
        }
        let batch: Vec<usize> = waiting.drain(..waiting.len().min(system.batch())).collect();
        let samples: Vec<usize> = batch.iter().map(|&query| queries[query].sample).collect();
        system.answer(&samples, &mut |_| Ok(()))?;
        let now = began.elapsed().as_secs_f64();
        for query in batch {
            times[query] = now - queries[query].at;
            done += 1;
        }
    }
    times.truncate(done);
    Ok(times)
}

fn wait_until(end: Instant) {
    let left = end.saturating_duration_since(Instant::now());
    std::thread::sleep(left.saturating_sub(AWAKE));
    while Instant::now() < end {
        std::hint::spin_loop();
    }
}

#[cfg(test)]
mod tests {
    use super::super::system::{Answer, First};
    use super::*;

    #[test]
    fn a_search_closes_in_on_the_largest_rate() {
        for limit in [3.0, 55.0, 69.0, 99.0, 170.0] {
            let mut interval = Interval::default();
            let mut probes = 0;
            while let Some(rate) = interval.next(100.0).filter(|_| probes < PROBES) {
                probes += 1;
                *if rate <= limit { &mut interval.kept } else { &mut interval.missed } = Some(rate);
            }
            let (kept, missed) = (interval.kept.unwrap(), interval.missed.unwrap());
            assert!(kept <= limit && limit < missed && missed / kept < 1.5, "{limit}: {interval:?}");
        }
    }

    /// Takes a while for a batch, however many samples are in it.
    struct Slow(Vec<usize>);

    impl System for Slow {
        fn samples(&self) -> usize {
            10
        }
        fn batch(&self) -> usize {
            3
        }
        fn answer(&mut self, samples: &[usize], _: First<'_>) -> Result<Vec<Answer>, BenchmarkError> {
            self.0.push(samples.len());
            std::thread::sleep(Duration::from_millis(20));
            Ok(vec![Answer::default(); samples.len()])
        }
        fn judge(&mut self) -> Result<(), BenchmarkError> {
            Ok(())
        }
        fn accuracy(&mut self, _: &[Vec<u8>]) -> Result<f64, BenchmarkError> {
            Ok(100.0)
        }
    }

    #[test]
    fn queries_are_answered_when_they_come_and_share_batches() {
        let query =
            |at: f64| Answered { at, time: 0.0, first: None, token: None, sample: 1, samples: 1, tokens: 0 };
        let queries = [0.0, 0.001, 0.002, 0.003, 0.004, 0.2, 9.0].map(query);
        let mut slow = Slow(Vec::new());
        let times = replay(&mut slow, &queries, 1.0, &|| false).unwrap();
        assert_eq!(slow.0.iter().sum::<usize>(), 6);
        assert!(slow.0[..2] == [1, 3], "{:?}", slow.0);
        assert!(times.len() == 6 && times.iter().all(|&time| time >= 0.019), "{times:?}");
        assert_eq!(replay(&mut slow, &queries, 1.0, &|| true).unwrap(), Vec::<f64>::new());
    }
}

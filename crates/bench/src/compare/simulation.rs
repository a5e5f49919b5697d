//! How often a comparison is wrong, on simulated runs: the rates that `docs/statistics.md` states.

use super::tests::{metric, run};
use super::*;

const COMPARISONS: usize = 400;
const METRICS: usize = 10;

/// Noise as it is on a quiet machine: 1 % between processes, 1 % between samples, and in one sample of fifty
/// something else ran meanwhile, which only ever makes it slower.
struct Noise {
    rounds: usize,
    between: f64,
    within: f64,
    disturbed: f64,
}

const QUIET: Noise = Noise { rounds: 5, between: 0.01, within: 0.01, disturbed: 0.02 };

impl Noise {
    fn simulate(&self, random: &mut fastrand::Rng, slowdown: impl Fn(usize) -> f64) -> BenchmarkSuiteRun {
        let metrics = (0..METRICS).map(|index| {
            let truth = 100.0 * (index + 1) as f64 * slowdown(index);
            let rounds = (0..self.rounds).map(|_| {
                let process = truth * (self.between * normal(random)).exp();
                let mut sample = || {
                    let disturbance = if random.f64() < self.disturbed { 1.0 + random.f64() } else { 1.0 };
                    process * (self.within * normal(random)).exp() * disturbance
                };
                (0..20).map(|_| sample()).collect()
            });
            metric(&format!("m{index}"), rounds.collect())
        });
        run(metrics.collect())
    }

    /// The share of comparisons in which `wanted` holds, with the first metric slower by the given factor.
    fn rate(&self, seed: u64, slowdown: f64, wanted: impl Fn(&Comparison) -> bool) -> f64 {
        let mut random = fastrand::Rng::with_seed(seed);
        let one = |_: &usize| {
            let before = self.simulate(&mut random, |_| 1.0);
            let after = self.simulate(&mut random, |index| if index == 0 { slowdown } else { 1.0 });
            wanted(&compare(&before, &after, &CompareOptions::default()).unwrap())
        };
        (0..COMPARISONS).filter(one).count() as f64 / COMPARISONS as f64
    }
}

fn normal(random: &mut fastrand::Rng) -> f64 {
    (-2.0 * (1.0 - random.f64()).ln()).sqrt() * (std::f64::consts::TAU * random.f64()).cos()
}

fn changed(comparison: &Comparison) -> bool {
    comparison.metrics.iter().any(|metric| metric.verdict.is_changed())
}

fn first_regressed(comparison: &Comparison) -> bool {
    comparison.metrics[0].verdict == Change::Regressed
}

#[test]
fn the_same_program_is_rarely_called_changed() {
    let rate = QUIET.rate(1, 1.0, changed);
    println!("quiet machine, 10 metrics, 5 rounds: changed in {:.2} %", rate * 100.0);
    assert!(rate <= 0.05, "{rate}");

    // Noise so large that the threshold does not help: the statistics alone must hold.
    for (seed, noise) in [
        (2, Noise { between: 0.05, ..QUIET }),
        (3, Noise { between: 0.05, within: 0.1, disturbed: 0.2, ..QUIET }),
        (4, Noise { between: 0.05, rounds: 3, ..QUIET }),
    ] {
        let rate = noise.rate(seed, 1.0, changed);
        println!(
            "noise {} between, {} rounds: changed in {:.2} %",
            noise.between,
            noise.rounds,
            rate * 100.0
        );
        // Twice the standard error of a rate of 5 % in 400 trials on top.
        assert!(rate <= 0.072, "{seed}: {rate}");
    }
}

#[test]
fn a_true_slowdown_is_found() {
    let found = QUIET.rate(5, 1.10, first_regressed);
    println!("a slowdown by 10 % of one metric in 10: found in {:.1} %", found * 100.0);
    assert!(found >= 0.90, "{found}");
    let others =
        QUIET.rate(5, 1.10, |comparison| comparison.metrics[1..].iter().any(|m| m.verdict.is_changed()));
    assert!(others <= 0.05, "{others}");
}

#[test]
fn most_unchanged_metrics_are_called_so() {
    let quiet = Noise { between: 0.005, within: 0.005, ..QUIET };
    let rate = quiet.rate(6, 1.0, |comparison| comparison.metrics[0].verdict == Change::Unchanged);
    println!("noise of 0.5 %: unchanged metrics called unchanged in {:.1} %", rate * 100.0);
    assert!(rate >= 0.9, "{rate}");
}

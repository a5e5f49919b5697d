//! How often a comparison is wrong, on simulated runs: the rates that `docs/statistics.md` states.

use super::tests::{metric, run};
use super::*;

const COMPARISONS: usize = 400;
const METRICS: usize = 10;

/// What makes samples differ.
struct Noise {
    rounds: usize,
    /// Between processes.
    between: f64,
    /// Between samples.
    within: f64,
    /// The share of samples during which something else ran, which only ever makes them slower.
    disturbed: f64,
    /// How much the clock varies between runs, and again between rounds; even metrics follow it, odd ones do not.
    clock: f64,
}

/// As it is on a quiet machine.
const QUIET: Noise = Noise { rounds: 5, between: 0.01, within: 0.01, disturbed: 0.02, clock: 0.0 };

/// As it is on a shared one, where the neighbours decide on the clock.
const SHARED: Noise = Noise { clock: 0.08, ..QUIET };

impl Noise {
    fn simulate(&self, random: &mut fastrand::Rng, slowdown: impl Fn(usize) -> f64) -> BenchmarkSuiteRun {
        let run_clock = (-self.clock * normal(random).abs()).exp();
        let metrics = (0..METRICS).map(|index| {
            let truth = 100.0 * (index + 1) as f64 * slowdown(index);
            let (mut rounds, mut core_speeds) = (Vec::new(), Vec::new());
            for _ in 0..self.rounds {
                let clock = run_clock * (-self.clock * normal(random).abs()).exp();
                let follows = if index % 2 == 0 { clock } else { 1.0 };
                let process = truth / follows * (self.between * normal(random)).exp();
                let mut sample = || {
                    let disturbance = if random.f64() < self.disturbed { 1.0 + random.f64() } else { 1.0 };
                    process * (self.within * normal(random)).exp() * disturbance
                };
                rounds.push((0..20).map(|_| sample()).collect());
                core_speeds.push((0..20).map(|_| clock * (0.003 * normal(random)).exp()).collect());
            }
            let mut metric = metric(&format!("m{index}"), rounds);
            if let Some(statistics) = metric.statistics.as_mut().filter(|_| self.clock > 0.0) {
                statistics.core_speeds = core_speeds;
            }
            metric
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
        (7, SHARED),
    ] {
        let rate = noise.rate(seed, 1.0, changed);
        let Noise { rounds, between, clock, .. } = noise;
        println!("noise {between} between {rounds} rounds, clock {clock}: changed in {:.2} %", rate * 100.0);
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
fn a_true_slowdown_is_found_even_if_the_clock_strays() {
    let found = SHARED.rate(8, 1.10, first_regressed);
    println!("the same where the clock varies by 8 %: found in {:.1} %", found * 100.0);
    assert!(found >= 0.90, "{found}");
    // Without knowing the core's speed it would be lost in the noise, or this simulation shows nothing.
    let blind = Noise { between: 0.06, ..QUIET }.rate(8, 1.10, first_regressed);
    assert!(blind < 0.3, "{blind}");
}

#[test]
fn most_unchanged_metrics_are_called_so() {
    let quiet = Noise { between: 0.005, within: 0.005, ..QUIET };
    let rate = quiet.rate(6, 1.0, |comparison| comparison.metrics[0].verdict == Change::Unchanged);
    println!("noise of 0.5 %: unchanged metrics called unchanged in {:.1} %", rate * 100.0);
    assert!(rate >= 0.9, "{rate}");
}

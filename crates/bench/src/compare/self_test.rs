//! The comparison's test of itself, on this machine: the same kernel twice, and the kernel with a true slowdown.

use std::io;

use serde::{Deserialize, Serialize};

use super::{Change, CompareError, CompareOptions, Comparison, compare};
use crate::benchmark::{Event, ParamError, override_params};
use crate::record::{BenchmarkSpec, BenchmarkSuiteRun};
use crate::runner::{self, Executor, Observer, RunOptions};
use crate::selection::{Request, Selection, SelectionError, select};

/// The kernel that is measured, which takes a slowdown as a parameter.
const KERNEL: &str = "micro/cpu_flops";

/// What of it: the register loops, whose speed is the core's and not that of memory or of units shared with neighbours.
const KERNEL_PARAMS: [(&str, &str); 2] = [("kernels", "fma"), ("dtypes", "f64,f32")];

/// The parameter: extra work, uncounted, in percent.
const HANDICAP: &str = "handicap_percent";

/// The true slowdown that has to be found.
const SLOWDOWN_PERCENT: u32 = 10;

/// How much to try, and how.
#[derive(Debug, Clone)]
pub struct SelfTestOptions {
    /// Comparisons of the kernel with itself; half as many are made with the slowed one.
    pub comparisons: u32,
    /// How each run is made.
    pub run: RunOptions,
    /// How the runs are compared.
    pub compare: CompareOptions,
}

/// What came of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SelfTest {
    /// Comparisons of the kernel with itself.
    pub comparisons: u32,
    /// Those of them in which any metric was called improved or regressed.
    pub false_alarms: u32,
    /// Comparisons of the kernel with the slowed one.
    pub slowdowns: u32,
    /// Those of them that were called regressed.
    pub found: u32,
}

impl SelfTest {
    /// Whether at most one comparison in twenty was a false alarm, and at least nine slowdowns in ten were found.
    #[must_use]
    pub fn passes(self) -> bool {
        self.false_alarms * 20 <= self.comparisons && self.found * 10 >= self.slowdowns * 9
    }
}

/// Why the test could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SelfTestError {
    /// The kernel is not part of this program.
    #[error(transparent)]
    Selection(#[from] SelectionError),
    /// The kernel takes no slowdown.
    #[error(transparent)]
    Param(#[from] ParamError),
    /// A run could not be made.
    #[error("the kernel could not be run: {0}")]
    Run(#[from] io::Error),
    /// A run produced no metrics.
    #[error("the kernel gave no numbers: {0}")]
    NoNumbers(String),
    /// Two runs could not be compared.
    #[error(transparent)]
    Compare(#[from] CompareError),
    /// The user stopped it.
    #[error("stopped before it was done")]
    Stopped,
}

/// Makes the comparisons, telling each to `watch` as it is made, with the slowdown it had in percent.
///
/// # Errors
/// If the kernel cannot be measured here, or the user stops it.
pub fn self_test(
    options: &SelfTestOptions,
    executor: &dyn Executor,
    watch: &mut dyn FnMut(SelfTest, u32, &Comparison),
    stop: &dyn Fn() -> bool,
) -> Result<SelfTest, SelfTestError> {
    let mut result = SelfTest::default();
    for _ in 0..options.comparisons {
        let comparison = trial(options, 0, executor, stop)?;
        result.comparisons += 1;
        result.false_alarms += u32::from(comparison.metrics.iter().any(|m| m.verdict.is_changed()));
        watch(result, 0, &comparison);
    }
    for _ in 0..options.comparisons.div_ceil(2) {
        let comparison = trial(options, SLOWDOWN_PERCENT, executor, stop)?;
        result.slowdowns += 1;
        result.found += u32::from(comparison.verdict == Change::Regressed);
        watch(result, SLOWDOWN_PERCENT, &comparison);
    }
    Ok(result)
}

fn trial(
    options: &SelfTestOptions,
    slowdown: u32,
    executor: &dyn Executor,
    stop: &dyn Fn() -> bool,
) -> Result<Comparison, SelfTestError> {
    let run = |handicap: u32| {
        let run = runner::run(&kernel(handicap)?, &options.run, executor, &mut Unobserved, stop)?;
        if stop() {
            return Err(SelfTestError::Stopped);
        }
        match run.benchmarks.iter().find(|result| !result.success || result.metrics.is_empty()) {
            Some(result) => {
                let reason = result.error_message.as_deref().unwrap_or("no reason given");
                Err(SelfTestError::NoNumbers(reason.to_owned()))
            }
            None => Ok(run),
        }
    };
    Ok(compare(&run(0)?, &run(slowdown)?, &options.compare)?)
}

fn kernel(handicap: u32) -> Result<Selection, SelfTestError> {
    let request = Request { benchmarks: vec![KERNEL.to_owned()], ..Request::default() };
    let mut selection = select(&request, &[])?;
    for chosen in &mut selection.chosen {
        for (name, value) in KERNEL_PARAMS {
            override_params(&mut chosen.spec, name, value)?;
        }
        override_params(&mut chosen.spec, HANDICAP, &handicap.to_string())?;
    }
    Ok(selection)
}

/// Nobody needs to see the rounds of so many runs.
struct Unobserved;

impl Observer for Unobserved {
    fn round_started(&mut self, _spec: &BenchmarkSpec, _step: usize, _steps: usize) {}

    fn event(&mut self, _spec: &BenchmarkSpec, _event: &Event) {}

    fn checkpoint(&mut self, _so_far: &BenchmarkSuiteRun) {}
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;
    use crate::benchmark::{BenchmarkError, MetricKey, Round};
    use crate::runner::Hooks;

    /// A machine with so much noise between processes, whose kernel heeds its handicap or does not.
    struct Machine {
        random: RefCell<fastrand::Rng>,
        noise: f64,
        heeds_handicap: bool,
    }

    impl Executor for Machine {
        fn execute(&self, round: &Round, hooks: Hooks<'_>) -> Result<(), BenchmarkError> {
            let mut random = self.random.borrow_mut();
            let handicap: f64 = round.params[HANDICAP].to_string().parse().unwrap();
            let factor = if self.heeds_handicap { 1.0 + handicap / 100.0 } else { 1.0 };
            let process = 100.0 / factor * (1.0 + self.noise * (random.f64() - 0.5));
            let values = (0..10).map(|_| process * (1.0 + 0.01 * (random.f64() - 0.5))).collect();
            (hooks.on_event)(Event::Metric { key: MetricKey::more_is_better("gflops", "GFLOP/s"), values });
            Ok(())
        }
    }

    fn test_on(noise: f64, heeds_handicap: bool) -> Result<SelfTest, SelfTestError> {
        let run = RunOptions {
            rounds: 5,
            duration_seconds: Some(1.0),
            burn_in_seconds: 0.0,
            system: None,
            monitor_interval: None,
        };
        let options = SelfTestOptions { comparisons: 20, run, compare: CompareOptions::default() };
        let machine = Machine { random: RefCell::new(fastrand::Rng::with_seed(5)), noise, heeds_handicap };
        self_test(&options, &machine, &mut |_, _, _| {}, &|| false)
    }

    #[test]
    fn a_quiet_machine_passes() {
        let result = test_on(0.02, true).unwrap();
        assert_eq!(result, SelfTest { comparisons: 20, false_alarms: 0, slowdowns: 10, found: 10 });
        assert!(result.passes());
    }

    #[test]
    fn what_cannot_tell_a_slowdown_fails() {
        for result in [test_on(0.5, true).unwrap(), test_on(0.02, false).unwrap()] {
            assert!(!result.passes() && result.found < 9, "{result:?}");
        }
        assert!(!SelfTest { comparisons: 20, false_alarms: 2, slowdowns: 10, found: 10 }.passes());
        assert!(SelfTest { comparisons: 20, false_alarms: 1, slowdowns: 10, found: 9 }.passes());
    }
}

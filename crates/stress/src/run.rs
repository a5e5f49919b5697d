//! Running one test: iterations until the time is over, the machine watched meanwhile.

use std::time::Instant;

use warpforge_inventory::live::{ConditionsWatch, Watch};

use crate::catalog::Test;
use crate::error::StressError;
use crate::load::{Iteration, Load};
use crate::rate::Course;
use crate::record::{TestResult, Verdict};
use crate::settings::Settings;
use crate::telemetry::Telemetry;

/// Mismatches kept of one test; the others are only counted.
const MOST_KEPT: usize = 32;

/// Runs a test until its time is over, a result is wrong or `stop` says so. At least one iteration runs. What cannot run
/// is skipped with the reason, before anything is allocated; a host that was named and does not answer has failed.
#[must_use]
pub fn run(test: &Test, settings: &Settings, stop: &dyn Fn() -> bool) -> TestResult {
    let mut result = TestResult::new(test);
    if stop() {
        result.stopped = true;
        result.reason = Some("stopped before it began".to_owned());
        return result;
    }
    let mut load = match (test.prepare)(settings) {
        Ok(load) => load,
        Err(error) => {
            if matches!(error, StressError::Unreachable(_)) {
                (result.verdict, result.errors) = (Verdict::Fail, 1);
            }
            result.reason = Some(error.to_string());
            return result;
        }
    };
    // Where a thread cannot be had, the machine is not watched, and says nothing.
    let conditions = ConditionsWatch::start().ok();
    let watch = Watch::start(settings.monitor_interval).ok();
    repeat(&mut *load, test.unit, settings, stop, &mut result);
    result.timeline = watch.map(Watch::stop).unwrap_or_default();
    result.telemetry = Telemetry::of(&result.timeline);
    result.conditions = conditions.map(ConditionsWatch::finish);
    result.throttled = throttled(&result);
    result.notes = load.notes();
    result
}

fn repeat(
    load: &mut dyn Load,
    unit: &str,
    settings: &Settings,
    stop: &dyn Fn() -> bool,
    result: &mut TestResult,
) {
    result.verdict = Verdict::Pass;
    let mut course = Course::new(settings.duration.as_secs_f64());
    let start = Instant::now();
    loop {
        let number = result.iterations + 1;
        let from = start.elapsed().as_secs_f64();
        match load.iterate(Iteration { number, falsify: settings.falsify == Some(number) }) {
            Ok(work) => {
                course.add(from, start.elapsed().as_secs_f64(), work.amount);
                result.iterations = number;
                result.errors += work.errors;
                for mut mismatch in work.mismatches {
                    mismatch.iteration = number;
                    if result.mismatches.len() < MOST_KEPT {
                        result.mismatches.push(mismatch);
                    }
                }
            }
            Err(error) => {
                result.errors += 1;
                result.reason = Some(format!("iteration {number} broke off: {error}"));
                break;
            }
        }
        result.stopped = stop();
        if result.stopped
            || start.elapsed() >= settings.duration
            || (result.errors > 0 && !settings.keep_going)
        {
            break;
        }
    }
    if result.errors > 0 {
        result.verdict = Verdict::Fail;
    }
    result.seconds = start.elapsed().as_secs_f64();
    result.rate = course.rate(unit);
}

/// Whether clocks were lowered, where anything says so.
fn throttled(result: &TestResult) -> Option<bool> {
    let cpu = result.conditions.as_ref().and_then(|conditions| conditions.throttle_events);
    let gpu = result.telemetry.gpu_throttle_reasons.as_ref();
    match (cpu.map(|events| events > 0), gpu.map(|reasons| !reasons.is_empty())) {
        (None, None) => None,
        (cpu, gpu) => Some(cpu == Some(true) || gpu == Some(true)),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::time::Duration;

    use super::*;
    use crate::catalog::Component;
    use crate::load::Work;
    use crate::settings::Resources;

    /// Counts; wrong in iteration 3 of those where it is told to be.
    struct Counting {
        wrong_from: u64,
        breaks_at: u64,
    }

    impl Load for Counting {
        fn iterate(&mut self, iteration: Iteration) -> Result<Work, StressError> {
            if iteration.number == self.breaks_at {
                return Err(StressError::Missing("the cable".to_owned()));
            }
            let mut work = Work::of(1.0);
            if iteration.falsify || iteration.number >= self.wrong_from {
                work.mismatch("a count", "core 0", 1, 2);
            }
            Ok(work)
        }
    }

    fn test(prepare: fn(&Settings) -> Result<Box<dyn Load>, StressError>) -> Test {
        Test {
            component: Component::Cpu,
            name: "counting",
            unit: "op",
            what: "",
            verified: "",
            has_size: false,
            prepare,
        }
    }

    fn settings() -> Settings {
        Settings { resources: Resources::default(), ..Settings::new(Duration::from_secs(3600)) }
    }

    fn right(_: &Settings) -> Result<Box<dyn Load>, StressError> {
        Ok(Box::new(Counting { wrong_from: u64::MAX, breaks_at: u64::MAX }))
    }

    /// Says stop after so many questions.
    fn after(questions: u32) -> impl Fn() -> bool {
        let left = Cell::new(questions);
        move || {
            left.set(left.get().saturating_sub(1));
            left.get() == 0
        }
    }

    #[test]
    fn a_stopped_run_keeps_what_it_did() {
        let result = run(&test(right), &settings(), &after(5));
        assert_eq!((result.verdict, result.stopped, result.iterations), (Verdict::Pass, true, 4));
        assert!(result.rate.unwrap().mean > 0.0);
        assert!(!result.timeline.is_empty());
        let result = run(&test(right), &settings(), &|| true);
        assert_eq!((result.verdict, result.stopped, result.iterations), (Verdict::Skipped, true, 0));
    }

    #[test]
    fn at_least_one_iteration_runs_however_short_the_time() {
        let settings = Settings { duration: Duration::ZERO, ..settings() };
        assert_eq!(run(&test(right), &settings, &|| false).iterations, 1);
    }

    #[test]
    fn a_wrong_result_ends_the_run_in_its_iteration() {
        let settings = Settings { falsify: Some(3), ..settings() };
        let result = run(&test(right), &settings, &|| false);
        assert_eq!((result.verdict, result.iterations, result.errors), (Verdict::Fail, 3, 1));
        assert_eq!(result.mismatches[0].iteration, 3);
        assert_eq!(result.mismatches[0].location, "core 0");
    }

    #[test]
    fn with_keep_going_every_error_counts() {
        let prepare = |_: &Settings| -> Result<Box<dyn Load>, StressError> {
            Ok(Box::new(Counting { wrong_from: 2, breaks_at: u64::MAX }))
        };
        let settings = Settings { keep_going: true, ..settings() };
        let result = run(&test(prepare), &settings, &after(101));
        assert_eq!((result.verdict, result.iterations, result.errors), (Verdict::Fail, 100, 99));
        assert_eq!(result.mismatches.len(), MOST_KEPT);
    }

    #[test]
    fn what_breaks_off_failed_and_what_cannot_begin_was_skipped() {
        let breaks = |_: &Settings| -> Result<Box<dyn Load>, StressError> {
            Ok(Box::new(Counting { wrong_from: u64::MAX, breaks_at: 2 }))
        };
        let result = run(&test(breaks), &settings(), &|| false);
        assert_eq!((result.verdict, result.iterations, result.errors), (Verdict::Fail, 1, 1));
        assert_eq!(result.reason.unwrap(), "iteration 2 broke off: the cable");
        let missing = |_: &Settings| Err(StressError::Missing("no swap".to_owned()));
        let result = run(&test(missing), &settings(), &|| false);
        assert_eq!((result.verdict, result.reason.as_deref()), (Verdict::Skipped, Some("no swap")));
        assert!(result.conditions.is_none() && result.timeline.is_empty());
    }
}

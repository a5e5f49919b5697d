//! `warpt benchmark compare --self-test`: how often the comparison is wrong on this machine.

use std::sync::atomic::Ordering;

use warpforge_bench::compare::{
    CompareOptions, Comparison, SelfTest, SelfTestError, SelfTestOptions, self_test,
};
use warpforge_bench::runner::{DEFAULT_ROUNDS, RunOptions};

use crate::commands::benchmark::round;
use crate::exit::{Exit, Failure, Outcome};
use crate::signals::stop_on_signals;
use crate::term;

/// Measuring time of each run: short, since there are many.
const RUN_SECONDS: f64 = 2.0;

/// Load before the first measurement of a round: enough to raise the clock.
const BURN_IN_SECONDS: f64 = 0.1;

/// Tests the comparison and prints both rates.
pub(super) fn run(comparisons: u32, compare: CompareOptions, json: bool) -> Outcome {
    let options = SelfTestOptions {
        comparisons,
        run: RunOptions {
            rounds: DEFAULT_ROUNDS,
            duration_seconds: Some(RUN_SECONDS),
            burn_in_seconds: BURN_IN_SECONDS,
            system: None,
            monitor_interval: None,
        },
        compare,
    };
    let stop = stop_on_signals()?;
    let executor = round::executor()?;
    let result = match self_test(&options, &executor, &mut tell, &|| stop.load(Ordering::Relaxed)) {
        Ok(result) => result,
        Err(SelfTestError::Stopped) => return Ok(Exit::Inconclusive),
        Err(error) => return Err(Failure::not_possible(error)),
    };
    if json {
        term::print_json(&result)?;
    } else {
        term::print(&summary(result))?;
    }
    Ok(if result.passes() { Exit::Pass } else { Exit::CheckFailed })
}

/// A line for each comparison, and one for each metric that changed when nothing did.
fn tell(so_far: SelfTest, slowdown: u32, comparison: &Comparison) {
    let (what, number) = match slowdown {
        0 => ("with itself".to_owned(), so_far.comparisons),
        percent => (format!("slowed by {percent} %"), so_far.slowdowns),
    };
    let counts = comparison.counts;
    crate::term::tell!(
        "{what}, {number}: {} ({} regressed, {} improved, {} unchanged, {} inconclusive)",
        comparison.verdict,
        counts.regressed,
        counts.improved,
        counts.unchanged,
        counts.inconclusive
    );
    for metric in comparison.metrics.iter().filter(|metric| slowdown == 0 && metric.verdict.is_changed()) {
        crate::term::tell!(
            "    {} {}: {:+.1} %",
            metric.label(),
            metric.verdict,
            metric.change_percent.unwrap_or(f64::NAN)
        );
    }
}

fn summary(result: SelfTest) -> String {
    let verdict = if result.passes() { "PASS" } else { "FAIL" };
    format!(
        "same program called changed: {} of {} comparisons (at most 1 of 20 allowed)\n\
         true slowdown by 10 % found: {} of {} comparisons (at least 9 of 10 wanted)\n\
         {verdict}\n",
        result.false_alarms, result.comparisons, result.found, result.slowdowns
    )
}

//! What makes a comparison less than fair.

use crate::record::{BenchmarkRunResult, BenchmarkSuiteRun, Conditions};

/// CPU time taken by other programs or virtual machines from which on it is worth a warning, in percent of all cores.
const NOTABLE_FOREIGN_PERCENT: f64 = 5.0;

/// What a reader should know before trusting the verdicts.
pub(super) fn warnings(before: &BenchmarkSuiteRun, after: &BenchmarkSuiteRun) -> Vec<String> {
    let mut warnings = Vec::new();
    if before.tool_version != after.tool_version {
        warnings.push(format!(
            "different versions of warpt: {} and {}",
            or_unknown(&before.tool_version),
            or_unknown(&after.tool_version)
        ));
    }
    for (run, side) in [(before, "earlier"), (after, "later")] {
        if run.benchmarks.iter().all(|result| result.system.is_none()) {
            warnings.push(format!("the {side} run does not say which machine it was made on"));
        }
        for result in &run.benchmarks {
            let disturbances = result.conditions.as_ref().map(disturbances).unwrap_or_default();
            for what in disturbances {
                warnings.push(format!("{} in the {side} run: {what}", result.spec.id));
            }
        }
    }
    for earlier in &before.benchmarks {
        for later in after.benchmarks.iter().filter(|later| later.spec.id == earlier.spec.id) {
            warnings.extend(differences(earlier, later));
        }
    }
    warnings
}

fn or_unknown(version: &str) -> &str {
    if version.is_empty() { "unknown" } else { version }
}

/// What disturbed a benchmark.
fn disturbances(conditions: &Conditions) -> Vec<String> {
    let notable = |share: Option<f64>| share.filter(|share| *share >= NOTABLE_FOREIGN_PERCENT);
    let mut found = Vec::new();
    if let Some(share) = notable(conditions.foreign_cpu_percent) {
        found.push(format!("other programs took {share:.0} % of the CPU"));
    }
    if let Some(share) = notable(conditions.steal_percent) {
        found.push(format!("the hypervisor took {share:.0} % of the CPU"));
    }
    if let Some(count) = conditions.throttle_events.filter(|count| *count > 0) {
        found.push(format!("the processor was throttled {count} times"));
    }
    found
}

/// What was set differently for the same benchmark.
fn differences(earlier: &BenchmarkRunResult, later: &BenchmarkRunResult) -> Vec<String> {
    let id = &earlier.spec.id;
    let (a, b) =
        (earlier.spec.params.clone().unwrap_or_default(), later.spec.params.clone().unwrap_or_default());
    let mut names: Vec<&String> = a.keys().chain(b.keys()).collect();
    names.sort_unstable();
    names.dedup();
    let show =
        |value: Option<&crate::record::ParamValue>| value.map_or("unset".to_owned(), ToString::to_string);
    let mut found: Vec<String> = names
        .into_iter()
        .filter(|name| a.get(*name) != b.get(*name))
        .map(|name| format!("{id}: parameter {name} is {} and {}", show(a.get(name)), show(b.get(name))))
        .collect();
    let governor = |result: &BenchmarkRunResult| result.conditions.as_ref()?.governor.clone();
    if let (Some(a), Some(b)) = (governor(earlier), governor(later))
        && a != b
    {
        found.push(format!("{id}: the frequency governor is {a} and {b}"));
    }
    found
}

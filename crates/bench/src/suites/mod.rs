//! The suites, each in a folder of its own, and the list of them.

pub mod biobench;
mod device;
pub mod linpack;
pub mod micro;
pub mod mlperf;
mod packages;
pub mod pepbench;
mod percentiles;
mod stages;
#[cfg(test)]
mod testing;
mod values;

use crate::benchmark::Benchmark;
use crate::record::BenchmarkSpec;

/// A named collection of benchmarks.
pub struct Suite {
    /// The name used on the command line and in records.
    pub name: &'static str,
    /// What the suite is for, in a line.
    pub description: &'static str,
    /// The suite's benchmarks, in the order in which they run.
    pub benchmarks: &'static [&'static dyn Benchmark],
}

impl Suite {
    /// The benchmarks' specifications.
    #[must_use]
    pub fn list_benchmarks(&self) -> Vec<BenchmarkSpec> {
        self.benchmarks.iter().map(|benchmark| benchmark.spec()).collect()
    }

    /// A benchmark by its name.
    #[must_use]
    pub fn get_benchmark(&self, name: &str) -> Option<&'static dyn Benchmark> {
        self.benchmarks.iter().copied().find(|benchmark| benchmark.spec().id.name == name)
    }
}

/// Every suite there is. A new one is a folder beside this file and a line here.
pub const SUITES: &[&Suite] =
    &[&micro::SUITE, &linpack::SUITE, &pepbench::SUITE, &biobench::SUITE, &mlperf::SUITE];

/// The names of all metrics that benchmarks report, for completions.
pub const METRICS: &[&str] = &[
    "accuracy_percent",
    "bandwidth",
    "bases_per_second",
    "clock",
    "energy",
    "f1",
    "gcups",
    "genome_fraction",
    "gflops",
    "gops",
    "identity",
    "index_time",
    "iops",
    "kmers_per_second",
    "latency",
    "latency_p50",
    "latency_p90",
    "latency_p95",
    "latency_p99",
    "latency_p99_9",
    "loadgen_overhead_percent",
    "megabases_per_second",
    "misjoins",
    "n50",
    "pairs_per_second",
    "peak_percent",
    "peak_rss",
    "power",
    "precision",
    "queries_per_second",
    "query_overhead",
    "query_time",
    "read_bandwidth_percent",
    "reads_at_origin",
    "reads_per_second",
    "recall",
    "refinement_steps",
    "residual",
    "rtt_p50",
    "rtt_p95",
    "rtt_p99",
    "rtt_p99_9",
    "samples_per_second",
    "seconds",
    "sentences_per_second",
    "server_rate",
    "stage_time",
    "stall_percent",
    "throughput",
    "time_to_first_token",
    "token_time",
    "tokens_per_second",
    "windows_per_second",
];

/// A suite by its name.
#[must_use]
pub fn get_suite(name: &str) -> Option<&'static Suite> {
    SUITES.iter().copied().find(|suite| suite.name == name)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;
    use crate::benchmark::BenchmarkError;
    use crate::record::ParamValue;

    /// The names that the suites' source gives to metrics.
    fn names(folder: &Path, found: &mut Vec<String>) {
        const BEFORE: [&str; 3] = ["more_is_better(\"", "less_is_better(\"", "common, \""];
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                names(&path, found);
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            let code = text.split("#[cfg(test)]").next().unwrap_or_default();
            for before in BEFORE {
                let rest = code.split(before).skip(1);
                found.extend(rest.filter_map(|rest| Some(rest.split_once('"')?.0.to_owned())));
            }
        }
    }

    #[test]
    fn every_parameter_says_what_it_takes_and_refuses_the_rest() {
        for benchmark in SUITES.iter().flat_map(|suite| suite.benchmarks) {
            let spec = benchmark.spec();
            let (name, params) = (spec.id, spec.params.unwrap_or_default());
            let takes = benchmark.takes();
            let known: BTreeSet<&str> = takes.iter().map(|(param, _)| *param).collect();
            assert_eq!(known, params.keys().map(String::as_str).collect(), "{name}");
            for (param, text) in &takes {
                let number =
                    |text: &str| text.split(|c: char| !c.is_ascii_digit()).next()?.parse::<i64>().ok();
                let ends =
                    text.split_once(" to ").map(|(least, most)| (least.parse::<i64>().ok(), number(most)));
                let Some((Some(least), Some(most))) = ends else { continue };
                for wrong in [least - 1, most + 1] {
                    // Zero may stand for something else.
                    if wrong == 0 && text.contains("; 0 ") {
                        continue;
                    }
                    let mut params = params.clone();
                    params.insert((*param).to_owned(), ParamValue::Int(wrong));
                    let refused = benchmark.prepare(&params);
                    assert!(
                        matches!(refused, Err(BenchmarkError::BadInput(_))),
                        "{name} {param}={wrong}: {refused:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn the_list_has_every_metric_that_the_source_names() {
        let mut found = Vec::new();
        names(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src/suites"), &mut found);
        assert!(found.len() > 20, "{found:?}");
        for name in &found {
            assert!(METRICS.contains(&name.as_str()), "{name} is missing");
        }
        assert!(METRICS.is_sorted(), "names are found faster in order");
    }
}

//! The suites, each in a folder of its own, and the list of them.

pub mod biobench;
pub mod linpack;
pub mod micro;

use crate::benchmark::Benchmark;
use crate::record::BenchmarkSpec;

/// A named collection of benchmarks.
pub trait Suite: Sync {
    /// The name used on the command line and in records.
    fn name(&self) -> &'static str;

    /// What the suite is for, in a line.
    fn description(&self) -> &'static str;

    /// The suite's benchmarks, in the order in which they run.
    fn benchmarks(&self) -> &'static [&'static dyn Benchmark];

    /// The benchmarks' specifications.
    fn list_benchmarks(&self) -> Vec<BenchmarkSpec> {
        self.benchmarks().iter().map(|benchmark| benchmark.spec()).collect()
    }

    /// A benchmark by its name.
    fn get_benchmark(&self, name: &str) -> Option<&'static dyn Benchmark> {
        self.benchmarks().iter().copied().find(|benchmark| benchmark.spec().id.name == name)
    }
}

/// Every suite there is. A new one is a folder beside this file and a line here.
pub const SUITES: &[&dyn Suite] = &[&micro::Micro, &linpack::Linpack, &biobench::Biobench];

/// A suite by its name.
#[must_use]
pub fn get_suite(name: &str) -> Option<&'static dyn Suite> {
    SUITES.iter().copied().find(|suite| suite.name() == name)
}

//! Placeholder until its owner writes it.

use super::spec;
use crate::benchmark::{Benchmark, BenchmarkError, RunContext};
use crate::record::{BenchmarkComponent, BenchmarkSpec, Params};

/// The benchmark.
#[derive(Debug)]
pub(super) struct MemLatency;

impl Benchmark for MemLatency {
    fn spec(&self) -> BenchmarkSpec {
        spec("mem_latency", BenchmarkComponent::Ram, 10, "", Params::new())
    }

    fn prepare(&self, _params: &Params) -> Result<(), BenchmarkError> {
        Ok(())
    }

    fn run(&self, _context: &mut RunContext<'_>) -> Result<(), BenchmarkError> {
        Ok(())
    }
}

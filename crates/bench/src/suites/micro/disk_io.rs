//! Placeholder until its owner writes it.

use super::spec;
use crate::benchmark::{Benchmark, BenchmarkError, RunContext};
use crate::record::{BenchmarkComponent, BenchmarkSpec, Params};

/// The benchmark.
#[derive(Debug)]
pub(super) struct DiskIo;

impl Benchmark for DiskIo {
    fn spec(&self) -> BenchmarkSpec {
        spec("disk_io", BenchmarkComponent::Storage, 10, "", Params::new())
    }

    fn prepare(&self, _params: &Params) -> Result<(), BenchmarkError> {
        Ok(())
    }

    fn run(&self, _context: &mut RunContext<'_>) -> Result<(), BenchmarkError> {
        Ok(())
    }
}

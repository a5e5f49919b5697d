//! Calibrates the instrumentation: the cost of an empty instrumented kernel.

use std::sync::Arc;
use std::time::Duration;

use warpforge_codegen::Salt;
use warpforge_codegen::prelude::prelude;

use crate::driver::{Gpu, Module, Stream};
use crate::error::Result;
use crate::steps::dialect;

/// A kernel that only records its start and end.
const SOURCE: &str = "
extern \"C\" __global__ void warpforge_nothing(unsigned long long* salt) {
  const unsigned long long salt_start = wf_clock();
  wf_salt_timing(salt, salt_start);
}
";

/// Blocks of the calibration kernel.
const BLOCKS: u32 = 64;

/// The median time between the two clock reads of a block.
pub(crate) fn cost(gpu: &Arc<Gpu>, stream: &Stream) -> Result<Duration> {
    let vendor = gpu.driver.vendor;
    let source = format!("{}{SOURCE}", prelude(dialect(vendor)));
    let code = gpu.compiler()?.compile("warpforge_nothing", &source, &gpu.properties)?;
    let function = Module::load(gpu, &code)?.function("warpforge_nothing", 0)?;
    let bytes = BLOCKS as usize * Salt::Timing.record_bytes();
    let buffer = gpu.allocate(bytes)?;
    stream.fill(buffer.address(), 0, bytes)?;
    stream.launch(&function, [BLOCKS, 1, 1], [128, 1, 1], 0, &mut [vec![buffer.address()]])?;
    let mut seen = vec![0; bytes];
    stream.read(buffer.address(), &mut seen)?;
    let mut times: Vec<u64> =
        Salt::Timing.records(&seen).iter().map(|record| record.end.saturating_sub(record.start)).collect();
    times.sort_unstable();
    Ok(Duration::from_nanos(times.get(times.len() / 2).copied().unwrap_or(0)))
}

//! GPU arithmetic and memory: products by the vendor's library and multiply-adds of the ordinary units in each precision,
//! copies in each direction, with power and clock beside them.

mod gauge;

use std::time::Instant;

pub use gauge::Gauge;
use warpforge_backend_gpu::probe::{CopyProbe, Direction, FmaProbe, GemmProbe, NumericFormat};
use warpforge_backend_gpu::{GpuError, Vendor};

use super::spec;
use crate::benchmark::{Benchmark, BenchmarkError, MetricKey, RunContext};
use crate::record::{BenchmarkComponent, BenchmarkSpec, ParamValue, Params};
use crate::suites::device::{DEVICES, open};
use crate::suites::values::within;

/// Least samples of a metric in a round.
const LEAST_SAMPLES: usize = 5;

/// Runs before the first sample.
const WARM_UP: usize = 3;

/// Peak arithmetic rate of the GPU.
#[derive(Debug)]
pub(super) struct GpuFlops;

/// Memory and host transfer rates of the GPU.
#[derive(Debug)]
pub(super) struct GpuBandwidth;

impl Benchmark for GpuFlops {
    fn spec(&self) -> BenchmarkSpec {
        let description = "Products of large matrices in each precision, by tensor cores where there are such, and \
                           multiply-adds of the ordinary units; power and clock beside them";
        spec(
            "gpu_flops",
            BenchmarkComponent::Gpu,
            10,
            description,
            &[("device", ParamValue::Int(0)), ("size", ParamValue::Int(8192))],
        )
    }

    fn takes(&self) -> Vec<(&'static str, String)> {
        vec![("device", DEVICES.to_owned()), ("size", format!("{LEAST_SIZE} to {LARGEST_SIZE}"))]
    }

    fn prepare(&self, params: &Params) -> Result<(), BenchmarkError> {
        size(params)?;
        open(params).map(drop)
    }

    fn run(&self, context: &mut RunContext<'_>) -> Result<(), BenchmarkError> {
        let size = size(context.params())?;
        let (probe, vendor) = open(context.params())?;
        context.plan(2 * NumericFormat::ALL.len());
        let guid = probe.guid();
        for numbers in NumericFormat::ALL {
            match FmaProbe::new(&probe, numbers) {
                Ok(Some(chain)) => {
                    let key = arithmetic(numbers, "fma", false, vendor);
                    measure(context, key, guid, || chain.rate())?;
                }
                Ok(None) => {}
                Err(error) => context.warn(format!("no multiply-adds of {}: {error}", numbers.name())),
            }
            // 64-bit products take longer by an order of magnitude.
            let size = if numbers == NumericFormat::F64 { size.div_ceil(2) } else { size };
            match GemmProbe::new(&probe, numbers, size) {
                Ok(product) => {
                    let key = arithmetic(numbers, "gemm", product.on_tensor_cores(), vendor);
                    measure(context, key, guid, || product.rate())?;
                }
                Err(error) => context.warn(format!("no products of {}: {error}", numbers.name())),
            }
        }
        Ok(())
    }
}

/// The rate of some arithmetic.
fn arithmetic(numbers: NumericFormat, kernel: &str, tensor_cores: bool, vendor: Vendor) -> MetricKey {
    let (name, unit) = if numbers == NumericFormat::I8 { ("gops", "GOP/s") } else { ("gflops", "GFLOP/s") };
    MetricKey::more_is_better(name, unit)
        .tag("dtype", numbers.name())
        .tag("kernel", kernel)
        .tag("tensor_cores", tensor_cores)
        .tag("api", vendor.name())
}

impl Benchmark for GpuBandwidth {
    fn spec(&self) -> BenchmarkSpec {
        let description =
            "Copies inside the GPU's memory (bytes read and written), and from and to pinned host memory";
        spec(
            "gpu_bandwidth",
            BenchmarkComponent::Gpu,
            10,
            description,
            &[("device", ParamValue::Int(0)), ("bytes", ParamValue::Int(1 << 30))],
        )
    }

    fn takes(&self) -> Vec<(&'static str, String)> {
        vec![("device", DEVICES.to_owned()), ("bytes", format!("{LEAST_BYTES} to {MOST_BYTES}"))]
    }

    fn prepare(&self, params: &Params) -> Result<(), BenchmarkError> {
        bytes(params)?;
        open(params).map(drop)
    }

    fn run(&self, context: &mut RunContext<'_>) -> Result<(), BenchmarkError> {
        let bytes = bytes(context.params())?;
        let (probe, vendor) = open(context.params())?;
        context.plan(Direction::ALL.len());
        for direction in Direction::ALL {
            let mut copy = CopyProbe::new(&probe, direction, bytes)?;
            let key = MetricKey::more_is_better("bandwidth", "GB/s").tag("copy", direction.name());
            let key = key.tag("api", vendor.name());
            measure(context, key, probe.guid(), || copy.rate())?;
        }
        Ok(())
    }
}

/// Runs for an equal share of the time, and records the rate with the power and the clock of the GPU meanwhile.
fn measure(
    context: &mut RunContext<'_>,
    key: MetricKey,
    guid: Option<&str>,
    mut run: impl FnMut() -> Result<f64, GpuError>,
) -> Result<(), BenchmarkError> {
    context.begin(&key.label());
    let share = context.share();
    for _ in 0..WARM_UP {
        run()?;
    }
    let mut gauge = Gauge::new(guid);
    let (mut values, begin) = (Vec::new(), Instant::now());
    while values.len() < LEAST_SAMPLES || begin.elapsed() < share {
        if context.stopped() {
            return Err(BenchmarkError::Stopped);
        }
        values.push(run()? / 1e9);
        gauge.look();
    }
    let power = MetricKey { tags: key.tags.clone(), ..MetricKey::less_is_better("power", "W") };
    let clock = MetricKey { tags: key.tags.clone(), ..MetricKey::more_is_better("clock", "MHz") };
    context.record(key, values)?;
    for (key, values) in [(power, gauge.power), (clock, gauge.clock)] {
        if !values.is_empty() {
            context.record(key, values)?;
        }
    }
    Ok(())
}

/// Rows and columns of matrices.
const LEAST_SIZE: i64 = 64;
const LARGEST_SIZE: i64 = 65_536;

/// Bytes of a copy.
const LEAST_BYTES: i64 = 1 << 20;
const MOST_BYTES: i64 = 1 << 36;

fn size(params: &Params) -> Result<usize, BenchmarkError> {
    within(params, "size", LEAST_SIZE, LARGEST_SIZE)
}

fn bytes(params: &Params) -> Result<usize, BenchmarkError> {
    within(params, "bytes", LEAST_BYTES, MOST_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nonsense_is_refused_by_name() {
        let with = |name: &str, value| Params::from([(name.to_owned(), ParamValue::Int(value))]);
        assert!(size(&with("size", 8192)).is_ok());
        assert!(size(&with("size", 3)).unwrap_err().to_string().contains("size=3: give "));
        assert!(bytes(&with("bytes", -1)).unwrap_err().to_string().contains("bytes=-1: give "));
    }
}

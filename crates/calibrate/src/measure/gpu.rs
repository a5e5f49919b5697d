//! Peaks and bandwidth of a GPU.

use std::time::{Duration, Instant};

use warpforge::Device;
use warpforge_backend_gpu::probe::{CopyProbe, Direction, FmaProbe, GemmProbe, NumericFormat, Probe};
use warpforge_backend_gpu::{GpuError, Vendor};
use warpforge_bench::suites::micro::gpu::Gauge;
use warpforge_measure::stats::{Summary, mean};

use super::Session;
use crate::cases::Scale;
use crate::error::{Error, Result};
use crate::profile::{Bandwidth, Mode, Peak};

/// Rows of the matrices.
const SIZE: usize = 8192;

/// How long a peak is held for the sustained rate.
const SUSTAINED: Duration = Duration::from_secs(10);

fn open(device: Device) -> Result<Probe> {
    let (vendor, number) = match device {
        Device::Cuda(number) => (Vendor::Cuda, number),
        Device::Hip(number) => (Vendor::Hip, number),
        Device::Cpu => return Err(Error::Settings("the CPU is no GPU".to_owned())),
    };
    Ok(Probe::open(vendor, number)?)
}

/// Multiply-adds of the ordinary units and GEMMs on tensor cores, in each format.
pub(super) fn peaks(session: &mut Session<'_>) -> Result<()> {
    let probe = open(session.settings.device)?;
    let size = if session.settings.scale == Scale::Smoke { 64 } else { SIZE };
    for format in NumericFormat::ALL {
        // The loop is as long as a GPU needs it to be: not for a try of the program.
        if session.settings.scale != Scale::Smoke {
            match FmaProbe::new(&probe, format) {
                Ok(Some(chain)) => both(session, &probe, format, "ordinary units", || chain.rate())?,
                Ok(None) => {}
                Err(error) => session.skip(format!("multiply-adds of {}: {error}", format.name())),
            }
        }
        let size = if format == NumericFormat::F64 { size.div_ceil(2) } else { size };
        match GemmProbe::new(&probe, format, size) {
            Ok(product) => {
                let isa = if product.on_tensor_cores() { "tensor cores" } else { "ordinary units (GEMM)" };
                both(session, &probe, format, isa, || product.rate())?;
            }
            Err(error) => session.skip(format!("GEMMs of {}: {error}", format.name())),
        }
    }
    Ok(())
}

/// What is missing of a burst, and where the scale asks for it of the sustained rate.
fn both(
    session: &mut Session<'_>,
    probe: &Probe,
    format: NumericFormat,
    isa: &str,
    mut rate: impl FnMut() -> std::result::Result<f64, GpuError>,
) -> Result<()> {
    for mode in [Mode::Burst, Mode::Sustained] {
        let quick = session.settings.scale != Scale::Full;
        if mode == Mode::Sustained
            && quick
            && (format != NumericFormat::Bf16 || session.settings.scale == Scale::Smoke)
        {
            continue;
        }
        let is_known = |known: &Peak| {
            known.device == session.device
                && known.dtype == format.name()
                && known.isa == isa
                && known.mode == mode
        };
        if session.profile.peaks.iter().any(is_known) {
            continue;
        }
        rate()?;
        let mut gauge = Gauge::new(probe.guid());
        let (mut rates, begin) = (Vec::new(), Instant::now());
        let length = if mode == Mode::Burst { Duration::from_millis(10) } else { SUSTAINED };
        while rates.len() < 3 || (begin.elapsed() < length && !session.stopped()) {
            rates.push(rate()? / 1e9);
            gauge.look();
        }
        if session.stopped() {
            return Err(Error::Stopped);
        }
        let summary = Summary::of_rounds(&[rates]);
        let summary = summary.ok_or_else(|| Error::NotPossible("a GPU reported no rate".to_owned()))?;
        session.profile.peaks.push(Peak {
            device: session.device.clone(),
            dtype: format.name().to_owned(),
            isa: isa.to_owned(),
            threads: 1,
            mode,
            gops: summary.value,
            ci_low: summary.spread.ci_low,
            ci_high: summary.spread.ci_high,
            watts: mean(&gauge.power),
            clock: mean(&gauge.clock),
            pace: None,
        });
    }
    Ok(())
}

/// What is missing of copies inside the L2 cache and the memory of the device, and over the bus in both directions.
pub(super) fn bandwidth(session: &mut Session<'_>) -> Result<()> {
    let probe = open(session.settings.device)?;
    let smoke = session.settings.scale == Scale::Smoke;
    let size = |bytes: usize| if smoke { 1 << 16 } else { bytes };
    for (level, direction, bytes) in [
        ("L2", Direction::Within, 8 << 20),
        ("HBM", Direction::Within, 1 << 30),
        ("PCIe", Direction::In, 256 << 20),
        ("PCIe", Direction::Out, 256 << 20),
    ] {
        let (access, stores) = match direction {
            Direction::Within => ("copy", "ordinary"),
            other => (other.name(), "none"),
        };
        let is_known = |known: &Bandwidth| {
            known.device == session.device && known.level == level && known.access == access
        };
        if session.profile.bandwidth.iter().any(is_known) {
            continue;
        }
        let bytes = size(bytes);
        let mut copy = CopyProbe::new(&probe, direction, bytes)?;
        copy.rate()?;
        let (mut rates, begin) = (Vec::new(), Instant::now());
        while rates.len() < 5 || (!smoke && begin.elapsed() < Duration::from_millis(200)) {
            rates.push(copy.rate()? / 1e9);
        }
        let summary = Summary::of_rounds(&[rates]);
        let summary = summary.ok_or_else(|| Error::NotPossible("a GPU reported no rate".to_owned()))?;
        if session.stopped() {
            return Err(Error::Stopped);
        }
        session.profile.bandwidth.push(Bandwidth {
            device: session.device.clone(),
            level: level.to_owned(),
            access: access.to_owned(),
            stores: stores.to_owned(),
            threads: 1,
            working_set_bytes: bytes as u64,
            gbps: summary.value,
            ci_low: summary.spread.ci_low,
            ci_high: summary.spread.ci_high,
            pace: None,
        });
    }
    Ok(())
}

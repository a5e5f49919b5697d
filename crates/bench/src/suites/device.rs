//! The GPU that a benchmark measures, and the device that it runs a model on.

use warpforge::Device;
use warpforge_backend_gpu::probe::{CopyProbe, Direction, Probe};
use warpforge_backend_gpu::{GpuError, Vendor};

use super::values::bad_value;
use crate::benchmark::{BenchmarkError, MetricKey, int, text};
use crate::record::Params;

/// What `device` takes.
pub(super) const DEVICES: &str = "the number of a GPU, from 0";

/// The GPU that the parameter `device` names: NVIDIA's, else AMD's.
///
/// # Errors
/// [`BenchmarkError::NotPossible`] where there is none.
pub(super) fn open(params: &Params) -> Result<(Probe, Vendor), BenchmarkError> {
    let device = int(params, "device");
    let number = u32::try_from(device)
        .map_err(|_| BenchmarkError::BadInput(format!("device is {device}, not the number of a GPU")))?;
    let mut reasons = Vec::new();
    for vendor in [Vendor::Cuda, Vendor::Hip] {
        match Probe::open(vendor, number) {
            Ok(probe) => return Ok((probe, vendor)),
            Err(error) => reasons.push(error.to_string()),
        }
    }
    Err(BenchmarkError::NotPossible(reasons.join("; ")))
}

/// What `device` takes where a model runs.
pub(super) const PLACES: &str = "cpu, cuda, cuda:N, hip or hip:N";

/// Bytes of the copies that show a GPU's bandwidth, and how many there are.
const COPIED: usize = 256 << 20;
const COPIES: usize = 7;

/// The device that the parameter `device` names to run a model on.
///
/// # Errors
/// Another word; [`BenchmarkError::NotPossible`] where there is no such GPU.
pub(super) fn named(params: &Params) -> Result<Device, BenchmarkError> {
    let name = text(params, "device");
    let device = name.parse().map_err(|reason: String| bad_value("device", &name, &reason))?;
    probe(device).map(|_| device)
}

/// The GPU of a device; none of the CPU.
fn probe(device: Device) -> Result<Option<Probe>, BenchmarkError> {
    let (vendor, number) = match device {
        Device::Cpu => return Ok(None),
        Device::Cuda(number) => (Vendor::Cuda, number),
        Device::Hip(number) => (Vendor::Hip, number),
    };
    Probe::open(vendor, number).map(Some).map_err(|error| BenchmarkError::NotPossible(error.to_string()))
}

/// Bytes a second that copies inside a GPU's memory read and write; none of the CPU.
///
/// # Errors
/// When the GPU fails.
pub(super) fn copy_rate(device: Device) -> Result<Option<f64>, BenchmarkError> {
    let Some(probe) = probe(device)? else { return Ok(None) };
    let mut copy = CopyProbe::new(&probe, Direction::Within, COPIED)?;
    let mut best = 0.0;
    for _ in 0..COPIES {
        best = copy.rate()?.max(best);
    }
    Ok(Some(best))
}

/// Names the device of a metric, where it is no CPU.
pub(super) fn tag(key: MetricKey, device: Device) -> MetricKey {
    if device == Device::Cpu { key } else { key.tag("device", device) }
}

impl From<GpuError> for BenchmarkError {
    fn from(error: GpuError) -> Self {
        Self::Failed(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::ParamValue;

    #[test]
    fn a_place_is_a_device_that_is_there() {
        let params = |name: &str| Params::from([("device".to_owned(), ParamValue::Text(name.to_owned()))]);
        assert_eq!(named(&params("cpu")).unwrap(), Device::Cpu);
        let wrong = named(&params("gpu")).unwrap_err();
        assert!(
            matches!(wrong, BenchmarkError::BadInput(_)) && wrong.to_string().contains("device=gpu"),
            "{wrong}"
        );
        // No machine has so many.
        let missing = named(&params("cuda:4000000000")).unwrap_err();
        assert!(matches!(missing, BenchmarkError::NotPossible(_)), "{missing}");
        assert!(copy_rate(Device::Cpu).unwrap().is_none());
    }

    #[test]
    fn a_device_is_a_number() {
        let params = Params::from([("device".to_owned(), ParamValue::Int(-1))]);
        assert!(open(&params).err().is_some_and(|error| matches!(error, BenchmarkError::BadInput(_))));
    }
}

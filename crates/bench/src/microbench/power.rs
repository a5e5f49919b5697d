//! What the machine draws while rows are measured, and the memory of its GPUs.

use std::time::{Duration, Instant};

use warpforge::Device;
use warpforge_inventory::live::{EnergyMeter, Sampler, TimelineRecord};

/// The time between two readings of a GPU that has a power meter and no counter.
const INTERVAL: Duration = Duration::from_millis(100);

/// Reads counters and power meters.
pub(super) struct Power(Sampler);

/// A measurement of energy.
pub(super) struct Metered<'p> {
    power: &'p mut Power,
    device: Device,
    meter: EnergyMeter,
    last: Instant,
    before: Option<f64>,
}

impl Power {
    pub(super) fn new() -> Self {
        Self(Sampler::new())
    }

    /// The most bytes that any GPU of a device's kind has free; `None` where none says.
    pub(super) fn free_on_gpu(&mut self) -> Option<u64> {
        let usage = self.0.sample().gpu_usage;
        usage.iter().filter_map(|gpu| gpu.memory_total_bytes?.checked_sub(gpu.memory_used_bytes?)).max()
    }

    /// Begins to measure what a device draws.
    pub(super) fn metered(&mut self, device: Device) -> Metered<'_> {
        let mut meter = EnergyMeter::new();
        // The first reading begins where the one before ended: what lies between belongs to nobody.
        let record = TimelineRecord { interval_seconds: Some(0.0), ..self.0.sample() };
        meter.add(&record);
        let before = joules(&meter, device, &record);
        Metered { power: self, device, meter, last: Instant::now(), before }
    }
}

impl Metered<'_> {
    /// Whether the machine tells what the device draws.
    pub(super) fn tells(&self) -> bool {
        self.before.is_some()
    }

    /// Reads a GPU's power from time to time. Counters of processors are read once at the end.
    pub(super) fn tick(&mut self) {
        if self.device != Device::Cpu && self.last.elapsed() > INTERVAL {
            self.meter.add(&self.power.0.sample());
            self.last = Instant::now();
        }
    }

    /// What was used since the beginning; `None` where the machine does not tell, or has several GPUs.
    pub(super) fn joules(mut self) -> Option<f64> {
        let record = self.power.0.sample();
        self.meter.add(&record);
        let used = joules(&self.meter, self.device, &record)? - self.before?;
        (used > 0.0).then_some(used)
    }
}

fn joules(meter: &EnergyMeter, device: Device, record: &TimelineRecord) -> Option<f64> {
    let energy = meter.energy();
    match device {
        Device::Cpu => energy.processor_joules(),
        _ if record.gpu_usage.len() == 1 => {
            energy.sources.iter().find(|source| source.source.starts_with("gpu-"))?.joules
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use warpforge_inventory::live::GpuUsage;

    use super::*;

    #[test]
    fn energy_is_that_of_the_only_gpu() {
        let record = |seconds: f64, gpus: usize| TimelineRecord {
            interval_seconds: Some(seconds),
            gpu_usage: vec![GpuUsage { power_watts: Some(100.0), ..GpuUsage::default() }; gpus],
            ..TimelineRecord::default()
        };
        let used = |gpus: usize, device: Device| {
            let mut meter = EnergyMeter::new();
            meter.add(&record(0.0, gpus));
            meter.add(&record(2.0, gpus));
            joules(&meter, device, &record(2.0, gpus))
        };
        assert_eq!(used(1, Device::Cuda(0)), Some(200.0));
        assert_eq!(used(2, Device::Cuda(0)), None, "it is not known which of them ran");
        assert_eq!(used(1, Device::Cpu), None, "the processor has no meter here");
    }
}

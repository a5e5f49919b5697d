//! NVIDIA GPUs, by the management library.

use nvml_wrapper::Device;
use nvml_wrapper::bitmasks::device::ThrottleReasons;
use nvml_wrapper::enum_wrappers::device::{Clock, TemperatureSensor};

use crate::live::record::{GpuUsage, percent, rounded};
use crate::nvml::nvml;

/// What slows a GPU down. Being idle or held by the user's own settings is no throttling.
const REASONS: [(ThrottleReasons, &str); 6] = [
    (ThrottleReasons::SW_POWER_CAP, "sw_power_cap"),
    (ThrottleReasons::HW_SLOWDOWN, "hw_slowdown"),
    (ThrottleReasons::HW_THERMAL_SLOWDOWN, "hw_thermal_slowdown"),
    (ThrottleReasons::HW_POWER_BRAKE_SLOWDOWN, "hw_power_brake_slowdown"),
    (ThrottleReasons::SW_THERMAL_SLOWDOWN, "sw_thermal_slowdown"),
    (ThrottleReasons::SYNC_BOOST, "sync_boost"),
];

/// One GPU; its name and identity do not change.
pub(super) struct Gpu {
    device: Device<'static>,
    model: Option<String>,
    guid: Option<String>,
}

/// The GPUs the library knows; none where there is no library.
pub(super) fn find() -> Vec<Gpu> {
    let library = match nvml() {
        Ok(library) => library,
        Err(reason) => {
            tracing::debug!(reason, "no NVIDIA management library");
            return Vec::new();
        }
    };
    let count = library.device_count().unwrap_or(0);
    (0..count).filter_map(|index| library.device_by_index(index).ok()).map(Gpu::new).collect()
}

impl Gpu {
    fn new(device: Device<'static>) -> Self {
        Self { model: device.name().ok(), guid: device.uuid().ok(), device }
    }

    pub(super) fn is(&self, guid: &str) -> bool {
        self.guid.as_deref().is_some_and(|known| known.eq_ignore_ascii_case(guid))
    }

    /// The energy since the driver was loaded.
    pub(super) fn joules(&self) -> Option<f64> {
        self.device.total_energy_consumption().ok().map(|millijoules| millijoules as f64 / 1000.0)
    }

    pub(super) fn read(&self) -> GpuUsage {
        let device = &self.device;
        let memory = device.memory_info().ok();
        let watts = |milliwatts: u32| rounded(f64::from(milliwatts) / 1000.0);
        GpuUsage {
            index: 0,
            model: self.model.clone(),
            utilization_percent: device.utilization_rates().ok().map(|rates| f64::from(rates.gpu)),
            memory_utilization_percent: memory
                .as_ref()
                .and_then(|memory| percent(memory.used as f64, memory.total as f64)),
            power_watts: device.power_usage().ok().map(watts),
            guid: self.guid.clone(),
            power_limit_watts: device.enforced_power_limit().ok().map(watts),
            memory_total_bytes: memory.as_ref().map(|memory| memory.total),
            memory_used_bytes: memory.as_ref().map(|memory| memory.used),
            temperature_celsius: device.temperature(TemperatureSensor::Gpu).ok().map(f64::from),
            graphics_mhz: device.clock_info(Clock::Graphics).ok().map(f64::from),
            memory_mhz: device.clock_info(Clock::Memory).ok().map(f64::from),
            throttle_reasons: device.current_throttle_reasons().ok().map(reasons),
        }
    }
}

fn reasons(active: ThrottleReasons) -> Vec<String> {
    REASONS
        .iter()
        .filter(|(reason, _)| active.contains(*reason))
        .map(|(_, name)| (*name).to_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idling_is_not_throttling() {
        assert!(reasons(ThrottleReasons::GPU_IDLE).is_empty());
        let active =
            ThrottleReasons::GPU_IDLE | ThrottleReasons::SW_POWER_CAP | ThrottleReasons::HW_THERMAL_SLOWDOWN;
        assert_eq!(reasons(active), ["sw_power_cap", "hw_thermal_slowdown"]);
    }
}

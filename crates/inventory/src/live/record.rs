//! The record of a monitoring timeline.

use jiff::Timestamp;
use serde::{Deserialize, Serialize, Serializer};

/// One record of a monitoring timeline. What the machine does not report is null, never zero.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TimelineRecord {
    /// When the sample was taken.
    #[serde(serialize_with = "to_the_millisecond")]
    pub timestamp: Timestamp,
    /// Time all cores spent working, as a share of all cores; waiting for input and stolen time are not work.
    pub cpu_utilization_percent: Option<f64>,
    /// Memory installed.
    pub total_memory_bytes: Option<u64>,
    /// Memory that is neither free nor reclaimable, as a share of the total.
    pub memory_utilization_percent: Option<f64>,
    /// One entry a GPU; empty without one.
    #[serde(default)]
    pub gpu_usage: Vec<GpuUsage>,
    /// The time that rates and utilisations cover: since the sample before, or since the sampler was made.
    pub interval_seconds: Option<f64>,
    /// Time the hypervisor gave to other virtual machines, as a share of all cores.
    pub cpu_steal_percent: Option<f64>,
    /// Runnable and blocked tasks, averaged over 1, 5 and 15 minutes.
    pub load_average: Option<[f64; 3]>,
    /// Times the firmware lowered a clock for heat or power since the machine was started.
    pub throttle_events: Option<u64>,
    /// One entry a core that is online.
    #[serde(default)]
    pub cores: Vec<CoreUsage>,
    /// Memory that programs can still have without swapping.
    pub memory_available_bytes: Option<u64>,
    /// The total less what is available.
    pub memory_used_bytes: Option<u64>,
    /// Swap space; zero on a machine that says it has none.
    pub swap_total_bytes: Option<u64>,
    /// Swap space in use.
    pub swap_used_bytes: Option<u64>,
    /// One entry a disk.
    #[serde(default)]
    pub disks: Vec<DiskUsage>,
    /// One entry a network interface.
    #[serde(default)]
    pub networks: Vec<NetworkUsage>,
    /// One entry a power domain of the processors and the board; GPUs carry their own.
    #[serde(default)]
    pub power: Vec<PowerUsage>,
    /// One entry a sensor; GPUs carry their own.
    #[serde(default)]
    pub temperatures: Vec<Temperature>,
}

/// One logical processor.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CoreUsage {
    /// The kernel's identifier of it.
    pub index: u32,
    /// Time it spent working.
    pub utilization_percent: Option<f64>,
    /// Its clock.
    pub mhz: Option<f64>,
}

/// One GPU.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct GpuUsage {
    /// Its place in this list.
    pub index: u32,
    /// Its name, such as `NVIDIA H200`.
    pub model: Option<String>,
    /// Time it had a kernel running.
    pub utilization_percent: Option<f64>,
    /// Memory in use, as a share of its total.
    pub memory_utilization_percent: Option<f64>,
    /// What it draws.
    pub power_watts: Option<f64>,
    /// Its vendor's unique name.
    pub guid: Option<String>,
    /// What it may draw.
    pub power_limit_watts: Option<f64>,
    /// Its memory.
    pub memory_total_bytes: Option<u64>,
    /// Its memory in use.
    pub memory_used_bytes: Option<u64>,
    /// Its own temperature.
    pub temperature_celsius: Option<f64>,
    /// The clock of its cores.
    pub graphics_mhz: Option<f64>,
    /// The clock of its memory.
    pub memory_mhz: Option<f64>,
    /// Why its clocks are held down, such as `sw_power_cap`; empty when they are not, null when it does not report it.
    pub throttle_reasons: Option<Vec<String>>,
}

/// One disk.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DiskUsage {
    /// The kernel's name for it, such as `nvme0n1`.
    pub name: String,
    /// Bytes read a second.
    pub read_bytes_per_second: Option<f64>,
    /// Bytes written a second.
    pub write_bytes_per_second: Option<f64>,
    /// Time it had a request in flight.
    pub busy_percent: Option<f64>,
    /// Bytes read since the machine was started.
    pub read_bytes_total: u64,
    /// Bytes written since the machine was started.
    pub write_bytes_total: u64,
}

/// One network interface.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct NetworkUsage {
    /// Its name, such as `eth0`.
    pub name: String,
    /// Bytes received a second.
    pub receive_bytes_per_second: Option<f64>,
    /// Bytes sent a second.
    pub transmit_bytes_per_second: Option<f64>,
    /// Bytes received since the interface came up.
    pub receive_bytes_total: u64,
    /// Bytes sent since the interface came up.
    pub transmit_bytes_total: u64,
}

/// One power domain.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PowerUsage {
    /// Its name, such as `package-0` or `package-0/dram`.
    pub domain: String,
    /// What it draws; null where the counter is there but may not be read.
    pub watts: Option<f64>,
    /// What it has used since sampling began.
    pub energy_joules: Option<f64>,
}

/// One temperature sensor.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Temperature {
    /// Distinguishes sensors of equal chips and labels, such as `hwmon1/temp2`.
    #[serde(default)]
    pub id: String,
    /// The chip it sits on, such as `coretemp`.
    pub chip: String,
    /// What it measures, such as `Package id 0`.
    pub label: Option<String>,
    /// The temperature.
    pub celsius: f64,
    /// Whether it is one of the processor's.
    pub is_cpu: bool,
}

impl TimelineRecord {
    /// Bytes read from all disks a second.
    #[must_use]
    pub fn disk_read_bytes_per_second(&self) -> Option<f64> {
        total(self.disks.iter().map(|disk| disk.read_bytes_per_second))
    }

    /// Bytes written to all disks a second.
    #[must_use]
    pub fn disk_write_bytes_per_second(&self) -> Option<f64> {
        total(self.disks.iter().map(|disk| disk.write_bytes_per_second))
    }

    /// Bytes received from other machines a second: all interfaces but loopback.
    #[must_use]
    pub fn network_receive_bytes_per_second(&self) -> Option<f64> {
        total(self.outward().map(|network| network.receive_bytes_per_second))
    }

    /// Bytes sent to other machines a second: all interfaces but loopback.
    #[must_use]
    pub fn network_transmit_bytes_per_second(&self) -> Option<f64> {
        total(self.outward().map(|network| network.transmit_bytes_per_second))
    }

    /// What all processor packages draw; null if any does not report it.
    #[must_use]
    pub fn package_watts(&self) -> Option<f64> {
        let mut packages = self.power.iter().filter(|power| power.is_package()).peekable();
        packages.peek()?;
        packages.map(|package| package.watts).sum()
    }

    /// What all processor packages and the memory beside them draw; null if any does not report it.
    #[must_use]
    pub fn processor_watts(&self) -> Option<f64> {
        let memory =
            self.power.iter().filter(|power| power.domain.ends_with("/dram")).map(|power| power.watts);
        Some(self.package_watts()? + memory.sum::<Option<f64>>()?)
    }

    /// The processor's hottest sensor.
    #[must_use]
    pub fn cpu_celsius(&self) -> Option<f64> {
        self.temperatures.iter().filter(|sensor| sensor.is_cpu).map(|sensor| sensor.celsius).reduce(f64::max)
    }

    /// The mean clock of the cores that report theirs.
    #[must_use]
    pub fn mean_mhz(&self) -> Option<f64> {
        let clocks: Vec<f64> = self.cores.iter().filter_map(|core| core.mhz).collect();
        (!clocks.is_empty()).then(|| clocks.iter().sum::<f64>() / clocks.len() as f64)
    }

    fn outward(&self) -> impl Iterator<Item = &NetworkUsage> {
        self.networks.iter().filter(|network| !network.is_loopback())
    }
}

impl NetworkUsage {
    /// Whether it only leads back to this machine.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        self.name == "lo"
    }
}

impl PowerUsage {
    /// Whether it is a whole processor package, which its sub-domains are part of.
    #[must_use]
    pub fn is_package(&self) -> bool {
        self.domain.starts_with("package") && !self.domain.contains('/')
    }
}

/// The sum of what is known; `None` if nothing is.
fn total(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    values.flatten().reduce(|a, b| a + b)
}

/// Always with three digits of the second, so that records are in order as text too.
fn to_the_millisecond<S: Serializer>(timestamp: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{timestamp:.3}"))
}

/// A share as a percentage with two decimals.
pub(crate) fn percent(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| rounded(100.0 * part / whole))
}

/// A value with two decimals: what is below is noise and only makes the records long.
pub(crate) fn rounded(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_with_only_the_shared_fields_is_read() {
        let text = r#"{
            "timestamp": "2025-12-05T14:00:01Z", "cpu_utilization_percent": 12.3,
            "total_memory_bytes": 68719476736, "memory_utilization_percent": 32.4,
            "gpu_usage": [{"index": 0, "model": "NVIDIA RTX 4090", "utilization_percent": 84.2,
                "memory_utilization_percent": 65.0, "power_watts": 310.5, "guid": "GPU-abcdef12"}]
        }"#;
        let record: TimelineRecord = serde_json::from_str(text).unwrap();
        assert_eq!(record.total_memory_bytes, Some(68_719_476_736));
        assert_eq!(record.gpu_usage[0].power_watts, Some(310.5));
        assert_eq!(record.cpu_steal_percent, None);
        let again: TimelineRecord = serde_json::from_str(&serde_json::to_string(&record).unwrap()).unwrap();
        assert_eq!(again, record);
    }

    #[test]
    fn timestamps_are_in_order_as_text() {
        let text = |millisecond| {
            let timestamp = Timestamp::from_millisecond(millisecond).unwrap();
            serde_json::to_string(&TimelineRecord { timestamp, ..TimelineRecord::default() }).unwrap()
        };
        let times = [1_000, 1_001, 1_010, 1_100, 1_999, 2_000];
        assert!(times.map(text).is_sorted());
        assert!(text(1_100).contains(r#""1970-01-01T00:00:01.100Z""#), "{}", text(1_100));
    }

    #[test]
    fn unknown_values_are_null_and_no_gpu_is_an_empty_list() {
        let value = serde_json::to_value(TimelineRecord::default()).unwrap();
        assert!(value["cpu_utilization_percent"].is_null());
        assert!(value["memory_available_bytes"].is_null());
        assert_eq!(value["gpu_usage"], serde_json::json!([]));
    }

    #[test]
    fn totals_leave_loopback_out_and_stay_unknown_without_a_value() {
        let network = |name: &str, rate| NetworkUsage {
            name: name.to_owned(),
            receive_bytes_per_second: rate,
            ..NetworkUsage::default()
        };
        let mut record =
            TimelineRecord { networks: vec![network("lo", Some(9.0))], ..TimelineRecord::default() };
        assert_eq!(record.network_receive_bytes_per_second(), None);
        record.networks.extend([
            network("eth0", Some(1.0)),
            network("eth1", Some(2.0)),
            network("eth2", None),
        ]);
        assert_eq!(record.network_receive_bytes_per_second(), Some(3.0));
    }

    #[test]
    fn package_power_is_unknown_if_one_package_is() {
        let power =
            |domain: &str, watts| PowerUsage { domain: domain.to_owned(), watts, energy_joules: None };
        let mut record = TimelineRecord::default();
        assert_eq!(record.package_watts(), None);
        record.power = vec![
            power("package-0", Some(50.0)),
            power("package-0/dram", Some(5.0)),
            power("psys", Some(90.0)),
        ];
        assert_eq!(record.package_watts(), Some(50.0));
        record.power.push(power("package-1", None));
        assert_eq!(record.package_watts(), None);
    }
}

//! What the processors and the board draw: RAPL energy counters and the board's power meter.

use std::path::{Path, PathBuf};

use super::record::{PowerUsage, rounded};
use crate::sysfs;

/// No domain draws more. An interval in which it could have wrapped its counter at this power is ignored.
const PLAUSIBLE_WATTS: f64 = 2000.0;

/// The energy counter of one domain.
#[derive(Debug)]
struct Zone {
    domain: String,
    counter: PathBuf,
    /// The highest value before the counter starts again at zero.
    range_microjoules: Option<u64>,
    before: Option<u64>,
    used_microjoules: Option<u64>,
}

/// Turns energy counters into power.
#[derive(Debug)]
pub(crate) struct PowerSampler {
    zones: Vec<Zone>,
    meters: Vec<PathBuf>,
}

impl PowerSampler {
    pub(crate) fn new(root: &Path) -> Self {
        Self { zones: zones(root), meters: meters(root) }
    }

    pub(crate) fn sample(&mut self, seconds: f64) -> Vec<PowerUsage> {
        let zones = self.zones.iter_mut().map(|zone| zone.sample(seconds));
        let meters = self.meters.iter().enumerate().map(|(index, meter)| PowerUsage {
            domain: if self.meters.len() == 1 { "system".to_owned() } else { format!("system-{index}") },
            watts: sysfs::number::<f64>(meter).map(|microwatts| rounded(microwatts / 1e6)),
            energy_joules: None,
        });
        zones.chain(meters).collect()
    }
}

impl Zone {
    fn sample(&mut self, seconds: f64) -> PowerUsage {
        let now = sysfs::number(&self.counter);
        let used = used(self.before, now, self.range_microjoules, seconds);
        self.before = now;
        // One gap makes the sum meaningless from there on.
        self.used_microjoules = self.used_microjoules.zip(used).map(|(sum, used)| sum.saturating_add(used));
        PowerUsage {
            domain: self.domain.clone(),
            watts: used.filter(|_| seconds > 0.0).map(|used| rounded(used as f64 / 1e6 / seconds)),
            energy_joules: self.used_microjoules.map(|used| rounded(used as f64 / 1e6)),
        }
    }
}

/// The energy between two readings of a counter that starts again at zero beyond its range.
fn used(before: Option<u64>, now: Option<u64>, range: Option<u64>, seconds: f64) -> Option<u64> {
    let (before, now) = (before?, now?);
    if range.is_some_and(|range| PLAUSIBLE_WATTS * seconds * 1e6 > range as f64) {
        return None;
    }
    match now.checked_sub(before) {
        Some(used) => Some(used),
        None => range?.checked_sub(before)?.checked_add(now),
    }
}

/// The zones of Intel's and AMD's processors; the kernel names both `intel-rapl`.
fn zones(root: &Path) -> Vec<Zone> {
    let folder = root.join("sys/class/powercap");
    let mut zones = Vec::new();
    for name in sysfs::names(&folder) {
        // The memory-mapped interface counts the same package once more.
        if !name.contains("rapl:") || name.contains("mmio") {
            continue;
        }
        let zone = folder.join(&name);
        let Some(own) = sysfs::text(zone.join("name")) else { continue };
        let parent = parent_zone(&name).and_then(|parent| sysfs::text(folder.join(parent).join("name")));
        let counter = zone.join("energy_uj");
        let before = sysfs::number(&counter);
        zones.push(Zone {
            domain: parent.map_or_else(|| own.clone(), |parent| format!("{parent}/{own}")),
            range_microjoules: sysfs::number(zone.join("max_energy_range_uj")),
            before,
            used_microjoules: before.map(|_| 0),
            counter,
        });
    }
    zones
}

/// `intel-rapl:0` for `intel-rapl:0:1`, nothing for `intel-rapl:0`.
fn parent_zone(name: &str) -> Option<&str> {
    name.rsplit_once(':').map(|(parent, _)| parent).filter(|parent| parent.contains(':'))
}

/// What a board's own meter says; servers have one, reported by the firmware.
fn meters(root: &Path) -> Vec<PathBuf> {
    let folder = root.join("sys/class/hwmon");
    let chips = sysfs::names(&folder).into_iter().map(|chip| folder.join(chip));
    chips
        .filter(|chip| sysfs::text(chip.join("name")).as_deref() == Some("power_meter"))
        .map(|chip| chip.join("power1_average"))
        .filter(|meter| meter.exists())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::testing::FakeRoot;
    use super::*;

    const RANGE: &str = "262143328850";

    fn zone(root: &FakeRoot, zone: &str, name: &str, energy: &str) {
        let folder = format!("sys/class/powercap/{zone}");
        root.write(&format!("{folder}/name"), name)
            .write(&format!("{folder}/energy_uj"), energy)
            .write(&format!("{folder}/max_energy_range_uj"), RANGE);
    }

    fn watts(usage: &[PowerUsage]) -> Vec<(&str, Option<f64>)> {
        usage.iter().map(|power| (power.domain.as_str(), power.watts)).collect()
    }

    #[test]
    fn two_packages_with_their_parts_one_of_them_wrapped() {
        let root = FakeRoot::new();
        zone(&root, "intel-rapl:0", "package-0", "1000000");
        zone(&root, "intel-rapl:0:0", "dram", "0");
        zone(&root, "intel-rapl:1", "package-1", "262143328000");
        zone(&root, "intel-rapl-mmio:0", "package-0", "1000000");
        root.write("sys/class/powercap/intel-rapl/enabled", "1");
        let mut power = PowerSampler::new(root.path());
        zone(&root, "intel-rapl:0", "package-0", "101000000");
        zone(&root, "intel-rapl:0:0", "dram", "5000000");
        zone(&root, "intel-rapl:1", "package-1", "39999150");
        let usage = power.sample(2.0);
        assert_eq!(
            watts(&usage),
            [("package-0", Some(50.0)), ("package-0/dram", Some(2.5)), ("package-1", Some(20.0))]
        );
        assert_eq!(usage[0].energy_joules, Some(100.0));
    }

    #[test]
    fn a_counter_that_disappears_or_is_malformed_is_unknown() {
        let root = FakeRoot::new();
        zone(&root, "intel-rapl:0", "package-0", "1000000");
        zone(&root, "intel-rapl:1", "package-1", "not a number");
        let mut power = PowerSampler::new(root.path());
        root.remove("sys/class/powercap/intel-rapl:0/energy_uj");
        assert_eq!(watts(&power.sample(1.0)), [("package-0", None), ("package-1", None)]);
        zone(&root, "intel-rapl:0", "package-0", "3000000");
        assert_eq!(power.sample(1.0)[0].watts, None, "nothing to compare the first value after a gap with");
        zone(&root, "intel-rapl:0", "package-0", "4000000");
        let usage = power.sample(1.0);
        assert_eq!(usage[0].watts, Some(1.0));
        assert_eq!(usage[0].energy_joules, None, "the energy of the gap is not known");
    }

    #[test]
    fn a_wrap_needs_a_known_range_and_an_interval_too_short_for_two() {
        assert_eq!(used(Some(90), Some(10), None, 0.00001), None);
        assert_eq!(used(Some(90), Some(10), Some(100), 1e-9), Some(20));
        assert_eq!(used(Some(10), Some(90), Some(100_000_000_000), 60.0), None);
        assert_eq!(used(Some(200), Some(10), Some(100), 1e-9), None, "a value beyond the range is no value");
    }

    #[test]
    fn the_boards_meter_is_the_systems_power() {
        let root = FakeRoot::new();
        root.write("sys/class/hwmon/hwmon0/name", "coretemp")
            .write("sys/class/hwmon/hwmon1/name", "power_meter");
        root.write("sys/class/hwmon/hwmon1/power1_average", "345000000");
        assert_eq!(watts(&PowerSampler::new(root.path()).sample(1.0)), [("system", Some(345.0))]);
    }

    #[test]
    fn no_power_counters_is_an_empty_list() {
        assert!(PowerSampler::new(FakeRoot::new().path()).sample(1.0).is_empty());
    }
}

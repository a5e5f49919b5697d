//! How often the firmware lowered a clock for heat or power.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::sysfs;

/// The counters to read: one a physical core and one a package, because hardware threads repeat them.
#[derive(Debug, Clone, Default)]
pub(crate) struct ThrottleCounters {
    files: Vec<PathBuf>,
}

impl ThrottleCounters {
    pub(crate) fn new(root: &Path) -> Self {
        let cpus = root.join("sys/devices/system/cpu");
        let mut files = BTreeMap::new();
        for name in sysfs::names(&cpus) {
            let folder = cpus.join(&name);
            let counters = folder.join("thermal_throttle");
            let is_core = name.strip_prefix("cpu").is_some_and(|number| number.parse::<u32>().is_ok());
            if !is_core || !counters.exists() {
                continue;
            }
            let package = sysfs::text(folder.join("topology/physical_package_id"));
            let core = sysfs::text(folder.join("topology/core_id")).unwrap_or(name);
            files.entry((package.clone(), None)).or_insert_with(|| counters.join("package_throttle_count"));
            files.entry((package, Some(core))).or_insert_with(|| counters.join("core_throttle_count"));
        }
        Self { files: files.into_values().collect() }
    }

    /// All events since the machine was started, or `None` if it does not count them.
    pub(crate) fn read(&self) -> Option<u64> {
        self.files.iter().filter_map(sysfs::number).reduce(|a: u64, b| a.saturating_add(b))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::FakeRoot;
    use super::*;

    #[test]
    fn hardware_threads_count_once_and_packages_once() {
        let root = FakeRoot::new();
        for (cpu, package, core, events) in [(0, 0, 0, 3), (1, 0, 1, 4), (2, 0, 0, 3), (3, 1, 0, 10)] {
            let folder = format!("sys/devices/system/cpu/cpu{cpu}");
            root.write(&format!("{folder}/topology/physical_package_id"), &package.to_string())
                .write(&format!("{folder}/topology/core_id"), &core.to_string())
                .write(&format!("{folder}/thermal_throttle/core_throttle_count"), &events.to_string())
                .write(&format!("{folder}/thermal_throttle/package_throttle_count"), "100");
        }
        root.write("sys/devices/system/cpu/cpufreq/boost", "1");
        assert_eq!(ThrottleCounters::new(root.path()).read(), Some(3 + 4 + 10 + 200));
    }

    #[test]
    fn a_machine_without_counters_says_nothing() {
        let root = FakeRoot::new();
        root.write("sys/devices/system/cpu/cpu0/topology/core_id", "0");
        assert_eq!(ThrottleCounters::new(root.path()).read(), None);
    }
}

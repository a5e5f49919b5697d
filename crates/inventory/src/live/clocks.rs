//! Core clocks and the frequency governor.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::record::rounded;
use crate::sysfs;

/// Where a machine reports its clocks.
#[derive(Debug, Clone)]
pub(crate) enum Clocks {
    /// A file a core, cheap to ask for one.
    Cpufreq(PathBuf),
    /// All cores in one text; what virtual machines have.
    CpuInfo(PathBuf),
}

impl Clocks {
    pub(crate) fn new(root: &Path) -> Self {
        let cpus = root.join("sys/devices/system/cpu");
        if cpus.join("cpu0/cpufreq/scaling_cur_freq").exists() {
            Self::Cpufreq(cpus)
        } else {
            Self::CpuInfo(root.join("proc/cpuinfo"))
        }
    }

    /// The clock in MHz of each core asked for that reports it.
    pub(crate) fn read(&self, cores: &[u32]) -> BTreeMap<u32, f64> {
        match self {
            _ if cores.is_empty() => BTreeMap::new(),
            Self::Cpufreq(cpus) => {
                let khz =
                    |core| sysfs::number::<f64>(cpus.join(format!("cpu{core}/cpufreq/scaling_cur_freq")));
                cores.iter().filter_map(|&core| Some((core, rounded(khz(core)? / 1000.0)))).collect()
            }
            Self::CpuInfo(path) => {
                let mut clocks = sysfs::text(path).map(|text| parse_cpuinfo(&text)).unwrap_or_default();
                clocks.retain(|core, _| cores.contains(core));
                clocks
            }
        }
    }
}

fn parse_cpuinfo(text: &str) -> BTreeMap<u32, f64> {
    let mut clocks = BTreeMap::new();
    let mut core = None;
    for (key, value) in text.lines().filter_map(|line| line.split_once(':')) {
        match key.trim() {
            "processor" => core = value.trim().parse().ok(),
            "cpu MHz" => clocks.extend(core.zip(value.trim().parse().ok().map(rounded))),
            _ => {}
        }
    }
    clocks
}

/// The governor in force; several, joined by commas, where cores differ.
pub(crate) fn governor(root: &Path) -> Option<String> {
    let policies = root.join("sys/devices/system/cpu/cpufreq");
    let governors: BTreeSet<String> = sysfs::names(&policies)
        .iter()
        .filter_map(|policy| sysfs::text(policies.join(policy).join("scaling_governor")))
        .collect();
    let joined = governors.into_iter().collect::<Vec<_>>().join(",");
    (!joined.is_empty()).then_some(joined)
}

#[cfg(test)]
mod tests {
    use super::super::testing::FakeRoot;
    use super::*;

    #[test]
    fn cpufreq_is_read_for_the_cores_asked_for() {
        let root = FakeRoot::new();
        root.write("sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "2400000\n")
            .write("sys/devices/system/cpu/cpu1/cpufreq/scaling_cur_freq", "800123\n")
            .write("sys/devices/system/cpu/cpu2/cpufreq/scaling_cur_freq", "<unknown>\n");
        let clocks = Clocks::new(root.path());
        assert_eq!(clocks.read(&[1, 2, 7]), BTreeMap::from([(1, 800.12)]));
        assert_eq!(clocks.read(&[]), BTreeMap::new());
    }

    #[test]
    fn cpuinfo_serves_where_cpufreq_does_not() {
        let root = FakeRoot::new();
        root.write("proc/cpuinfo", "processor\t: 0\ncpu MHz\t\t: 2100.5\n\nprocessor\t: 1\ncpu MHz\t\t: x\n");
        assert_eq!(Clocks::new(root.path()).read(&[0, 1]), BTreeMap::from([(0, 2100.5)]));
        let bare = FakeRoot::new();
        assert_eq!(Clocks::new(bare.path()).read(&[0]), BTreeMap::new());
    }

    #[test]
    fn governors_that_differ_are_all_named() {
        let root = FakeRoot::new();
        assert_eq!(governor(root.path()), None);
        for (policy, name) in [(0, "powersave"), (1, "performance"), (2, "powersave")] {
            root.write(&format!("sys/devices/system/cpu/cpufreq/policy{policy}/scaling_governor"), name);
        }
        assert_eq!(governor(root.path()).as_deref(), Some("performance,powersave"));
    }
}

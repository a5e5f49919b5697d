//! Sockets, cores, threads and kinds of cores, from `/sys/devices/system/cpu/cpu*/topology`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::sysfs;

/// Cores of one kind, on a processor that has several.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CoreKind {
    /// `performance` or `efficient` on Intel; `capacity-N` on ARM, N being the kernel's measure of speed up to 1024.
    pub name: String,
    /// Their CPUs, as in `0-15`.
    pub cpus: String,
    /// How many hardware threads that is.
    pub threads: Option<u32>,
    /// Their highest clock.
    pub boost_mhz: Option<f64>,
}

#[derive(Debug, Default)]
pub(super) struct Topology {
    pub(super) sockets: Option<u32>,
    pub(super) physical_cores: Option<u32>,
    pub(super) threads: Option<u32>,
    pub(super) core_kinds: Vec<CoreKind>,
}

pub(super) fn read(root: &Path) -> Topology {
    let folder = root.join("sys/devices/system/cpu");
    let online = sysfs::text(folder.join("online")).and_then(|text| sysfs::parse_list(&text));
    let (mut sockets, mut cores, mut threads) = (BTreeSet::new(), BTreeSet::new(), 0u32);
    for (number, cpu) in sysfs::numbered(&folder, "cpu") {
        if online.as_ref().is_some_and(|online| !online.contains(&number)) {
            continue;
        }
        threads += 1;
        let topology = folder.join(cpu).join("topology");
        sockets.extend(sysfs::number::<u32>(topology.join("physical_package_id")));
        // A core is known by the CPUs that are its threads; core_id alone repeats from die to die.
        let siblings = sysfs::text(topology.join("core_cpus_list"))
            .or_else(|| sysfs::text(topology.join("thread_siblings_list")));
        cores.extend(siblings.as_deref().and_then(sysfs::parse_list));
    }
    let known = |count: usize| u32::try_from(count).ok().filter(|&count| count > 0);
    Topology {
        sockets: known(sockets.len()),
        physical_cores: known(cores.len()),
        threads: Some(threads).filter(|&count| count > 0),
        core_kinds: core_kinds(root, &folder),
    }
}

fn core_kinds(root: &Path, folder: &Path) -> Vec<CoreKind> {
    let intel: Vec<_> =
        [("performance", "cpu_core"), ("efficient", "cpu_atom"), ("low-power", "cpu_lowpower")]
            .into_iter()
            .filter_map(|(name, device)| {
                let cpus = sysfs::text(root.join("sys/devices").join(device).join("cpus"))?;
                Some((name.to_owned(), sysfs::parse_list(&cpus)?))
            })
            .collect();
    let kinds = if intel.is_empty() { by_capacity(folder) } else { intel };
    if kinds.len() < 2 {
        return Vec::new();
    }
    kinds
        .into_iter()
        .map(|(name, cpus)| CoreKind {
            name,
            threads: u32::try_from(cpus.len()).ok(),
            boost_mhz: super::frequency::boost_mhz(folder, &cpus),
            cpus: format_list(&cpus),
        })
        .collect()
}

/// The kinds by the kernel's measure of a CPU's speed, the fastest first.
fn by_capacity(folder: &Path) -> Vec<(String, Vec<u32>)> {
    let mut kinds: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
    for (number, cpu) in sysfs::numbered(folder, "cpu") {
        if let Some(capacity) = sysfs::positive(folder.join(cpu).join("cpu_capacity")) {
            kinds.entry(capacity).or_default().push(number);
        }
    }
    kinds.into_iter().rev().map(|(capacity, cpus)| (format!("capacity-{capacity}"), cpus)).collect()
}

/// `[0, 1, 2, 8]` as `0-2,8`.
fn format_list(list: &[u32]) -> String {
    let ranges = list.chunk_by(|a, b| a.checked_add(1) == Some(*b));
    let parts = ranges.map(|range| match range {
        [first, .., last] => format!("{first}-{last}"),
        _ => range.iter().map(u32::to_string).collect(),
    });
    parts.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::tree;

    #[test]
    fn intel_hybrid_cores_are_told_apart() {
        let mut files = vec![
            ("sys/devices/cpu_core/cpus".to_owned(), "0-1\n".to_owned()),
            ("sys/devices/cpu_atom/cpus".to_owned(), "2,4\n".to_owned()),
        ];
        for (cpu, siblings, max) in
            [(0, "0-1", 5_000_000), (1, "0-1", 5_200_000), (2, "2", 3_900_000), (4, "4", 0)]
        {
            let at = format!("sys/devices/system/cpu/cpu{cpu}");
            files.push((format!("{at}/topology/thread_siblings_list"), siblings.to_owned()));
            files.push((format!("{at}/cpufreq/cpuinfo_max_freq"), max.to_string()));
        }
        let topology = read(tree(&files).path());
        assert_eq!((topology.physical_cores, topology.threads), (Some(3), Some(4)));
        let [fast, slow] = topology.core_kinds.as_slice() else { panic!("{topology:?}") };
        assert_eq!(
            (fast.name.as_str(), fast.cpus.as_str(), fast.boost_mhz),
            ("performance", "0-1", Some(5200.0))
        );
        assert_eq!(
            (slow.name.as_str(), slow.cpus.as_str(), slow.boost_mhz),
            ("efficient", "2,4", Some(3900.0))
        );
    }

    #[test]
    fn arm_clusters_are_told_apart_and_equal_cores_are_not() {
        let capacities = |values: [&str; 3]| {
            let files: Vec<_> = (0..3)
                .map(|cpu| (format!("sys/devices/system/cpu/cpu{cpu}/cpu_capacity"), values[cpu].to_owned()))
                .collect();
            read(tree(&files).path()).core_kinds
        };
        let kinds = capacities(["446", "446", "1024"]);
        assert_eq!((kinds[0].name.as_str(), kinds[0].cpus.as_str()), ("capacity-1024", "2"));
        assert_eq!(kinds[1].cpus, "0-1");
        assert_eq!(capacities(["1024"; 3]), []);
    }

    #[test]
    fn cpus_that_are_offline_are_not_counted() {
        let root = tree(&[
            ("sys/devices/system/cpu/online", "0\n"),
            ("sys/devices/system/cpu/cpu0/topology/core_cpus_list", "0\n"),
            ("sys/devices/system/cpu/cpu1/topology/core_cpus_list", "1\n"),
        ]);
        assert_eq!(read(root.path()).threads, Some(1));
    }
}

//! The caches, from `/sys/devices/system/cpu/cpu*/cache`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::sysfs;

/// What a cache holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CacheKind {
    /// Data only.
    Data,
    /// Instructions only.
    Instruction,
    /// Both.
    Unified,
}

/// All caches of one level, kind and size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cache {
    /// 1 is the closest to the core.
    pub level: u8,
    /// What it holds.
    pub kind: CacheKind,
    /// The size of one instance.
    pub size_bytes: u64,
    /// How many of them there are.
    pub instances: u32,
    /// The size of a line.
    #[serde(default)]
    pub line_size_bytes: Option<u32>,
    /// How many places a line may have.
    #[serde(default)]
    pub ways: Option<u32>,
    /// How many hardware threads share one instance.
    #[serde(default)]
    pub shared_by_threads: Option<u32>,
    /// The CPUs of each instance, as in `0-3,8`.
    #[serde(default)]
    pub shared_cpu_lists: Vec<String>,
}

impl Cache {
    /// The CPUs of each instance, by number.
    #[must_use]
    pub fn instance_cpus(&self) -> Vec<Vec<u32>> {
        self.shared_cpu_lists.iter().filter_map(|list| sysfs::parse_list(list)).collect()
    }
}

/// What makes two caches the same kind of cache.
type Group = (u8, CacheKind, u64, Option<u32>, Option<u32>, Option<u32>);

pub(super) fn read(root: &Path) -> Vec<Cache> {
    let cpus = root.join("sys/devices/system/cpu");
    let mut groups: BTreeMap<Group, BTreeSet<(u32, String)>> = BTreeMap::new();
    for (number, cpu) in sysfs::numbered(&cpus, "cpu") {
        let folder = cpus.join(cpu).join("cache");
        for (_, index) in sysfs::numbered(&folder, "index") {
            if let Some((group, cpu_list)) = read_one(&folder.join(index)) {
                // Instances are identified by the CPUs that share them; without that, each CPU has its own.
                let first =
                    cpu_list.as_deref().and_then(sysfs::parse_list).and_then(|list| list.first().copied());
                let instance = (first.unwrap_or(number), cpu_list.unwrap_or_else(|| number.to_string()));
                groups.entry(group).or_default().insert(instance);
            }
        }
    }
    groups
        .into_iter()
        .map(|((level, kind, size_bytes, line_size_bytes, ways, shared_by_threads), instances)| Cache {
            level,
            kind,
            size_bytes,
            instances: u32::try_from(instances.len()).unwrap_or(u32::MAX),
            line_size_bytes,
            ways,
            shared_by_threads,
            shared_cpu_lists: instances.into_iter().map(|(_, list)| list).collect(),
        })
        .collect()
}

fn read_one(index: &Path) -> Option<(Group, Option<String>)> {
    let kind = match sysfs::text(index.join("type"))?.as_str() {
        "Data" => CacheKind::Data,
        "Instruction" => CacheKind::Instruction,
        "Unified" => CacheKind::Unified,
        _ => return None,
    };
    let size = sysfs::parse_size(&sysfs::text(index.join("size"))?).filter(|&size| size > 0)?;
    let positive = |name: &str| sysfs::positive(index.join(name)).and_then(|value| u32::try_from(value).ok());
    let cpu_list = sysfs::text(index.join("shared_cpu_list"));
    let threads =
        cpu_list.as_deref().and_then(sysfs::parse_list).and_then(|list| u32::try_from(list.len()).ok());
    let group = (
        sysfs::number(index.join("level"))?,
        kind,
        size,
        positive("coherency_line_size"),
        positive("ways_of_associativity"),
        threads,
    );
    Some((group, cpu_list))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::tree;

    fn cache(cpu: u32, index: u32, fields: [&str; 4]) -> Vec<(String, String)> {
        let at = format!("sys/devices/system/cpu/cpu{cpu}/cache/index{index}");
        ["level", "type", "size", "shared_cpu_list"]
            .iter()
            .zip(fields)
            .map(|(name, value)| (format!("{at}/{name}"), format!("{value}\n")))
            .chain([(format!("{at}/coherency_line_size"), "64\n".to_owned())])
            .collect()
    }

    #[test]
    fn instances_are_counted_by_who_shares_them() {
        let mut files = Vec::new();
        for cpu in 0..4 {
            files.extend(cache(cpu, 0, ["1", "Data", "48K", &cpu.to_string()]));
            files.extend(cache(cpu, 1, ["3", "Unified", "32M", if cpu < 2 { "0-1" } else { "2-3" }]));
        }
        let caches = read(tree(&files).path());
        assert_eq!(caches.len(), 2);
        assert_eq!((caches[0].level, caches[0].instances, caches[0].size_bytes), (1, 4, 48 << 10));
        assert_eq!((caches[1].instances, caches[1].shared_by_threads), (2, Some(2)));
        assert_eq!(caches[1].shared_cpu_lists, ["0-1", "2-3"]);
        assert_eq!(caches[1].instance_cpus(), [[0, 1], [2, 3]]);
        assert_eq!(caches[1].line_size_bytes, Some(64));
    }

    #[test]
    fn cores_with_other_sizes_are_other_records() {
        let mut files = cache(0, 0, ["1", "Data", "48K", "0"]);
        files.extend(cache(1, 0, ["1", "Data", "32K", "1"]));
        let sizes: Vec<_> = read(tree(&files).path()).iter().map(|cache| cache.size_bytes).collect();
        assert_eq!(sizes, [32 << 10, 48 << 10]);
    }

    #[test]
    fn a_cache_without_a_size_is_left_out() {
        assert_eq!(read(tree(&cache(0, 0, ["1", "Data", "0K", "0"])).path()), []);
        assert_eq!(read(tree(&cache(0, 0, ["one", "Data", "1K", "0"])).path()), []);
    }
}

//! The memory nodes, from `/sys/devices/system/node`.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::sysfs;

/// A node: CPUs and the memory close to them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct NumaNode {
    /// The kernel's number of the node.
    pub id: u32,
    /// Its CPUs, as in `0-3,8`; null for memory without CPUs.
    pub cpus: Option<String>,
    /// How many CPUs that is.
    pub cpu_count: Option<u32>,
    /// Its memory.
    pub memory_bytes: Option<u64>,
    /// Its unused memory at the moment of the inventory.
    pub memory_free_bytes: Option<u64>,
    /// The firmware's relative distance to each node (10 is local), in the order of the nodes.
    pub distances: Vec<u32>,
}

pub(super) fn read(root: &Path) -> Vec<NumaNode> {
    let folder = root.join("sys/devices/system/node");
    sysfs::numbered(&folder, "node")
        .into_iter()
        .map(|(id, name)| {
            let node = folder.join(name);
            let memory = sysfs::text(node.join("meminfo")).unwrap_or_default();
            let cpus = sysfs::text(node.join("cpulist"));
            let list = cpus.as_deref().and_then(sysfs::parse_list);
            NumaNode {
                id,
                cpu_count: list.and_then(|list| u32::try_from(list.len()).ok()),
                cpus,
                memory_bytes: memory_field(&memory, "MemTotal:"),
                memory_free_bytes: memory_field(&memory, "MemFree:"),
                distances: sysfs::text(node.join("distance"))
                    .and_then(|text| text.split_whitespace().map(|part| part.parse().ok()).collect())
                    .unwrap_or_default(),
            }
        })
        .collect()
}

/// A field of a line such as `Node 0 MemTotal: 24682740 kB`, in bytes.
fn memory_field(text: &str, field: &str) -> Option<u64> {
    let mut words = text.lines().find(|line| line.contains(field))?.split_whitespace().skip(3);
    words.next()?.parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::tree;

    #[test]
    fn nodes_have_their_cpus_memory_and_distances() {
        let root = tree(&[
            ("sys/devices/system/node/node0/cpulist", "0-3,8-11\n"),
            ("sys/devices/system/node/node0/meminfo", "Node 0 MemTotal: 1024 kB\nNode 0 MemFree: 512 kB\n"),
            ("sys/devices/system/node/node0/distance", "10 21\n"),
            ("sys/devices/system/node/node1/cpulist", "\n"),
            ("sys/devices/system/node/node1/meminfo", "Node 1 MemTotal: much kB\n"),
        ]);
        let nodes = read(root.path());
        assert_eq!((nodes[0].cpu_count, nodes[0].memory_bytes), (Some(8), Some(1 << 20)));
        assert_eq!(
            (nodes[0].memory_free_bytes, nodes[0].distances.as_slice()),
            (Some(512 << 10), &[10, 21][..])
        );
        assert_eq!(nodes[1], NumaNode { id: 1, ..NumaNode::default() });
    }
}

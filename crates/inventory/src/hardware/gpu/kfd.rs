//! AMD's compute nodes and the links between them, from `/sys/class/kfd`.

use std::collections::HashMap;
use std::path::Path;

use crate::sysfs;

/// The kernel's number of the link type that AMD calls XGMI or Infinity Fabric.
const XGMI: u64 = 11;

/// A node of the compute topology that is a GPU.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Node {
    pub(super) id: u32,
    /// Where the GPU is on the PCI bus.
    pub(super) pci_address: String,
    /// The architecture, such as `gfx942`.
    pub(super) architecture: Option<String>,
    pub(super) compute_units: Option<u32>,
    pub(super) memory_bus_bits: Option<u32>,
    /// The nodes it has XGMI links to, and how many.
    pub(super) xgmi: HashMap<u32, u32>,
}

pub(super) fn nodes(root: &Path) -> Vec<Node> {
    let folder = root.join("sys/class/kfd/kfd/topology/nodes");
    sysfs::numbered(&folder, "").into_iter().filter_map(|(id, name)| node(id, &folder.join(name))).collect()
}

fn node(id: u32, folder: &Path) -> Option<Node> {
    let properties = properties(&folder.join("properties"));
    let get = |name: &str| properties.get(name).copied().filter(|&value| value > 0);
    // Nodes of CPUs have no SIMD units.
    let simds = get("simd_count")?;
    let location = properties.get("location_id").copied()?;
    let domain = properties.get("domain").copied().unwrap_or(0);
    let (bus, device, function) = (location >> 8 & 0xff, location >> 3 & 0x1f, location & 7);
    let mut xgmi = HashMap::new();
    let links = folder.join("io_links");
    for (_, name) in sysfs::numbered(&links, "") {
        let link = self::properties(&links.join(name).join("properties"));
        if link.get("type") == Some(&XGMI)
            && let Some(to) = link.get("node_to").and_then(|&to| u32::try_from(to).ok())
        {
            *xgmi.entry(to).or_insert(0) += 1;
        }
    }
    Some(Node {
        id,
        pci_address: format!("{domain:04x}:{bus:02x}:{device:02x}.{function}"),
        architecture: get("gfx_target_version").map(architecture),
        compute_units: get("simd_per_cu").and_then(|per_unit| u32::try_from(simds / per_unit).ok()),
        memory_bus_bits: sysfs::numbered(folder.join("mem_banks"), "").into_iter().find_map(|(_, name)| {
            let bank = self::properties(&folder.join("mem_banks").join(name).join("properties"));
            bank.get("width").and_then(|&bits| u32::try_from(bits).ok()).filter(|&bits| bits > 0)
        }),
        xgmi,
    })
}

/// Lines of a name and a number.
fn properties(path: &Path) -> HashMap<String, u64> {
    let text = sysfs::text(path).unwrap_or_default();
    let pairs = text.lines().filter_map(|line| {
        let (name, value) = line.split_once(' ')?;
        Some((name.to_owned(), value.trim().parse().ok()?))
    });
    pairs.collect()
}

/// 90402 as `gfx942`, 90010 as `gfx90a`.
fn architecture(version: u64) -> String {
    format!("gfx{}{:x}{:x}", version / 10_000, version / 100 % 100, version % 100)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::tree_at;

    #[test]
    fn gpus_are_nodes_with_simd_units() {
        let at = "sys/class/kfd/kfd/topology/nodes";
        let root = tree_at(
            at,
            &[
                ("0/properties", "cpu_cores_count 96\nsimd_count 0\n"),
                (
                    "1/properties",
                    "simd_count 1216\nsimd_per_cu 4\ngfx_target_version 90402\nlocation_id 1280\ndomain 0\nunique_id x\n",
                ),
                ("1/io_links/0/properties", "type 2\nnode_to 0\n"),
                ("1/io_links/1/properties", "type 11\nnode_to 2\nweight 15\n"),
                ("1/mem_banks/0/properties", "heap_type 1\nwidth 8192\n"),
                ("2/properties", "simd_count 4\n"),
            ],
        );
        let nodes = nodes(root.path());
        let [node] = nodes.as_slice() else { panic!("{nodes:?}") };
        assert_eq!((node.id, node.pci_address.as_str()), (1, "0000:05:00.0"));
        assert_eq!((node.architecture.as_deref(), node.compute_units), (Some("gfx942"), Some(304)));
        assert_eq!((node.memory_bus_bits, node.xgmi.get(&2)), (Some(8192), Some(&1)));
    }

    #[test]
    fn architectures_are_written_in_hexadecimal() {
        assert_eq!(architecture(90_010), "gfx90a");
        assert_eq!(architecture(110_000), "gfx1100");
    }
}

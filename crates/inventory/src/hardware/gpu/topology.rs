//! How the GPUs reach each other.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::Gpu;
use super::kfd::Node;

/// What carries data between two GPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Connection {
    /// NVIDIA's links, direct or by a switch.
    Nvlink,
    /// AMD's links.
    Xgmi,
    /// PCI Express.
    Pcie,
}

/// What lies between two GPUs on PCI Express, the shortest way first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PciePath {
    /// Both are on one board.
    SameBoard,
    /// One switch.
    SingleSwitch,
    /// Several switches.
    MultipleSwitches,
    /// The processor's bridge.
    HostBridge,
    /// Several bridges of one node.
    NumaNode,
    /// The connection between nodes.
    System,
}

/// The connection of a pair of GPUs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GpuLink {
    /// The index of the one.
    pub from: u32,
    /// The index of the other, which is larger.
    pub to: u32,
    /// What carries data between them.
    pub connection: Connection,
    /// How many links, of NVLink and XGMI.
    #[serde(default)]
    pub link_count: Option<u32>,
    /// What lies between them on PCI Express.
    #[serde(default)]
    pub pcie_path: Option<PciePath>,
}

/// The pairs that NVML did not report: those with a GPU that is not among its `by_nvml` first ones.
pub(super) fn read(root: &Path, gpus: &[Gpu], by_nvml: usize, nodes: &[Node]) -> Vec<GpuLink> {
    let mut links = Vec::new();
    for (at, from) in gpus.iter().enumerate() {
        for to in gpus.iter().skip((at + 1).max(by_nvml)) {
            let xgmi = xgmi_links(nodes, from, to);
            links.push(GpuLink {
                from: from.index,
                to: to.index,
                connection: if xgmi.is_some() { Connection::Xgmi } else { Connection::Pcie },
                link_count: xgmi,
                pcie_path: pcie_path(root, from, to),
            });
        }
    }
    links
}

fn xgmi_links(nodes: &[Node], from: &Gpu, to: &Gpu) -> Option<u32> {
    let node = |gpu: &Gpu| nodes.iter().find(|node| Some(&node.pci_address) == gpu.pci_address.as_ref());
    node(from)?.xgmi.get(&node(to)?.id).copied()
}

/// The relation of two devices, by the bridges on the way to each.
fn pcie_path(root: &Path, from: &Gpu, to: &Gpu) -> Option<PciePath> {
    let way = |gpu: &Gpu| -> Option<Vec<String>> {
        let link = root.join("sys/bus/pci/devices").join(gpu.pci_address.as_ref()?);
        let path = link.canonicalize().ok()?;
        let parts = path.iter().map(|part| part.to_string_lossy().into_owned());
        Some(parts.skip_while(|part| !part.starts_with("pci")).collect())
    };
    let (from_way, to_way) = (way(from)?, way(to)?);
    let shared = from_way.iter().zip(&to_way).take_while(|(a, b)| a == b).count();
    let same_board = |a: &str, b: &str| a.rsplit_once('.').map(|a| a.0) == b.rsplit_once('.').map(|b| b.0);
    Some(match shared {
        0 if from.numa_node.is_some() && from.numa_node == to.numa_node => PciePath::NumaNode,
        0 => PciePath::System,
        _ if same_board(from_way.last()?, to_way.last()?) => PciePath::SameBoard,
        1 => PciePath::HostBridge,
        // Behind the last shared port, each way has one port of the same switch and the device.
        _ if from_way.len() - shared <= 2 && to_way.len() - shared <= 2 => PciePath::SingleSwitch,
        _ => PciePath::MultipleSwitches,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{link, tree};

    const NOTHING: &[(&str, &str)] = &[];

    fn gpus(root: &tempfile::TempDir, ways: &[&str]) -> Vec<Gpu> {
        let gpu = |(index, way): (usize, &&str)| {
            let address = way.rsplit('/').next().unwrap();
            std::fs::create_dir_all(root.path().join("sys/devices").join(way)).unwrap();
            link(root, &format!("sys/bus/pci/devices/{address}"), format!("../../../devices/{way}"));
            Gpu {
                index: u32::try_from(index).unwrap(),
                pci_address: Some(address.to_owned()),
                ..Gpu::default()
            }
        };
        ways.iter().enumerate().map(gpu).collect()
    }

    #[test]
    fn the_way_on_the_bus_names_the_relation() {
        let root = tree(NOTHING);
        let mut gpus = gpus(
            &root,
            &[
                "pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:00.0/0000:03:00.0",
                "pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:01.0/0000:04:00.0",
                "pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:02.0/0000:05:00.0/0000:06:00.0/0000:07:00.0",
                "pci0000:00/0000:00:02.0/0000:08:00.0",
                "pci0000:80/0000:80:01.0/0000:81:00.0",
            ],
        );
        gpus[0].numa_node = Some(0);
        gpus[4].numa_node = Some(1);
        let path = |to: usize| pcie_path(root.path(), &gpus[0], &gpus[to]);
        assert_eq!(path(1), Some(PciePath::SingleSwitch));
        assert_eq!(path(2), Some(PciePath::MultipleSwitches));
        assert_eq!(path(3), Some(PciePath::HostBridge));
        assert_eq!(path(4), Some(PciePath::System));
        gpus[4].numa_node = Some(0);
        assert_eq!(pcie_path(root.path(), &gpus[0], &gpus[4]), Some(PciePath::NumaNode));
    }

    #[test]
    fn pairs_that_nvml_told_of_are_not_repeated() {
        let root = tree(NOTHING);
        let gpus: Vec<_> = (0..4).map(|index| Gpu { index, ..Gpu::default() }).collect();
        let pairs = |by_nvml| -> Vec<_> {
            read(root.path(), &gpus, by_nvml, &[]).iter().map(|link| (link.from, link.to)).collect()
        };
        assert_eq!(pairs(0).len(), 6);
        assert_eq!(pairs(3), [(0, 3), (1, 3), (2, 3)]);
        assert_eq!(pairs(4), []);
    }

    #[test]
    fn amds_links_are_counted() {
        let root = tree(NOTHING);
        let gpus = gpus(&root, &["pci0000:00/0000:01:00.0", "pci0000:80/0000:81:00.0"]);
        let node = |id, address: &str, to: u32| Node {
            id,
            pci_address: address.to_owned(),
            architecture: None,
            compute_units: None,
            memory_bus_bits: None,
            xgmi: [(to, 1)].into(),
        };
        let nodes = [node(2, "0000:01:00.0", 3), node(3, "0000:81:00.0", 2)];
        let links = read(root.path(), &gpus, 0, &nodes);
        assert_eq!((links[0].connection, links[0].link_count), (Connection::Xgmi, Some(1)));
    }
}

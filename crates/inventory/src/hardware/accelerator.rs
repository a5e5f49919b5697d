//! Accelerators that are no GPUs, and those that no driver serves.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::gpu;
use super::pci::{PciDevice, PcieLink};
use crate::sysfs;

const PROCESSING_ACCELERATOR: u16 = 0x1200;
const CO_PROCESSOR: u16 = 0x0b40;

/// Makers of accelerators, by their PCI identifiers.
const MAKERS: &[(u16, &str)] = &[
    (0x1002, "AMD"),
    (0x1022, "AMD"),
    (0x10de, "NVIDIA"),
    (0x10ee, "Xilinx"),
    (0x1172, "Altera"),
    (0x17cb, "Qualcomm"),
    (0x19e5, "Huawei"),
    (0x1ae0, "Google"),
    (0x1d0f, "Amazon"),
    (0x1d95, "Graphcore"),
    (0x1da3, "Habana"),
    (0x1e36, "Enflame"),
    (0x1e52, "Tenstorrent"),
    (0x1e60, "Hailo"),
    (0x1ed2, "FuriosaAI"),
    (0x1ed5, "Moore Threads"),
    (0x1eff, "Rebellions"),
    (0x8086, "Intel"),
    (0xcabc, "Cambricon"),
];

/// AMD's NPUs are "signal processing controllers" on the bus, as many other devices are.
const AMD_NPUS: &[u16] = &[0x1502, 0x17f0];

/// An accelerator that is no GPU: an NPU, a training or inference card, a co-processor.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Accelerator {
    /// The device's file, where the kernel's accelerator class has one.
    pub path: Option<String>,
    /// The vendor.
    pub vendor: Option<String>,
    /// The model's name.
    pub model: Option<String>,
    /// Its memory; only of drivers that report it.
    pub memory_bytes: Option<u64>,
    /// The kernel's driver.
    pub driver: Option<String>,
    /// The driver's version, where it has one other than the kernel's.
    pub driver_version: Option<String>,
    /// Where it is on the PCI bus.
    pub pci_address: Option<String>,
    /// The PCI identifiers of vendor and device.
    pub pci_ids: Option<String>,
    /// Its PCI Express link.
    pub pcie: PcieLink,
    /// The node whose memory and CPUs are close to it.
    pub numa_node: Option<u32>,
}

/// A GPU or accelerator that cannot be used because no driver serves it here.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct UnservedDevice {
    /// Where it is on the PCI bus.
    pub pci_address: String,
    /// The PCI identifiers of vendor and device.
    pub pci_ids: String,
    /// The vendor.
    pub vendor: Option<String>,
    /// The model's name.
    pub model: Option<String>,
    /// The driver that holds it for a virtual machine; null if there is none.
    pub driver: Option<String>,
}

fn maker(id: u16) -> Option<&'static str> {
    MAKERS.iter().find(|(known, _)| *known == id).map(|&(_, name)| name)
}

/// Whether a device computes for others and is no GPU.
fn is_accelerator(device: &PciDevice) -> bool {
    let class = matches!(device.class, PROCESSING_ACCELERATOR | CO_PROCESSOR);
    let npu = device.vendor_id == 0x1022 && AMD_NPUS.contains(&device.device_id);
    !gpu::is_gpu(device) && maker(device.vendor_id).is_some() && (class || npu)
}

/// The accelerators that a driver serves.
pub(super) fn read(root: &Path, devices: &[PciDevice]) -> Vec<Accelerator> {
    let class = root.join("sys/class/accel");
    let mut found: Vec<_> = sysfs::numbered(&class, "accel")
        .into_iter()
        .map(|(_, name)| {
            let folder = class.join(&name).join("device");
            let on_bus = PciDevice::at(&folder);
            Accelerator {
                path: Some(format!("/dev/accel/{name}")),
                driver: sysfs::link_name(folder.join("driver")),
                memory_bytes: sysfs::positive(folder.join("npu_memory_total")),
                ..on_bus.as_ref().map(describe).unwrap_or_default()
            }
        })
        .collect();
    for device in devices.iter().filter(|device| is_accelerator(device) && gpu::is_served(device)) {
        if !found.iter().any(|known| known.pci_address.as_deref() == Some(&device.address)) {
            found.push(describe(device));
        }
    }
    found
}

fn describe(device: &PciDevice) -> Accelerator {
    Accelerator {
        path: None,
        vendor: maker(device.vendor_id).map(str::to_owned),
        model: device.model().map(str::to_owned),
        memory_bytes: None,
        driver: device.driver.clone(),
        driver_version: device.driver_version(),
        pci_address: Some(device.address.clone()),
        pci_ids: Some(device.ids()),
        pcie: device.link(),
        numa_node: device.numa_node(),
    }
}

/// The GPUs and accelerators that no driver serves, with a warning for each.
pub(super) fn unserved(devices: &[PciDevice], warnings: &mut Vec<String>) -> Vec<UnservedDevice> {
    let mut found = Vec::new();
    for device in devices {
        if !(gpu::is_gpu(device) || is_accelerator(device)) || gpu::is_served(device) {
            continue;
        }
        let vendor = maker(device.vendor_id);
        let model = device.model();
        let name = format!("{} {}", vendor.unwrap_or_default(), model.unwrap_or("device"));
        let reason = match &device.driver {
            Some(driver) => format!("{driver} holds it for a virtual machine"),
            None => "no driver serves it, install the vendor's to use it".to_owned(),
        };
        warnings.push(format!("{} at {} ({}): {reason}", name.trim(), device.address, device.ids()));
        found.push(UnservedDevice {
            pci_address: device.address.clone(),
            pci_ids: device.ids(),
            vendor: vendor.map(str::to_owned),
            model: model.map(str::to_owned),
            driver: device.driver.clone(),
        });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{link, tree};

    fn machine() -> tempfile::TempDir {
        let at = "sys/bus/pci/devices";
        let mut files = Vec::new();
        for (address, vendor, device, class) in [
            ("0000:00:0b.0", "0x8086", "0x643e", "0x120000"),
            ("0000:01:00.0", "0x10de", "0x2335", "0x030200"),
            ("0000:02:00.0", "0x1da3", "0x1020", "0x120000"),
            ("0000:03:00.0", "0x1234", "0x1111", "0x030000"),
            ("0000:04:00.0", "0x1022", "0x1480", "0x118000"),
        ] {
            files.push((format!("{at}/{address}/vendor"), vendor));
            files.push((format!("{at}/{address}/device"), device));
            files.push((format!("{at}/{address}/class"), class));
        }
        let root = tree(&files);
        link(&root, &format!("{at}/0000:00:0b.0/driver"), "../../drivers/intel_vpu");
        link(&root, &format!("{at}/0000:02:00.0/driver"), "../../drivers/habanalabs");
        link(&root, "sys/class/accel/accel0/device", "../../../bus/pci/devices/0000:00:0b.0");
        root
    }

    #[test]
    fn an_npu_and_a_card_are_listed_once() {
        let root = machine();
        let found = read(root.path(), &PciDevice::all(root.path()));
        let [npu, card] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!(
            (npu.path.as_deref(), npu.driver.as_deref()),
            (Some("/dev/accel/accel0"), Some("intel_vpu"))
        );
        assert_eq!((card.path.as_deref(), card.vendor.as_deref()), (None, Some("Habana")));
    }

    #[test]
    fn a_gpu_without_a_driver_is_a_warning() {
        let root = machine();
        let mut warnings = Vec::new();
        let found = unserved(&PciDevice::all(root.path()), &mut warnings);
        assert_eq!(found.iter().map(|device| device.pci_ids.as_str()).collect::<Vec<_>>(), ["10de:2335"]);
        assert!(warnings[0].contains("H200") && warnings[0].contains("no driver serves it"), "{warnings:?}");
    }

    #[test]
    fn a_gpu_held_for_a_virtual_machine_says_so() {
        let root = machine();
        link(&root, "sys/bus/pci/devices/0000:01:00.0/driver", "../../drivers/vfio-pci");
        let mut warnings = Vec::new();
        unserved(&PciDevice::all(root.path()), &mut warnings);
        assert!(warnings[0].contains("vfio-pci holds it"), "{warnings:?}");
    }
}

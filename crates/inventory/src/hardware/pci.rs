//! PCI devices, from `/sys/bus/pci/devices`.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::sysfs;

/// The link to a PCI Express device.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PcieLink {
    /// The generation now; an idle device may have lowered it.
    pub generation_current: Option<u32>,
    /// The highest generation of device and slot.
    pub generation_max: Option<u32>,
    /// The lanes in use.
    pub width_current: Option<u32>,
    /// The most lanes of device and slot.
    pub width_max: Option<u32>,
}

/// A device on the PCI bus.
#[derive(Debug, Clone)]
pub(crate) struct PciDevice {
    /// Where it is, such as `0000:3b:00.0`.
    pub(crate) address: String,
    pub(crate) folder: PathBuf,
    pub(crate) vendor_id: u16,
    pub(crate) device_id: u16,
    /// The class and subclass, such as 0x0302 for a GPU without a display.
    pub(crate) class: u16,
    /// The driver that serves it.
    pub(crate) driver: Option<String>,
}

impl PciDevice {
    /// The device at a folder of sysfs, or behind a `device` link of a class.
    pub(crate) fn at(folder: &Path) -> Option<Self> {
        let folder = folder.canonicalize().ok()?;
        let id = |name: &str| sysfs::hex(folder.join(name)).and_then(|id| u16::try_from(id).ok());
        Some(Self {
            address: folder.file_name()?.to_str()?.to_owned(),
            vendor_id: id("vendor")?,
            device_id: id("device")?,
            class: u16::try_from(sysfs::hex(folder.join("class"))? >> 8).ok()?,
            driver: sysfs::link_name(folder.join("driver")),
            folder,
        })
    }

    /// All devices, by address.
    pub(crate) fn all(root: &Path) -> Vec<Self> {
        let folder = root.join("sys/bus/pci/devices");
        sysfs::names(&folder).into_iter().filter_map(|name| Self::at(&folder.join(name))).collect()
    }

    /// The name of the model in the PCI database.
    pub(crate) fn model(&self) -> Option<&'static str> {
        pci_ids::Device::from_vid_pid(self.vendor_id, self.device_id).map(pci_ids::Device::name)
    }

    /// The vendor's and the device's identifiers, as in `10de:2335`.
    pub(crate) fn ids(&self) -> String {
        format!("{:04x}:{:04x}", self.vendor_id, self.device_id)
    }

    /// The node whose memory is close to the device.
    pub(crate) fn numa_node(&self) -> Option<u32> {
        sysfs::number(self.folder.join("numa_node"))
    }

    /// The version of the driver, where it has one other than the kernel's.
    pub(crate) fn driver_version(&self) -> Option<String> {
        sysfs::text(self.folder.join("driver/module/version"))
    }

    pub(crate) fn link(&self) -> PcieLink {
        let generation = |name: &str| sysfs::text(self.folder.join(name)).as_deref().and_then(generation);
        let width =
            |name: &str| sysfs::number(self.folder.join(name)).filter(|width| (1..=32).contains(width));
        PcieLink {
            generation_current: generation("current_link_speed"),
            generation_max: generation("max_link_speed"),
            width_current: width("current_link_width"),
            width_max: width("max_link_width"),
        }
    }
}

/// The generation of a link speed such as `16.0 GT/s PCIe`.
fn generation(speed: &str) -> Option<u32> {
    Some(match speed.split_whitespace().next()? {
        "2.5" => 1,
        "5.0" | "5" => 2,
        "8.0" | "8" => 3,
        "16.0" | "16" => 4,
        "32.0" | "32" => 5,
        "64.0" | "64" => 6,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{pci_device, tree_at};

    #[test]
    fn a_device_with_its_link() {
        let at = "sys/bus/pci/devices/0000:3b:00.0";
        let root = pci_device(
            at,
            "10de:2335",
            "030200",
            &[
                ("current_link_speed", "2.5 GT/s PCIe\n"),
                ("max_link_speed", "32.0 GT/s PCIe\n"),
                ("current_link_width", "0\n"),
                ("max_link_width", "16\n"),
                ("numa_node", "-1\n"),
            ],
        );
        let devices = PciDevice::all(root.path());
        let device = &devices[0];
        assert_eq!(
            (device.address.as_str(), device.class, device.ids().as_str()),
            ("0000:3b:00.0", 0x302, "10de:2335")
        );
        assert_eq!(device.model(), Some("GH100 [H200 SXM 141GB]"));
        let link = device.link();
        assert_eq!((link.generation_current, link.generation_max), (Some(1), Some(5)));
        assert_eq!((link.width_current, link.width_max), (None, Some(16)));
        assert_eq!((device.numa_node(), &device.driver), (None, &None));
    }

    #[test]
    fn malformed_devices_are_left_out() {
        let at = "sys/bus/pci/devices/0000:00:01.0";
        let root = tree_at(at, &[("vendor", "0x10de10de10de\n"), ("device", "\n"), ("class", "display\n")]);
        assert!(PciDevice::all(root.path()).is_empty());
        assert_eq!(generation("Unknown"), None);
    }
}

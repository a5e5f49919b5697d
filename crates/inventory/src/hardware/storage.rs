//! Disks, from `/sys/block`.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::sysfs;

/// What a disk is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StorageKind {
    /// Turning platters.
    Hdd,
    /// Flash on a bus made for disks.
    Ssd,
    /// Flash on PCI Express.
    Nvme,
    /// A hypervisor's disk: what is behind it is not known.
    Virtual,
}

/// A disk.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StorageDevice {
    /// The device's file.
    pub path: String,
    /// Its capacity.
    pub capacity_bytes: Option<u64>,
    /// What it is made of.
    pub kind: Option<StorageKind>,
    /// Its maker's name for it.
    pub model: Option<String>,
    /// How it is connected: `nvme`, `sata`, `sas`, `scsi`, `usb`, `mmc`, `virtio`, `xen` or `vmbus`.
    pub bus: Option<String>,
    /// Whether the kernel takes it for turning platters.
    pub rotational: Option<bool>,
    /// Whether the medium can be taken out.
    pub removable: Option<bool>,
    /// The smallest unit it reads and writes.
    pub logical_block_bytes: Option<u32>,
    /// The order in which the kernel serves requests, such as `mq-deadline`.
    pub scheduler: Option<String>,
}

pub(super) fn read(root: &Path) -> Vec<StorageDevice> {
    let folder = root.join("sys/block");
    sysfs::names(&folder).into_iter().filter_map(|name| read_one(&folder.join(&name), &name)).collect()
}

/// A disk; `None` for what is made of other disks or of memory (loop, ram, zram, dm, md) and for drives of media.
fn read_one(folder: &Path, name: &str) -> Option<StorageDevice> {
    let hidden = sysfs::number::<u8>(folder.join("hidden")) == Some(1);
    let drive = name.starts_with("sr") || name.starts_with("fd");
    if hidden || drive || !folder.join("device").exists() {
        return None;
    }
    let flag = |name: &str| sysfs::number::<u8>(folder.join(name)).map(|value| value != 0);
    let path = folder.canonicalize().ok()?;
    let bus = bus(name, &path.to_string_lossy());
    let rotational = flag("queue/rotational");
    let model = model(folder);
    // The kernel counts in 512 bytes whatever the disk does.
    let capacity_bytes = sysfs::positive(folder.join("size")).and_then(|sectors| sectors.checked_mul(512));
    Some(StorageDevice {
        path: format!("/dev/{}", name.replace('!', "/")),
        capacity_bytes,
        kind: kind(bus, rotational, model.as_deref()),
        model,
        bus: bus.map(str::to_owned),
        rotational,
        removable: flag("removable"),
        logical_block_bytes: sysfs::number(folder.join("queue/logical_block_size")).filter(|&size| size > 0),
        scheduler: sysfs::text(folder.join("queue/scheduler")).as_deref().and_then(chosen),
    })
}

fn model(folder: &Path) -> Option<String> {
    let model =
        sysfs::text(folder.join("device/model")).or_else(|| sysfs::text(folder.join("device/name")))?;
    // SATA disks have "ATA" as vendor and their maker in the model.
    match sysfs::text(folder.join("device/vendor")) {
        Some(vendor) if vendor != "ATA" && !vendor.starts_with("0x") => Some(format!("{vendor} {model}")),
        _ => Some(model),
    }
}

/// The bus, by the folders on the way to the disk.
fn bus(name: &str, path: &str) -> Option<&'static str> {
    let passes = |part: &str| path.contains(part);
    Some(match () {
        () if name.starts_with("nvme") => "nvme",
        () if name.starts_with("mmcblk") => "mmc",
        () if passes("/virtio") => "virtio",
        () if name.starts_with("xvd") || passes("/vbd-") => "xen",
        () if passes("/VMBUS") || passes("/vmbus") => "vmbus",
        () if passes("/usb") => "usb",
        () if passes("/ata") => "sata",
        () if passes("/end_device-") => "sas",
        () if passes("/host") => "scsi",
        () => return None,
    })
}

fn kind(bus: Option<&str>, rotational: Option<bool>, model: Option<&str>) -> Option<StorageKind> {
    let emulated = ["QEMU", "VBOX", "VMware", "Virtual", "Msft"];
    match (bus, rotational) {
        (Some("virtio" | "xen" | "vmbus"), _) => Some(StorageKind::Virtual),
        _ if model.is_some_and(|model| emulated.iter().any(|name| model.contains(name))) => {
            Some(StorageKind::Virtual)
        }
        (Some("nvme"), _) => Some(StorageKind::Nvme),
        (_, Some(true)) => Some(StorageKind::Hdd),
        (_, Some(false)) => Some(StorageKind::Ssd),
        _ => None,
    }
}

/// The chosen one of a list such as `none [mq-deadline] kyber`.
fn chosen(list: &str) -> Option<String> {
    let (_, rest) = list.split_once('[')?;
    Some(rest.split_once(']')?.0.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{link, tree};

    #[test]
    fn kinds_and_buses_are_told_apart() {
        let nvme = "sys/devices/pci0000:00/0000:01:00.0/nvme/nvme0/nvme0n1";
        let disk = "sys/devices/pci0000:00/0000:02:00.0/ata1/host0/target0:0:0/0:0:0:0/block/sda";
        let virt = "sys/devices/pci0000:00/0000:03:00.0/virtio1/block/vda";
        let root = tree(&[
            (format!("{nvme}/size"), "2000409264\n"),
            (format!("{nvme}/queue/rotational"), "0\n"),
            (format!("{nvme}/queue/scheduler"), "[none] mq-deadline\n"),
            (format!("{nvme}/device/model"), "Samsung SSD 980 PRO 1TB   \n"),
            (format!("{disk}/size"), "7814037168\n"),
            (format!("{disk}/queue/rotational"), "1\n"),
            (format!("{disk}/device/vendor"), "ATA     \n"),
            (format!("{disk}/device/model"), "ST4000NM000A\n"),
            (format!("{virt}/size"), "0\n"),
            (format!("{virt}/device/vendor"), "0x1af4\n"),
            ("sys/block/loop0/size".to_owned(), "8\n"),
        ]);
        for path in [nvme, disk, virt] {
            let name = path.rsplit('/').next().unwrap();
            link(&root, &format!("sys/block/{name}"), format!("../../{path}"));
        }
        let disks = read(root.path());
        assert_eq!(
            disks.iter().map(|disk| disk.path.as_str()).collect::<Vec<_>>(),
            ["/dev/nvme0n1", "/dev/sda", "/dev/vda"]
        );
        assert_eq!(
            (disks[0].kind, disks[0].capacity_bytes),
            (Some(StorageKind::Nvme), Some(1_024_209_543_168))
        );
        assert_eq!(disks[0].scheduler.as_deref(), Some("none"));
        assert_eq!((disks[1].kind, disks[1].bus.as_deref()), (Some(StorageKind::Hdd), Some("sata")));
        assert_eq!(disks[1].model.as_deref(), Some("ST4000NM000A"));
        assert_eq!((disks[2].kind, disks[2].capacity_bytes), (Some(StorageKind::Virtual), None));
    }

    #[test]
    fn an_unknown_bus_and_medium_stay_unknown() {
        assert_eq!(bus("foo", "/sys/devices/foo"), None);
        assert_eq!(kind(None, None, None), None);
        assert_eq!(kind(Some("scsi"), Some(true), Some("QEMU HARDDISK")), Some(StorageKind::Virtual));
        assert_eq!(chosen("none"), None);
    }
}

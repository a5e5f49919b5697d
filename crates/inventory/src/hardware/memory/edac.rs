//! The memory controllers' own view of the modules, readable by everybody where the kernel has a driver for them.

use std::path::Path;

use super::modules::{Layout, MemoryModule};
use crate::sysfs;

pub(super) fn read(root: &Path) -> Option<Layout> {
    let folder = root.join("sys/devices/system/edac/mc");
    let mut modules = Vec::new();
    for (controller, name) in sysfs::numbered(&folder, "mc") {
        let place = folder.join(name);
        for prefix in ["dimm", "rank"] {
            for (_, dimm) in sysfs::numbered(&place, prefix) {
                modules.extend(module(&place.join(dimm), controller));
            }
        }
    }
    // A controller is driven only where it corrects errors.
    (!modules.is_empty()).then_some(Layout { modules, slots: None, ecc: Some(true) })
}

fn module(dimm: &Path, controller: u32) -> Option<MemoryModule> {
    let megabytes = sysfs::positive(dimm.join("size"))?;
    let kind = sysfs::text(dimm.join("dimm_mem_type")).and_then(|text| {
        let kind = text.rsplit('-').next()?;
        kind.contains("DDR").then(|| kind.to_owned())
    });
    let location = sysfs::text(dimm.join("dimm_location")).unwrap_or_default();
    let mut words = location.split_whitespace();
    let channel = words.find(|word| *word == "channel").and_then(|_| words.next()?.parse::<u32>().ok());
    Some(MemoryModule {
        locator: sysfs::text(dimm.join("dimm_label")),
        channel: channel.map(|channel| format!("mc{controller} {channel}")),
        size_bytes: megabytes.checked_mul(1 << 20),
        kind,
        ..MemoryModule::default()
    })
}

//! The main memory: how much from `/proc/meminfo`, what kind from the firmware's tables or the memory controller.

mod edac;
mod modules;
mod smbios;

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::sysfs;

pub use modules::MemoryModule;

/// The main memory.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Memory {
    /// What the kernel manages; the modules hold a little more.
    pub total_bytes: Option<u64>,
    /// What nobody uses.
    pub free_bytes: Option<u64>,
    /// What a new program could have without swapping, caches given up.
    pub available_bytes: Option<u64>,
    /// The lowest limit that a control group sets on this process; null without one.
    pub limit_bytes: Option<u64>,
    /// The swap space.
    pub swap_total_bytes: Option<u64>,
    /// The unused swap space.
    pub swap_free_bytes: Option<u64>,
    /// The modules' type, such as `DDR5`.
    pub kind: Option<String>,
    /// The transfers a second the modules are set to, of the slowest.
    pub speed_mts: Option<u32>,
    /// The channels that hold a module, of all sockets.
    pub channels: Option<u32>,
    /// Whether errors are corrected.
    pub ecc: Option<bool>,
    /// The places for modules.
    pub slots: Option<u32>,
    /// The modules present.
    pub modules: Vec<MemoryModule>,
    /// Why the modules are not known, where they are not.
    pub modules_note: Option<String>,
}

impl Memory {
    /// Reads the memory of this machine; it takes a few milliseconds.
    #[must_use]
    pub fn detect() -> Self {
        Self::read(Path::new("/"))
    }

    fn read(root: &Path) -> Self {
        let text = sysfs::text(root.join("proc/meminfo")).unwrap_or_default();
        let field = |name: &str| -> Option<u64> {
            let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
            value.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
        };
        let mut memory = Self {
            total_bytes: field("MemTotal").filter(|&bytes| bytes > 0),
            free_bytes: field("MemFree"),
            available_bytes: field("MemAvailable"),
            limit_bytes: cgroup_limit(root),
            swap_total_bytes: field("SwapTotal"),
            swap_free_bytes: field("SwapFree"),
            ..Self::default()
        };
        match smbios::read(root).or_else(|reason| edac::read(root).ok_or(reason)) {
            Ok(layout) => memory.describe(layout),
            Err(reason) => memory.modules_note = Some(reason),
        }
        memory
    }

    fn describe(&mut self, layout: modules::Layout) {
        self.kind =
            modules::common(layout.modules.iter().map(|module| module.kind.as_deref())).map(str::to_owned);
        self.speed_mts = layout.modules.iter().filter_map(|module| module.speed_mts).min();
        self.channels = modules::channels(&layout.modules);
        self.ecc = layout.ecc;
        self.slots = layout.slots;
        self.modules = layout.modules;
    }
}

/// The lowest `memory.max` from this process's control group up to the root.
fn cgroup_limit(root: &Path) -> Option<u64> {
    let groups = sysfs::text(root.join("proc/self/cgroup"))?;
    let group = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let top = root.join("sys/fs/cgroup");
    let own = top.join(group);
    own.ancestors()
        .take_while(|folder| folder.starts_with(&top))
        .filter_map(|folder| sysfs::positive(folder.join("memory.max")))
        .min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::tree;

    #[test]
    fn sizes_are_bytes_and_no_swap_is_a_true_zero() {
        let root = tree(&[(
            "proc/meminfo",
            "MemTotal: 2048 kB\nMemFree: 1024 kB\nSwapTotal: 0 kB\nSwapFree: x kB\n",
        )]);
        let memory = Memory::read(root.path());
        assert_eq!((memory.total_bytes, memory.free_bytes), (Some(2 << 20), Some(1 << 20)));
        assert_eq!((memory.swap_total_bytes, memory.swap_free_bytes), (Some(0), None));
        assert_eq!((memory.available_bytes, memory.kind), (None, None));
        assert!(memory.modules_note.unwrap().contains("sys/firmware/dmi/tables/DMI"));
    }

    #[test]
    fn the_lowest_limit_on_the_way_up_counts() {
        let root = tree(&[
            ("proc/self/cgroup", "1:cpu:/\n0::/a/b\n"),
            ("sys/fs/cgroup/a/memory.max", "4096\n"),
            ("sys/fs/cgroup/a/b/memory.max", "max\n"),
        ]);
        assert_eq!(cgroup_limit(root.path()), Some(4096));
    }

    #[test]
    fn without_firmware_tables_the_memory_controller_is_asked() {
        let root = tree(&[
            ("sys/devices/system/edac/mc/mc0/dimm0/dimm_mem_type", "Registered-DDR4\n"),
            ("sys/devices/system/edac/mc/mc0/dimm0/size", "32768\n"),
            ("sys/devices/system/edac/mc/mc0/dimm0/dimm_location", "channel 0 slot 0\n"),
        ]);
        let memory = Memory::read(root.path());
        assert_eq!(
            (memory.kind.as_deref(), memory.channels, memory.speed_mts),
            (Some("DDR4"), Some(1), None)
        );
        assert_eq!(memory.modules[0].size_bytes, Some(32 << 30));
        assert_eq!(memory.modules_note, None);
    }
}

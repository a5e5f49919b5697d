//! The main memory: how much from `/proc/meminfo`, what kind from the firmware's tables.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::sysfs;

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
    /// The swap space.
    pub swap_total_bytes: Option<u64>,
    /// The unused swap space.
    pub swap_free_bytes: Option<u64>,
}

impl Memory {
    pub(super) fn read(root: &Path) -> Self {
        let text = sysfs::text(root.join("proc/meminfo")).unwrap_or_default();
        let field = |name: &str| -> Option<u64> {
            let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
            value.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
        };
        Self {
            total_bytes: field("MemTotal").filter(|&bytes| bytes > 0),
            free_bytes: field("MemFree"),
            available_bytes: field("MemAvailable"),
            swap_total_bytes: field("SwapTotal"),
            swap_free_bytes: field("SwapFree"),
        }
    }
}

//! Memory and swap, from `/proc/meminfo`.

use std::path::Path;

use crate::sysfs;

/// What the kernel says about memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Memory {
    pub(crate) total: Option<u64>,
    pub(crate) available: Option<u64>,
    pub(crate) swap_total: Option<u64>,
    pub(crate) swap_free: Option<u64>,
}

impl Memory {
    pub(crate) fn read(root: &Path) -> Self {
        let mut memory = Self::default();
        let text = sysfs::text(root.join("proc/meminfo")).unwrap_or_default();
        for (key, value) in text.lines().filter_map(|line| line.split_once(':')) {
            let field = match key {
                "MemTotal" => &mut memory.total,
                "MemAvailable" => &mut memory.available,
                "SwapTotal" => &mut memory.swap_total,
                "SwapFree" => &mut memory.swap_free,
                _ => continue,
            };
            *field = kibibytes(value);
        }
        memory
    }

    pub(crate) fn used(&self) -> Option<u64> {
        self.total?.checked_sub(self.available?)
    }

    pub(crate) fn swap_used(&self) -> Option<u64> {
        self.swap_total?.checked_sub(self.swap_free?)
    }
}

fn kibibytes(value: &str) -> Option<u64> {
    value.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::super::testing::FakeRoot;
    use super::*;

    #[test]
    fn used_is_what_is_not_available() {
        let root = FakeRoot::new();
        root.write(
            "proc/meminfo",
            "MemTotal: 1000 kB\nMemFree: 100 kB\nMemAvailable: 400 kB\nSwapTotal: 50 kB\nSwapFree: 20 kB\n",
        );
        let memory = Memory::read(root.path());
        assert_eq!(memory.total, Some(1_024_000));
        assert_eq!(memory.used(), Some(600 * 1024));
        assert_eq!(memory.swap_used(), Some(30 * 1024));
    }

    #[test]
    fn malformed_or_impossible_numbers_are_unknown() {
        let root = FakeRoot::new();
        root.write(
            "proc/meminfo",
            "MemTotal: 100 kB\nMemAvailable: 400 kB\nSwapTotal: lots kB\nSwapFree: 18446744073709551615 kB\n",
        );
        let memory = Memory::read(root.path());
        assert_eq!(memory.used(), None);
        assert_eq!((memory.swap_total, memory.swap_free), (None, None));
        assert_eq!(Memory::read(FakeRoot::new().path()), Memory::default());
    }
}

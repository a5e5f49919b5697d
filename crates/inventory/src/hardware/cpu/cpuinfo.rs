//! `/proc/cpuinfo`: names and flags.

use std::path::Path;
use std::str::FromStr;

use crate::sysfs;

/// The processors' records, in the kernel's order.
#[derive(Debug, Default)]
pub(super) struct CpuInfo {
    records: Vec<Vec<(String, String)>>,
}

impl CpuInfo {
    pub(super) fn read(root: &Path) -> Self {
        let text = sysfs::text(root.join("proc/cpuinfo")).unwrap_or_default();
        let records = text.split("\n\n").map(record).filter(|record| !record.is_empty()).collect();
        Self { records }
    }

    /// The first value of a key.
    pub(super) fn field(&self, key: &str) -> Option<&str> {
        self.fields(key).next()
    }

    /// The values of a key, a processor each.
    pub(super) fn fields(&self, key: &str) -> impl Iterator<Item = &str> {
        self.records.iter().filter_map(move |record| {
            record
                .iter()
                .find(|(name, value)| name == key && !value.is_empty())
                .map(|(_, value)| value.as_str())
        })
    }

    /// The first value of a key, a decimal number or a hexadecimal one with `0x`.
    pub(super) fn number(&self, key: &str) -> Option<u32> {
        let text = self.field(key)?;
        match text.strip_prefix("0x") {
            Some(digits) => u32::from_str_radix(digits, 16).ok(),
            None => u32::from_str(text).ok(),
        }
    }

    pub(super) fn threads(&self) -> Option<u32> {
        let count = self.fields("processor").filter(|value| value.parse::<u32>().is_ok()).count();
        u32::try_from(count).ok().filter(|&count| count > 0)
    }

    /// The flags (`flags` on x86, `Features` on ARM, `isa` elsewhere) of the first processor.
    pub(super) fn flags(&self) -> &str {
        self.field("flags").or_else(|| self.field("Features")).unwrap_or_default()
    }

    pub(super) fn vendor(&self) -> Option<String> {
        if let Some(id) = self.field("vendor_id") {
            let known = match id {
                "GenuineIntel" => "Intel",
                "AuthenticAMD" => "AMD",
                "HygonGenuine" => "Hygon",
                "CentaurHauls" | "  Shanghai  " => "Zhaoxin",
                other => other,
            };
            return Some(known.to_owned());
        }
        Some(implementer(self.number("CPU implementer")?)?.to_owned())
    }

    /// The model's name; on ARM, where the kernel names none, the core's name or the board's.
    pub(super) fn model(&self, root: &Path) -> Option<String> {
        let board = || sysfs::text(root.join("proc/device-tree/model")).map(|name| name.replace('\0', ""));
        self.field("model name")
            .or_else(|| arm_core(self.number("CPU implementer")?, self.number("CPU part")?))
            .or_else(|| self.field("Model"))
            .map(|name| name.split_whitespace().collect::<Vec<_>>().join(" "))
            .or_else(board)
    }
}

fn record(text: &str) -> Vec<(String, String)> {
    text.lines()
        .filter_map(|line| line.split_once(':'))
        .map(|(key, value)| (key.trim().to_owned(), value.trim().to_owned()))
        .collect()
}

/// Arm's list of implementers (the MIDR register's top byte).
fn implementer(code: u32) -> Option<&'static str> {
    Some(match code {
        0x41 => "ARM",
        0x42 => "Broadcom",
        0x43 => "Cavium",
        0x46 => "Fujitsu",
        0x48 => "HiSilicon",
        0x4e => "NVIDIA",
        0x50 => "APM",
        0x51 => "Qualcomm",
        0x61 => "Apple",
        0x6d => "Microsoft",
        0xc0 => "Ampere",
        _ => return None,
    })
}

/// The names of the cores that servers and boards of this field have (the MIDR register's part number).
fn arm_core(implementer: u32, part: u32) -> Option<&'static str> {
    Some(match (implementer, part) {
        (0x41, 0xd03) => "Cortex-A53",
        (0x41, 0xd05) => "Cortex-A55",
        (0x41, 0xd07) => "Cortex-A57",
        (0x41, 0xd08) => "Cortex-A72",
        (0x41, 0xd0b) => "Cortex-A76",
        (0x41, 0xd0c) => "Neoverse N1",
        (0x41, 0xd40) => "Neoverse V1",
        (0x41, 0xd42) => "Cortex-A78AE",
        (0x41, 0xd49) => "Neoverse N2",
        (0x41, 0xd4f) => "Neoverse V2",
        (0x41, 0xd84) => "Neoverse V3",
        (0x41, 0xd8e) => "Neoverse N3",
        (0x46, 0x001) => "A64FX",
        (0x48, 0xd01) => "Kunpeng 920",
        (0xc0, 0xac3) => "Ampere-1",
        (0xc0, 0xac4) => "Ampere-1A",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::tree;

    #[test]
    fn an_arm_server_is_named_by_its_part() {
        let root = tree(&[(
            "proc/cpuinfo",
            "processor\t: 0\nBogoMIPS\t: 2000.00\nFeatures\t: fp asimd sve\nCPU implementer\t: 0x41\n\
             CPU architecture: 8\nCPU part\t: 0xd4f\nCPU revision\t: 0\n\nprocessor\t: 1\n",
        )]);
        let info = CpuInfo::read(root.path());
        assert_eq!(info.vendor().as_deref(), Some("ARM"));
        assert_eq!(info.model(root.path()).as_deref(), Some("Neoverse V2"));
        assert_eq!(info.flags(), "fp asimd sve");
        assert_eq!(info.threads(), Some(2));
    }

    #[test]
    fn an_unknown_part_takes_the_boards_name() {
        let root = tree(&[
            ("proc/cpuinfo", "processor\t: 0\nCPU implementer\t: 0x99\nCPU part\t: 0x1\n"),
            ("proc/device-tree/model", "Some Board\0"),
        ]);
        let info = CpuInfo::read(root.path());
        assert_eq!(info.vendor(), None);
        assert_eq!(info.model(root.path()).as_deref(), Some("Some Board"));
    }
}

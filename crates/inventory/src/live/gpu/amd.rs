//! AMD GPUs, by the files of the `amdgpu` driver.

use std::path::{Path, PathBuf};

use crate::live::record::{GpuUsage, percent, rounded};
use crate::sysfs;

const VENDOR: &str = "0x1002";

/// One GPU, by the folder of its PCI device.
pub(super) struct Gpu {
    device: PathBuf,
    hwmon: Option<PathBuf>,
    model: Option<String>,
    guid: Option<String>,
}

/// The GPUs that the driver serves.
pub(super) fn find(root: &Path) -> Vec<Gpu> {
    let cards = root.join("sys/class/drm");
    let mut numbers: Vec<u32> =
        sysfs::names(&cards).iter().filter_map(|name| name.strip_prefix("card")?.parse().ok()).collect();
    numbers.sort_unstable();
    let devices = numbers.into_iter().map(|number| cards.join(format!("card{number}/device")));
    devices
        .filter(|device| sysfs::text(device.join("vendor")).as_deref() == Some(VENDOR))
        .map(Gpu::new)
        .collect()
}

impl Gpu {
    fn new(device: PathBuf) -> Self {
        let monitors = device.join("hwmon");
        let id = sysfs::text(device.join("device"));
        Self {
            hwmon: sysfs::names(&monitors).first().map(|name| monitors.join(name)),
            model: sysfs::text(device.join("product_name"))
                .or_else(|| Some(format!("AMD GPU {}", id?.trim_start_matches("0x")))),
            guid: sysfs::text(device.join("unique_id")),
            device,
        }
    }

    pub(super) fn read(&self) -> GpuUsage {
        let named = GpuUsage { model: self.model.clone(), guid: self.guid.clone(), ..GpuUsage::default() };
        // Asking a sleeping GPU anything would wake it.
        if sysfs::text(self.device.join("power/runtime_status")).as_deref() == Some("suspended") {
            return named;
        }
        let number = |file: &str| sysfs::number::<u64>(self.device.join(file));
        let sensor = |file: &str, scale: f64| {
            sysfs::number::<f64>(self.hwmon.as_ref()?.join(file)).map(|value| rounded(value / scale))
        };
        let (total, used) = (number("mem_info_vram_total"), number("mem_info_vram_used"));
        GpuUsage {
            utilization_percent: sysfs::number(self.device.join("gpu_busy_percent")),
            memory_utilization_percent: used
                .zip(total)
                .and_then(|(used, total)| percent(used as f64, total as f64)),
            power_watts: sensor("power1_average", 1e6).or_else(|| sensor("power1_input", 1e6)),
            power_limit_watts: sensor("power1_cap", 1e6),
            memory_total_bytes: total,
            memory_used_bytes: used,
            temperature_celsius: sensor("temp1_input", 1e3),
            graphics_mhz: sensor("freq1_input", 1e6),
            memory_mhz: sensor("freq2_input", 1e6),
            ..named
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::testing::FakeRoot;

    fn card(root: &FakeRoot, number: u32, files: &[(&str, &str)]) {
        for (file, text) in files {
            root.write(&format!("sys/class/drm/card{number}/device/{file}"), text);
        }
    }

    #[test]
    fn an_amd_card_is_read_and_others_are_not() {
        let root = FakeRoot::new();
        card(&root, 0, &[("vendor", "0x8086")]);
        card(
            &root,
            1,
            &[
                ("vendor", "0x1002\n"),
                ("device", "0x74a1\n"),
                ("unique_id", "abc123"),
                ("gpu_busy_percent", "87"),
                ("mem_info_vram_total", "1000"),
                ("mem_info_vram_used", "250"),
                ("hwmon/hwmon5/power1_average", "310500000"),
                ("hwmon/hwmon5/temp1_input", "64000"),
                ("hwmon/hwmon5/freq1_input", "2100000000"),
            ],
        );
        root.write("sys/class/drm/card1-DP-1/status", "connected");
        let gpus = find(root.path());
        assert_eq!(gpus.len(), 1);
        let usage = gpus[0].read();
        assert_eq!(usage.model.as_deref(), Some("AMD GPU 74a1"));
        assert_eq!(usage.guid.as_deref(), Some("abc123"));
        assert_eq!(usage.utilization_percent, Some(87.0));
        assert_eq!(usage.memory_utilization_percent, Some(25.0));
        assert_eq!(usage.power_watts, Some(310.5));
        assert_eq!(usage.temperature_celsius, Some(64.0));
        assert_eq!(usage.graphics_mhz, Some(2100.0));
        assert_eq!(usage.memory_mhz, None);
    }

    #[test]
    fn a_sleeping_card_is_left_alone() {
        let root = FakeRoot::new();
        card(
            &root,
            0,
            &[("vendor", "0x1002"), ("gpu_busy_percent", "0"), ("power/runtime_status", "suspended")],
        );
        assert_eq!(find(root.path())[0].read().utilization_percent, None);
    }
}

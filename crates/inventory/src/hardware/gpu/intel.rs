//! Intel's GPUs, by the files of the `i915` and `xe` drivers.

use std::path::PathBuf;

use super::{Gpu, GpuClocks, sensor_watts};
use crate::hardware::pci::PciDevice;
use crate::sysfs;

pub(super) fn read(device: &PciDevice) -> Gpu {
    let card = sysfs::numbered(device.folder.join("drm"), "card")
        .into_iter()
        .next()
        .map_or_else(|| device.folder.join("drm"), |(_, name)| device.folder.join("drm").join(name));
    // The drivers keep the same clocks in different places: i915 at the card or its first tile, xe at the device.
    let mhz = |names: [&str; 3]| {
        let [card_file, tile_file, xe_file] = names;
        let places: [PathBuf; 3] = [card.join(card_file), card.join(tile_file), device.folder.join(xe_file)];
        places.iter().find_map(sysfs::positive).and_then(|mhz| u32::try_from(mhz).ok())
    };
    let memory_files =
        ["tile0/physical_vram_size_bytes", "tile0/vram0/size"].map(|name| device.folder.join(name));
    let memory_bytes =
        memory_files.iter().find_map(|path| bytes(path)).or_else(|| bytes(&card.join("lmem_total_bytes")));
    Gpu {
        memory_bytes,
        clocks: GpuClocks {
            core_current_mhz: mhz(["gt_act_freq_mhz", "gt/gt0/rps_act_freq_mhz", "tile0/gt0/freq0/act_freq"])
                .or_else(|| mhz(["gt_cur_freq_mhz", "gt/gt0/rps_cur_freq_mhz", "tile0/gt0/freq0/cur_freq"])),
            core_max_mhz: mhz(["gt_RP0_freq_mhz", "gt/gt0/rps_RP0_freq_mhz", "tile0/gt0/freq0/rp0_freq"]),
            ..GpuClocks::default()
        },
        power_limit_watts: sensor_watts(device, "power1_max").or_else(|| sensor_watts(device, "power1_cap")),
        power_limit_max_watts: sensor_watts(device, "power1_rated_max"),
        ..Gpu::on_bus(device)
    }
}

/// A number of bytes, decimal or hexadecimal with `0x`.
fn bytes(path: &std::path::Path) -> Option<u64> {
    let text = sysfs::text(path)?;
    let value = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    };
    value.filter(|&bytes| bytes > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::pci_device;

    fn gpu(device: &str, files: &[(&str, &str)]) -> Gpu {
        let root = pci_device("sys/bus/pci/devices/0000:03:00.0", &format!("8086:{device}"), "030000", files);
        read(&PciDevice::all(root.path())[0])
    }

    #[test]
    fn i915_keeps_its_clocks_at_the_card() {
        let gpu = gpu(
            "9a49",
            &[
                ("drm/card1/gt_RP0_freq_mhz", "1450\n"),
                ("drm/card1/gt_act_freq_mhz", "0\n"),
                ("drm/card1/gt_cur_freq_mhz", "300\n"),
            ],
        );
        assert_eq!((gpu.clocks.core_max_mhz, gpu.clocks.core_current_mhz), (Some(1450), Some(300)));
        assert_eq!((gpu.memory_bytes, gpu.power_limit_watts), (None, None));
    }

    #[test]
    fn xe_keeps_them_at_the_device() {
        let gpu = gpu(
            "56a0",
            &[
                ("tile0/gt0/freq0/rp0_freq", "2400\n"),
                ("tile0/physical_vram_size_bytes", "0x3fa000000\n"),
                ("hwmon/hwmon3/power1_max", "190000000\n"),
            ],
        );
        assert_eq!((gpu.clocks.core_max_mhz, gpu.clocks.core_current_mhz), (Some(2400), None));
        assert_eq!((gpu.memory_bytes, gpu.power_limit_watts), (Some(0x3_fa00_0000), Some(190.0)));
        assert!(gpu.model.is_some_and(|model| model.contains("Arc")));
    }
}

//! AMD's GPUs, by the files of the `amdgpu` driver.

use std::path::Path;

use super::kfd::Node;
use super::{Gpu, GpuClocks, sensor_watts};
use crate::hardware::pci::PciDevice;
use crate::sysfs;

pub(super) fn read(root: &Path, device: &PciDevice, nodes: &[Node]) -> Gpu {
    let file = |name: &str| device.folder.join(name);
    let node = nodes.iter().find(|node| node.pci_address == device.address);
    let core = Levels::read(&file("pp_dpm_sclk"));
    let memory = Levels::read(&file("pp_dpm_mclk"));
    let gpu = Gpu::on_bus(device);
    Gpu {
        model: sysfs::text(file("product_name")).or_else(|| marketing_name(root, device)).or(gpu.model),
        architecture: node.and_then(|node| node.architecture.clone()),
        memory_bytes: sysfs::positive(file("mem_info_vram_total")),
        memory_bus_bits: node.and_then(|node| node.memory_bus_bits),
        uuid: sysfs::text(file("unique_id"))
            .filter(|id| id.bytes().any(|byte| byte != b'0'))
            .map(|id| format!("GPU-{id}")),
        cores: node.and_then(|node| node.compute_units),
        firmware_version: sysfs::text(file("vbios_version")),
        clocks: GpuClocks {
            core_current_mhz: core.current,
            core_max_mhz: core.max,
            memory_current_mhz: memory.current,
            memory_max_mhz: memory.max,
        },
        power_limit_watts: sensor_watts(device, "power1_cap"),
        power_limit_max_watts: sensor_watts(device, "power1_cap_max"),
        ..gpu
    }
}

/// The name under which the card is sold, from the list that comes with libdrm.
fn marketing_name(root: &Path, device: &PciDevice) -> Option<String> {
    let revision = sysfs::hex(device.folder.join("revision"))?;
    let list = sysfs::text(root.join("usr/share/libdrm/amdgpu.ids"))?;
    list.lines().find_map(|line| {
        let mut parts = line.split(',').map(str::trim);
        let id = u16::from_str_radix(parts.next()?, 16).ok()?;
        let listed = u32::from_str_radix(parts.next()?, 16).ok()?;
        (id == device.device_id && listed == revision).then(|| parts.next().map(str::to_owned))?
    })
}

/// The levels of a clock.
#[derive(Debug, Default, PartialEq)]
struct Levels {
    current: Option<u32>,
    max: Option<u32>,
}

impl Levels {
    /// Reads lines such as `1: 2100Mhz *`, where the star marks the level in use.
    fn read(path: &Path) -> Self {
        let text = sysfs::text(path).unwrap_or_default();
        let mut levels = Self::default();
        for line in text.lines() {
            let Some((_, rest)) = line.split_once(':') else { continue };
            let word = rest.split_whitespace().next().unwrap_or_default().to_ascii_lowercase();
            let Some(mhz) = word.strip_suffix("mhz").and_then(|mhz| mhz.parse::<u32>().ok()) else {
                continue;
            };
            levels.max = levels.max.max(Some(mhz));
            if rest.trim_end().ends_with('*') {
                levels.current = Some(mhz);
            }
        }
        levels
    }
}

#[cfg(test)]
mod tests {
    use super::super::kfd;
    use super::*;
    use crate::fake::{add, link, pci_device};

    const AT: &str = "sys/bus/pci/devices/0000:05:00.0";

    #[test]
    fn an_instinct_is_fully_described() {
        let root = pci_device(
            AT,
            "1002:74a1",
            "120000",
            &[
                ("revision", "0x00\n"),
                ("mem_info_vram_total", "206141652992\n"),
                ("unique_id", "a1b2c3d4e5f60718\n"),
                ("pp_dpm_sclk", "S: 132Mhz *\n0: 500Mhz\n1: 2100Mhz\n"),
                ("pp_dpm_mclk", "0: 900Mhz\n1: 1300Mhz *\n"),
                ("hwmon/hwmon7/power1_cap", "750000000\n"),
                ("max_link_speed", "32.0 GT/s PCIe\n"),
                ("max_link_width", "16\n"),
            ],
        );
        add(
            &root,
            &[
                ("usr/share/libdrm/amdgpu.ids", "# list\n1.0.0\n74A1,\t00,\tAMD Instinct MI300X OAM\n"),
                (
                    "sys/class/kfd/kfd/topology/nodes/1/properties",
                    "simd_count 1216\nsimd_per_cu 4\ngfx_target_version 90402\nlocation_id 1280\n",
                ),
            ],
        );
        link(&root, &format!("{AT}/driver"), "../../drivers/amdgpu");
        let device = PciDevice::all(root.path()).remove(0);
        let gpu = read(root.path(), &device, &kfd::nodes(root.path()));
        assert_eq!(gpu.model.as_deref(), Some("AMD Instinct MI300X OAM"));
        assert_eq!(
            (gpu.memory_bytes, gpu.uuid.as_deref()),
            (Some(206_141_652_992), Some("GPU-a1b2c3d4e5f60718"))
        );
        assert_eq!((gpu.architecture.as_deref(), gpu.cores), (Some("gfx942"), Some(304)));
        assert_eq!((gpu.clocks.core_current_mhz, gpu.clocks.core_max_mhz), (Some(132), Some(2100)));
        assert_eq!((gpu.clocks.memory_current_mhz, gpu.power_limit_watts), (Some(1300), Some(750.0)));
        assert_eq!((gpu.pcie.generation_max, gpu.driver.as_deref()), (Some(5), Some("amdgpu")));
    }

    #[test]
    fn malformed_files_are_unknown() {
        let root = pci_device(
            AT,
            "1002:ffff",
            "030000",
            &[
                ("revision", "0x00\n"),
                ("mem_info_vram_total", "0\n"),
                ("unique_id", "0000000000000000\n"),
                ("pp_dpm_sclk", "0: fastMhz *\n:\n1 2\n"),
            ],
        );
        add(&root, &[("usr/share/libdrm/amdgpu.ids", "FFFF\nzz,0,x\n")]);
        let device = PciDevice::all(root.path()).remove(0);
        let gpu = read(root.path(), &device, &[]);
        assert_eq!((gpu.model, gpu.memory_bytes, gpu.uuid), (None, None, None));
        assert_eq!(gpu.clocks, GpuClocks::default());
    }
}

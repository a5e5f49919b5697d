//! NVIDIA's GPUs. Each question to NVML stands alone: what a device does not answer is unknown, the rest is kept.

use std::path::Path;

use nvml_wrapper::enum_wrappers::device::{Clock, TopologyLevel};
use nvml_wrapper::enums::device::DeviceArchitecture;
use nvml_wrapper::{Device, Nvml};

use super::topology::{Connection, GpuLink, PciePath};
use super::{Gpu, GpuClocks};
use crate::hardware::pci::{PciDevice, PcieLink};
use crate::{nvml, sysfs};

/// More than any GPU has; the library refuses indices that do not exist.
const MOST_NVLINKS: u32 = 36;

pub(super) fn count() -> Option<usize> {
    nvml::nvml().ok()?.device_count().ok().and_then(|count| usize::try_from(count).ok())
}

/// The GPUs and their connections, or why the library cannot be used.
pub(super) fn read(root: &Path) -> Result<(Vec<Gpu>, Vec<GpuLink>), String> {
    let nvml = nvml::nvml()?;
    let count = nvml.device_count().map_err(|error| error.to_string())?;
    let driver_version = nvml.sys_driver_version().ok();
    let mut devices = Vec::new();
    for index in 0..count {
        match nvml.device_by_index(index) {
            Ok(device) => devices.push(device),
            // A GPU that fell off the bus must not hide the others.
            Err(error) => tracing::warn!("NVML does not open GPU {index}: {error}"),
        }
    }
    let gpus: Vec<_> = devices.iter().map(|device| gpu(root, device, driver_version.clone())).collect();
    let links = links(nvml, &devices, &gpus);
    Ok((gpus, links))
}

fn gpu(root: &Path, device: &Device, driver_version: Option<String>) -> Gpu {
    let pci = device.pci_info().ok();
    let pci_address = pci.as_ref().map(|pci| address(pci.domain, pci.bus, pci.device));
    let on_bus = pci_address
        .as_ref()
        .and_then(|address| PciDevice::at(&root.join("sys/bus/pci/devices").join(address)));
    let milliwatts = |milliwatts: u32| f64::from(milliwatts) / 1000.0;
    Gpu {
        index: 0,
        vendor: "NVIDIA".to_owned(),
        model: device.name().ok(),
        architecture: device.architecture().ok().as_ref().and_then(architecture),
        memory_bytes: device.memory_info().ok().map(|memory| memory.total).filter(|&bytes| bytes > 0),
        memory_bus_bits: device.memory_bus_width().ok().filter(|&bits| bits > 0),
        uuid: device.uuid().ok(),
        compute_capability: device
            .cuda_compute_capability()
            .ok()
            .map(|capability| format!("{}.{}", capability.major, capability.minor)),
        cores: device.num_cores().ok().filter(|&cores| cores > 0),
        pci_address,
        // NVML keeps the device's identifier in the upper half and the vendor's in the lower.
        pci_ids: pci.map(|pci| format!("{:04x}:{:04x}", pci.pci_device_id & 0xffff, pci.pci_device_id >> 16)),
        pcie: PcieLink {
            generation_current: device.current_pcie_link_gen().ok().filter(|&generation| generation > 0),
            generation_max: device.max_pcie_link_gen().ok().filter(|&generation| generation > 0),
            width_current: device.current_pcie_link_width().ok().filter(|&width| width > 0),
            width_max: device.max_pcie_link_width().ok().filter(|&width| width > 0),
        },
        driver: on_bus
            .as_ref()
            .and_then(|device| device.driver.clone())
            .or_else(|| root.join("proc/driver/nvidia").exists().then(|| "nvidia".to_owned())),
        driver_version,
        firmware_version: device.vbios_version().ok(),
        clocks: clocks(device),
        power_limit_watts: device
            .enforced_power_limit()
            .or_else(|_| device.power_management_limit())
            .ok()
            .map(milliwatts),
        power_limit_max_watts: device
            .power_management_limit_constraints()
            .ok()
            .map(|limits| milliwatts(limits.max_limit)),
        ecc: device.is_ecc_enabled().ok().map(|ecc| ecc.currently_enabled),
        mig: device.mig_mode().ok().map(|mode| mode.current == 1),
        nvlinks_active: active_nvlinks(device),
        numa_node: on_bus.as_ref().and_then(PciDevice::numa_node),
    }
}

/// What the kernel's module says of a GPU where the library cannot be used.
pub(super) fn without_library(root: &Path, device: &PciDevice) -> Gpu {
    let folder = root.join("proc/driver/nvidia/gpus").join(&device.address);
    let information = sysfs::text(folder.join("information")).unwrap_or_default();
    let field = |name: &str| {
        let value = information.lines().find_map(|line| line.strip_prefix(name)?.trim().strip_prefix(':'))?;
        let value = value.trim();
        (!value.is_empty() && !value.contains('?')).then(|| value.to_owned())
    };
    let gpu = Gpu::on_bus(device);
    Gpu {
        model: field("Model").or(gpu.model),
        uuid: field("GPU UUID"),
        firmware_version: field("Video BIOS"),
        ..gpu
    }
}

fn address(domain: u32, bus: u32, device: u32) -> String {
    format!("{domain:04x}:{bus:02x}:{device:02x}.0")
}

fn architecture(architecture: &DeviceArchitecture) -> Option<String> {
    (*architecture != DeviceArchitecture::Unknown).then(|| architecture.to_string())
}

fn clocks(device: &Device) -> GpuClocks {
    GpuClocks {
        core_current_mhz: device.clock_info(Clock::SM).ok(),
        core_max_mhz: device.max_clock_info(Clock::SM).ok(),
        memory_current_mhz: device.clock_info(Clock::Memory).ok(),
        memory_max_mhz: device.max_clock_info(Clock::Memory).ok(),
    }
}

/// The links that are up; `None` if the GPU has no NVLink.
fn active_nvlinks(device: &Device) -> Option<u32> {
    let states: Vec<_> =
        (0..MOST_NVLINKS).map_while(|link| device.link_wrapper_for(link).is_active().ok()).collect();
    let active = states.iter().filter(|&&active| active).count();
    (!states.is_empty()).then(|| u32::try_from(active).unwrap_or(u32::MAX))
}

/// The connection of each pair.
fn links(nvml: &Nvml, devices: &[Device], gpus: &[Gpu]) -> Vec<GpuLink> {
    let mut links = Vec::new();
    for (from, a) in (0..).zip(devices) {
        for (to, b) in (0..).zip(devices).skip(from as usize + 1) {
            let nvlinks = direct_nvlinks(a, gpus[to as usize].pci_address.as_deref())
                .or_else(|| switched_nvlinks(a, b, &gpus[from as usize], &gpus[to as usize]));
            links.push(GpuLink {
                from,
                to,
                connection: if nvlinks.is_some() { Connection::Nvlink } else { Connection::Pcie },
                link_count: nvlinks,
                pcie_path: nvml.topology_common_ancestor(a, b).ok().map(pcie_path),
            });
        }
    }
    links
}

/// The NVLinks that end at the GPU with this address.
fn direct_nvlinks(device: &Device, peer: Option<&str>) -> Option<u32> {
    let ends_at_peer = |&link: &u32| {
        let link = device.link_wrapper_for(link);
        link.is_active().unwrap_or(false)
            && link
                .remote_pci_info()
                .is_ok_and(|pci| Some(address(pci.domain, pci.bus, pci.device).as_str()) == peer)
    };
    let count = (0..MOST_NVLINKS).filter(ends_at_peer).count();
    u32::try_from(count).ok().filter(|&count| count > 0)
}

/// The NVLinks of a pair that meets in a switch: all that the lesser of the two has.
fn switched_nvlinks(a: &Device, b: &Device, gpu_a: &Gpu, gpu_b: &Gpu) -> Option<u32> {
    use nvml_wrapper::enum_wrappers::device::{P2pCapabilitiesIndex, P2pStatus};
    let connected = matches!(a.p2p_status(b, P2pCapabilitiesIndex::NvLink), Ok(P2pStatus::Ok));
    let count = gpu_a.nvlinks_active?.min(gpu_b.nvlinks_active?);
    (connected && count > 0).then_some(count)
}

fn pcie_path(level: TopologyLevel) -> PciePath {
    match level {
        TopologyLevel::Internal => PciePath::SameBoard,
        TopologyLevel::Single => PciePath::SingleSwitch,
        TopologyLevel::Multiple => PciePath::MultipleSwitches,
        TopologyLevel::HostBridge => PciePath::HostBridge,
        TopologyLevel::Node => PciePath::NumaNode,
        TopologyLevel::System => PciePath::System,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{add, pci_device};

    #[test]
    fn addresses_are_written_as_the_kernel_does() {
        assert_eq!(address(0, 0x3b, 0), "0000:3b:00.0");
        assert_eq!(address(0x10000, 1, 0x1f), "10000:01:1f.0");
    }

    #[test]
    fn the_kernels_module_tells_a_little() {
        let at = "sys/bus/pci/devices/0000:3b:00.0";
        let root = pci_device(at, "10de:2335", "030200", &[]);
        add(
            &root,
            &[(
                "proc/driver/nvidia/gpus/0000:3b:00.0/information",
                "Model: \t\t NVIDIA H200\nIRQ:   \t\t 42\nGPU UUID: \t GPU-1234\nVideo BIOS: \t ??.??.??.??.??\n",
            )],
        );
        let gpu = without_library(root.path(), &PciDevice::all(root.path())[0]);
        assert_eq!((gpu.model.as_deref(), gpu.uuid.as_deref()), (Some("NVIDIA H200"), Some("GPU-1234")));
        assert_eq!((gpu.firmware_version, gpu.memory_bytes), (None, None));
    }
}

//! GPUs: NVIDIA's by NVML, AMD's and Intel's by sysfs.

mod amd;
mod intel;
mod kfd;
mod nvidia;
mod topology;

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::pci::{PciDevice, PcieLink};
use crate::sysfs;

pub use topology::{Connection, GpuLink, PciePath};

const NVIDIA: u16 = 0x10de;
const AMD: u16 = 0x1002;
const INTEL: u16 = 0x8086;
const MOORE_THREADS: u16 = 0x1ed5;

/// The clocks of a GPU.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GpuClocks {
    /// The compute cores' clock now.
    pub core_current_mhz: Option<u32>,
    /// The compute cores' highest clock.
    pub core_max_mhz: Option<u32>,
    /// The memory's clock now.
    pub memory_current_mhz: Option<u32>,
    /// The memory's highest clock.
    pub memory_max_mhz: Option<u32>,
}

/// A GPU.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Gpu {
    /// Its place in this list; NVIDIA's come first, in NVML's order.
    pub index: u32,
    /// The vendor: `NVIDIA`, `AMD`, `Intel` or `Moore Threads`.
    pub vendor: String,
    /// The model's name.
    pub model: Option<String>,
    /// The architecture, such as `Hopper` or `gfx942`.
    pub architecture: Option<String>,
    /// Its memory.
    pub memory_bytes: Option<u64>,
    /// The width of the bus to its memory.
    pub memory_bus_bits: Option<u32>,
    /// Its unique name, as the vendor's tools show it.
    pub uuid: Option<String>,
    /// CUDA's compute capability, such as `9.0`.
    pub compute_capability: Option<String>,
    /// Arithmetic units: CUDA cores (NVIDIA) or compute units (AMD).
    pub cores: Option<u32>,
    /// Where it is on the PCI bus.
    pub pci_address: Option<String>,
    /// The PCI identifiers of vendor and device.
    pub pci_ids: Option<String>,
    /// Its PCI Express link.
    pub pcie: PcieLink,
    /// The kernel's driver.
    pub driver: Option<String>,
    /// The driver's version, where it has one other than the kernel's.
    pub driver_version: Option<String>,
    /// The version of its firmware.
    pub firmware_version: Option<String>,
    /// Its clocks.
    pub clocks: GpuClocks,
    /// The power it is allowed to draw now.
    pub power_limit_watts: Option<f64>,
    /// The most that the limit can be set to.
    pub power_limit_max_watts: Option<f64>,
    /// Whether its memory corrects errors.
    pub ecc: Option<bool>,
    /// Whether it is divided into instances (NVIDIA's MIG).
    pub mig: Option<bool>,
    /// The NVLinks that are up.
    pub nvlinks_active: Option<u32>,
    /// The node whose memory and CPUs are close to it.
    pub numa_node: Option<u32>,
}

impl Gpu {
    /// What the PCI bus alone says.
    fn on_bus(device: &PciDevice) -> Self {
        Self {
            vendor: vendor(device.vendor_id).unwrap_or("unknown").to_owned(),
            model: device.model().map(str::to_owned),
            pci_address: Some(device.address.clone()),
            pci_ids: Some(device.ids()),
            pcie: device.link(),
            driver: device.driver.clone(),
            driver_version: device.driver_version(),
            numa_node: device.numa_node(),
            ..Self::default()
        }
    }
}

fn vendor(id: u16) -> Option<&'static str> {
    Some(match id {
        NVIDIA => "NVIDIA",
        AMD => "AMD",
        INTEL => "Intel",
        MOORE_THREADS => "Moore Threads",
        _ => return None,
    })
}

/// Whether a device is a GPU: a display device of a GPU maker, or what AMD's GPU driver serves (some of its GPUs are
/// "processing accelerators" on the bus).
pub(super) fn is_gpu(device: &PciDevice) -> bool {
    let display = device.class >> 8 == 0x03;
    vendor(device.vendor_id).is_some() && (display || is_amd_accelerator(device))
}

fn is_amd_accelerator(device: &PciDevice) -> bool {
    device.vendor_id == AMD && device.class == 0x1200
}

/// Whether a driver serves a device here; one that hands it to a virtual machine does not.
pub(super) fn is_served(device: &PciDevice) -> bool {
    device.driver.as_deref().is_some_and(|driver| !matches!(driver, "vfio-pci" | "pci-stub"))
}

/// How many GPUs there are.
pub(super) fn count(root: &Path) -> usize {
    let served = PciDevice::all(root).into_iter().filter(|device| is_gpu(device) && is_served(device));
    let (nvidia, others): (Vec<_>, Vec<_>) = served.partition(|device| device.vendor_id == NVIDIA);
    let foreign = nvidia.iter().filter(|device| device.driver.as_deref() != Some("nvidia")).count();
    others.len() + nvidia::count().map_or(nvidia.len(), |count| count + foreign)
}

/// All GPUs that a driver serves, and how they are connected.
pub(super) fn read(
    root: &Path,
    devices: &[PciDevice],
    warnings: &mut Vec<String>,
) -> (Vec<Gpu>, Vec<GpuLink>) {
    let served: Vec<_> = devices.iter().filter(|device| is_gpu(device) && is_served(device)).collect();
    let library = nvidia::read(root);
    let library_works = library.is_ok();
    let (mut gpus, mut links) = match library {
        Ok(found) => found,
        Err(reason) => {
            if served.iter().any(|device| device.driver.as_deref() == Some("nvidia")) {
                warnings.push(format!(
                    "NVIDIA's management library cannot be used, so little is known of its GPUs: {reason}"
                ));
            }
            (Vec::new(), Vec::new())
        }
    };
    let by_nvml = gpus.len();
    let mut hidden = 0;
    let nodes = kfd::nodes(root);
    for device in served {
        let gpu = match (device.vendor_id, device.driver.as_deref()) {
            (NVIDIA, Some("nvidia")) if library_works => {
                let listed = gpus.iter().any(|gpu| gpu.pci_address.as_deref() == Some(&device.address));
                hidden += usize::from(!listed);
                continue;
            }
            (NVIDIA, Some("nvidia")) => nvidia::without_library(root, device),
            (AMD, Some("amdgpu")) => amd::read(root, device, &nodes),
            (INTEL, Some("i915" | "xe")) => intel::read(device),
            _ => Gpu::on_bus(device),
        };
        gpus.push(gpu);
    }
    if hidden > 0 {
        warnings.push(format!(
            "{hidden} more NVIDIA GPUs are in this machine but are not given to this container or user"
        ));
    }
    for (index, gpu) in (0..).zip(&mut gpus) {
        gpu.index = index;
    }
    links.extend(topology::read(root, &gpus, by_nvml, &nodes));
    (gpus, links)
}

/// A power in millionths of a watt, in a file of the device's sensors.
fn sensor_watts(device: &PciDevice, file: &str) -> Option<f64> {
    let folder = device.folder.join("hwmon");
    let read = |(_, name)| sysfs::positive(folder.join(name).join(file));
    sysfs::numbered(&folder, "hwmon").into_iter().find_map(read).map(|microwatts| microwatts as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{link, pci_device};

    fn device(class: &str, vendor: &str, driver: Option<&str>) -> PciDevice {
        let at = "sys/bus/pci/devices/0000:01:00.0";
        let root = pci_device(at, &format!("{vendor}:0001"), class, &[]);
        if let Some(driver) = driver {
            link(&root, &format!("{at}/driver"), format!("../../drivers/{driver}"));
        }
        PciDevice::all(root.path()).remove(0)
    }

    #[test]
    fn only_gpu_makers_display_devices_are_gpus() {
        assert!(is_gpu(&device("030000", "10de", None)));
        assert!(is_gpu(&device("038000", "1002", None)));
        assert!(is_gpu(&device("120000", "1002", None)));
        assert!(!is_gpu(&device("120000", "8086", None)), "Intel's NPU");
        assert!(!is_gpu(&device("030000", "1a03", None)), "a server's management display");
        assert!(!is_gpu(&device("040300", "10de", None)), "a GPU's sound device");
    }

    #[test]
    fn a_device_for_a_virtual_machine_is_not_served_here() {
        assert!(is_served(&device("030000", "10de", Some("nvidia"))));
        assert!(!is_served(&device("030000", "10de", Some("vfio-pci"))));
        assert!(!is_served(&device("030000", "10de", None)));
    }
}

//! Processors, memory, storage, network and accelerators.

pub mod accelerator;
pub mod cpu;
pub mod gpu;
pub mod memory;
pub mod network;
mod pci;
pub mod platform;
pub mod storage;

use std::path::Path;

use serde::{Deserialize, Serialize};

pub use accelerator::{Accelerator, UnservedDevice};
pub use cpu::Cpu;
pub use gpu::{Gpu, GpuLink};
pub use memory::Memory;
pub use network::NetworkInterface;
pub use pci::PcieLink;
pub use platform::Platform;
pub use storage::StorageDevice;

use pci::PciDevice;

/// The machine's hardware.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Hardware {
    /// The board and the firmware.
    pub platform: Platform,
    /// The processors.
    pub cpu: Cpu,
    /// The main memory.
    pub memory: Memory,
    /// The disks.
    pub storage: Vec<StorageDevice>,
    /// The network interfaces.
    pub network: Vec<NetworkInterface>,
    /// The GPUs that a driver serves.
    pub gpus: Vec<Gpu>,
    /// How each pair of GPUs is connected.
    pub gpu_links: Vec<GpuLink>,
    /// Other accelerators that a driver serves.
    pub accelerators: Vec<Accelerator>,
    /// GPUs and accelerators that no driver serves.
    pub unserved: Vec<UnservedDevice>,
}

/// The GPUs of this machine.
#[must_use]
pub fn gpus() -> Vec<Gpu> {
    let root = Path::new("/");
    gpu::read(root, &PciDevice::all(root), &mut Vec::new()).0
}

impl Hardware {
    pub(crate) fn detect(warnings: &mut Vec<String>) -> Self {
        let root = Path::new("/");
        let devices = PciDevice::all(root);
        let (gpus, gpu_links) = gpu::read(root, &devices, warnings);
        Self {
            platform: Platform::read(root),
            cpu: Cpu::detect(),
            memory: Memory::detect(),
            storage: storage::read(root),
            network: network::read(root, network::addresses()),
            gpus,
            gpu_links,
            accelerators: accelerator::read(root, &devices),
            unserved: accelerator::unserved(&devices, warnings),
        }
    }
}

/// How many GPUs this machine has that a driver serves; NVIDIA's library is asked only if it is there.
#[must_use]
pub fn gpu_count() -> usize {
    gpu::count(Path::new("/"))
}

//! The GPU memory of each process: NVIDIA's by its management library, AMD's by what the kernel tells of compute and of
//! graphics clients.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use nvml_wrapper::Device;
use nvml_wrapper::enums::device::UsedGpuMemory;

use crate::nvml::nvml;
use crate::sysfs;

/// Reads the GPU memory of processes.
pub struct GpuProcesses {
    nvidia: Vec<Device<'static>>,
    root: PathBuf,
    /// Whether there is an AMD GPU: without one, looking at the files of every process would be in vain.
    amd: bool,
}

impl GpuProcesses {
    /// Of this machine.
    #[must_use]
    pub fn here() -> Self {
        let devices = nvml().map(|library| {
            let count = library.device_count().unwrap_or(0);
            (0..count).filter_map(|index| library.device_by_index(index).ok()).collect()
        });
        Self { nvidia: devices.unwrap_or_default(), ..Self::below(Path::new("/")) }
    }

    /// Of what the kernel tells below this root.
    fn below(root: &Path) -> Self {
        Self { nvidia: Vec::new(), amd: !super::amd::find(root).is_empty(), root: root.to_owned() }
    }

    /// Bytes of GPU memory of each process that has some, over all GPUs.
    #[must_use]
    pub fn sample(&self) -> HashMap<u32, u64> {
        let mut bytes = HashMap::new();
        for device in &self.nvidia {
            for (pid, used) in of_device(device) {
                *bytes.entry(pid).or_default() += used;
            }
        }
        if self.amd {
            for (pid, used) in self.compute().into_iter().chain(self.graphics()) {
                *bytes.entry(pid).or_default() += used;
            }
        }
        bytes
    }

    /// Compute processes, by the files of the kernel's `kfd` driver: one for each GPU.
    fn compute(&self) -> Vec<(u32, u64)> {
        let folder = self.root.join("sys/class/kfd/kfd/proc");
        let process = |name: String| {
            let files = folder.join(&name);
            let of_gpus = sysfs::names(&files).into_iter().filter(|file| file.starts_with("vram_"));
            let bytes = of_gpus.filter_map(|file| sysfs::number::<u64>(files.join(file))).sum();
            Some((name.parse().ok()?, bytes))
        };
        sysfs::names(&folder).into_iter().filter_map(process).filter(|(_, bytes)| *bytes > 0).collect()
    }

    /// Graphics clients, by what the kernel tells of each open file.
    fn graphics(&self) -> Vec<(u32, u64)> {
        let folder = self.root.join("proc");
        let process = |name: String| {
            let pid = name.parse().ok()?;
            let files = folder.join(&name).join("fdinfo");
            // A client that several files belong to counts once.
            let mut clients = HashSet::new();
            let texts = sysfs::names(&files).into_iter().filter_map(|file| sysfs::text(files.join(file)));
            let bytes = texts.filter_map(|text| client(&text)).filter(|(id, _)| clients.insert(id.clone()));
            Some((pid, bytes.map(|(_, bytes)| bytes).sum()))
        };
        sysfs::names(&folder).into_iter().filter_map(process).filter(|(_, bytes)| *bytes > 0).collect()
    }
}

/// The processes of one GPU; one that both computes and draws is listed twice with the same memory.
fn of_device(device: &Device<'_>) -> HashMap<u32, u64> {
    let mut bytes = HashMap::new();
    let compute = device.running_compute_processes().unwrap_or_default();
    let graphics = device.running_graphics_processes().unwrap_or_default();
    for process in compute.into_iter().chain(graphics) {
        if let UsedGpuMemory::Used(used) = process.used_gpu_memory {
            let known: &mut u64 = bytes.entry(process.pid).or_default();
            *known = (*known).max(used);
        }
    }
    bytes
}

/// A graphics client of the `amdgpu` driver, by its device and number, and its video memory.
fn client(text: &str) -> Option<(String, u64)> {
    let field =
        |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim);
    if field("drm-driver")? != "amdgpu" {
        return None;
    }
    let memory = field("drm-memory-vram").or_else(|| field("drm-resident-vram"))?;
    let (number, unit) = memory.split_once(' ').unwrap_or((memory, ""));
    let scale = match unit {
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        _ => 1,
    };
    let id = format!("{} {}", field("drm-pdev").unwrap_or_default(), field("drm-client-id")?);
    Some((id, number.parse::<u64>().ok()?.checked_mul(scale)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::testing::FakeRoot;

    #[test]
    fn compute_and_graphics_memory_of_an_amd_gpu_are_summed() {
        let root = FakeRoot::new();
        let fd = |client: u32, kib: u32| {
            format!(
                "pos:\t0\ndrm-driver:\tamdgpu\ndrm-client-id:\t{client}\ndrm-pdev:\t0000:03:00.0\n\
                 drm-memory-vram:\t{kib} KiB\n"
            )
        };
        root.write("sys/class/kfd/kfd/proc/77/vram_1234", "4096");
        root.write("sys/class/kfd/kfd/proc/77/vram_5678", "1000");
        root.write("sys/class/kfd/kfd/proc/78/vram_1234", "0");
        root.write("proc/77/fdinfo/3", &fd(1, 2));
        root.write("proc/77/fdinfo/4", &fd(1, 2)).write("proc/77/fdinfo/5", &fd(2, 1));
        root.write("proc/99/fdinfo/0", "pos:\t0\n").write("proc/version", "Linux");
        assert_eq!(GpuProcesses::below(root.path()).sample(), HashMap::new(), "there is no AMD GPU");
        root.write("sys/class/drm/card0/device/vendor", "0x1002");
        let expected = HashMap::from([(77, 4096 + 1000 + 3 * 1024)]);
        assert_eq!(GpuProcesses::below(root.path()).sample(), expected);
    }

    #[test]
    fn nonsense_is_no_client() {
        for text in ["", "drm-driver: amdgpu", "drm-driver: i915\ndrm-client-id: 1\ndrm-memory-vram: 1 KiB"] {
            assert_eq!(client(text), None, "{text}");
        }
        let huge = "drm-driver: amdgpu\ndrm-client-id: 1\ndrm-memory-vram: 18446744073709551615 KiB";
        assert_eq!(client(huge), None);
    }
}

//! GPUs: NVIDIA's by its management library, AMD's by sysfs. Intel's report nothing without their tools.

mod amd;
mod nvidia;
mod processes;

use std::path::Path;

use super::record::GpuUsage;

pub use processes::GpuProcesses;

/// The GPUs of a machine, found once.
pub struct GpuSampler {
    nvidia: Vec<nvidia::Gpu>,
    amd: Vec<amd::Gpu>,
}

impl GpuSampler {
    /// The GPUs of this machine.
    #[must_use]
    pub fn here() -> Self {
        Self::new(Path::new("/"))
    }

    /// All GPUs of this machine.
    pub(crate) fn new(root: &Path) -> Self {
        Self { nvidia: nvidia::find(), amd: amd::find(root) }
    }

    /// Only what sysfs reports, for a root that is not this machine's.
    pub(crate) fn without_libraries(root: &Path) -> Self {
        Self { nvidia: Vec::new(), amd: amd::find(root) }
    }

    /// The joules that a GPU has used since its driver was loaded, by its own counter; none where it has no counter.
    /// Without a name it must be the only one.
    #[must_use]
    pub fn joules(&self, guid: Option<&str>) -> Option<f64> {
        match guid {
            Some(guid) => self.nvidia.iter().find(|gpu| gpu.is(guid))?.joules(),
            None => match &self.nvidia[..] {
                [only] if self.amd.is_empty() => only.joules(),
                _ => None,
            },
        }
    }

    /// What each of them does now.
    #[must_use]
    pub fn sample(&self) -> Vec<GpuUsage> {
        let nvidia = self.nvidia.iter().map(nvidia::Gpu::read);
        let amd = self.amd.iter().map(amd::Gpu::read);
        nvidia.chain(amd).zip(0..).map(|(usage, index)| GpuUsage { index, ..usage }).collect()
    }
}

//! Convolutions and attention by a vendor's library: cuDNN has both, MIOpen convolutions.

use std::sync::Arc;

pub(crate) use crate::cuda::networks::{Pointwise, Windows};

use crate::cuda::networks as cudnn;
use crate::driver::{Gpu, Stream};
use crate::error::{GpuError, Result};
use crate::hip::networks as miopen;
use crate::library::Vendor;

/// A vendor's library, ready for a device.
#[derive(Clone)]
pub(crate) enum Networks {
    /// NVIDIA's.
    Cudnn(Arc<cudnn::Networks>),
    /// AMD's.
    Miopen(Arc<miopen::Networks>),
}

impl Networks {
    /// The library for a device.
    ///
    /// # Errors
    ///
    /// When there is none on this machine.
    pub(crate) fn of(gpu: &Arc<Gpu>) -> Result<Self> {
        Ok(match gpu.driver.vendor {
            Vendor::Cuda => Self::Cudnn(Arc::new(cudnn::Networks::of(gpu)?)),
            Vendor::Hip => Self::Miopen(Arc::new(miopen::Networks::of(gpu)?)),
        })
    }

    /// Whose it is: what it can do follows from that.
    pub(crate) fn vendor(&self) -> Vendor {
        match self {
            Self::Cudnn(_) => Vendor::Cuda,
            Self::Miopen(_) => Vendor::Hip,
        }
    }

    /// Does some work that is recorded, while no other thread uses a library that would reach into the recording.
    pub(crate) fn alone<T>(&self, work: impl FnOnce() -> T) -> T {
        let _held = match self {
            Self::Cudnn(library) => Some(library.hold()),
            Self::Miopen(_) => None,
        };
        work()
    }

    /// cuDNN, which alone has attention.
    pub(crate) fn cudnn(&self) -> Result<&Arc<cudnn::Networks>> {
        match self {
            Self::Cudnn(library) => Ok(library),
            Self::Miopen(_) => Err(GpuError::Other("MIOpen has no attention here".to_owned())),
        }
    }
}

/// Something that a library is ready to run.
pub(crate) enum Plan {
    /// By cuDNN.
    Cudnn(cudnn::Plan),
    /// By MIOpen.
    Miopen(miopen::Plan),
}

impl Plan {
    /// Starts it.
    pub(crate) fn run(&self, stream: &Stream) -> Result<()> {
        match self {
            Self::Cudnn(plan) => plan.run(stream),
            Self::Miopen(plan) => plan.run(stream),
        }
    }
}

//! The DNN library of a vendor: cuDNN has convolutions and attention, MIOpen convolutions.

pub(crate) mod cudnn;
pub(crate) mod miopen;
mod window;

use std::sync::Arc;

pub(crate) use cudnn::Pointwise;
pub(crate) use window::{ConvPass, ConvWindow};

use crate::driver::{Gpu, Stream};
use crate::error::{GpuError, Result};
use crate::vendor::Vendor;

/// A DNN library on a device.
#[derive(Clone)]
pub(crate) enum DnnLibrary {
    /// NVIDIA's.
    Cudnn(Arc<cudnn::Cudnn>),
    /// AMD's.
    Miopen(Arc<miopen::Miopen>),
}

impl DnnLibrary {
    /// Opens the library for a device.
    ///
    /// # Errors
    ///
    /// When it is not installed.
    pub(crate) fn of(gpu: &Arc<Gpu>) -> Result<Self> {
        Ok(match gpu.driver.vendor {
            Vendor::Cuda => Self::Cudnn(Arc::new(cudnn::Cudnn::of(gpu)?)),
            Vendor::Hip => Self::Miopen(Arc::new(miopen::Miopen::of(gpu)?)),
        })
    }

    /// The vendor, which determines what is supported.
    pub(crate) fn vendor(&self) -> Vendor {
        match self {
            Self::Cudnn(_) => Vendor::Cuda,
            Self::Miopen(_) => Vendor::Hip,
        }
    }

    /// Runs a capture while no other thread uses a library that would interfere with it.
    pub(crate) fn exclusively<T>(&self, work: impl FnOnce() -> T) -> T {
        let _held = match self {
            Self::Cudnn(library) => Some(library.hold()),
            Self::Miopen(_) => None,
        };
        work()
    }

    /// cuDNN, the only one with attention.
    pub(crate) fn cudnn(&self) -> Result<&Arc<cudnn::Cudnn>> {
        match self {
            Self::Cudnn(library) => Ok(library),
            Self::Miopen(_) => Err(GpuError::Other("MIOpen has no attention here".to_owned())),
        }
    }
}

/// An operation that is ready to run.
pub(crate) enum DnnPlan {
    /// By cuDNN.
    Cudnn(cudnn::CudnnPlan),
    /// By MIOpen.
    Miopen(miopen::MiopenPlan),
}

impl DnnPlan {
    /// Launches it.
    pub(crate) fn run(&self, stream: &Stream) -> Result<()> {
        match self {
            Self::Cudnn(plan) => plan.run(stream),
            Self::Miopen(plan) => plan.run(stream),
        }
    }
}

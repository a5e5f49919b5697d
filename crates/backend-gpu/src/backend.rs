//! The backend: capabilities and compilation.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use warpforge_fusion::Recipe;
use warpforge_fusion::pipeline::Plan;
use warpforge_runtime::{
    Backend, Capabilities, Device, DeviceCollectives, ErrorKind, Executable, Precision, Program, Reference,
    ReferenceFallback, State, Target, Tier,
};
use warpforge_tensor::Tensor;

use crate::blas::Blas;
use crate::collectives::{CollectiveLibrary, collective_spec};
use crate::compile_error::CompileError;
use crate::dnn::DnnLibrary;
use crate::driver::{Driver, Gpu};
use crate::error::{GpuError, Result, runtime_error};
use crate::lower;
use crate::processes::{self, CompileOptions, DeviceContext, Devices};
use crate::ranks::RankDevice;
use crate::state::DeviceStore;
use crate::vendor::Vendor;

/// The GPUs of a vendor.
pub struct Gpus {
    vendor: Vendor,
    open: Mutex<HashMap<u32, Arc<Gpu>>>,
    blas: Mutex<HashMap<u32, Option<Blas>>>,
    dnn: Mutex<HashMap<u32, Option<DnnLibrary>>>,
}

/// The library of a device: opened on first use, and `None` from then on where that failed.
fn opened_once<L: Clone>(
    kept: &Mutex<HashMap<u32, Option<L>>>,
    number: u32,
    open: impl FnOnce() -> Result<L>,
) -> Option<L> {
    let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
    kept.entry(number).or_insert_with(|| open().ok()).clone()
}

impl Gpus {
    /// The backend of a vendor's GPUs. Libraries are opened on first use.
    #[must_use]
    pub fn new(vendor: Vendor) -> Self {
        Self { vendor, open: Mutex::default(), blas: Mutex::default(), dnn: Mutex::default() }
    }

    fn number(&self, device: Device) -> Option<u32> {
        match (self.vendor, device) {
            (Vendor::Cuda, Device::Cuda(number)) | (Vendor::Hip, Device::Hip(number)) => Some(number),
            _ => None,
        }
    }

    /// The BLAS of a device; without it generated kernels compute all GEMMs.
    fn blas(&self, gpu: &Arc<Gpu>, number: u32) -> Option<Blas> {
        opened_once(&self.blas, number, || {
            Blas::of(gpu).inspect_err(|error| tracing::warn!(%error, "generated kernels compute all GEMMs"))
        })
    }

    /// The DNN library of a device; without it generated kernels compute convolutions and attention.
    fn dnn(&self, gpu: &Arc<Gpu>, number: u32) -> Option<DnnLibrary> {
        opened_once(&self.dnn, number, || {
            DnnLibrary::of(gpu).inspect_err(|error| {
                tracing::warn!(%error, "generated kernels compute all convolutions and attention");
            })
        })
    }

    fn gpu(&self, number: u32) -> Result<Arc<Gpu>> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(gpu) = open.get(&number) {
            return Ok(Arc::clone(gpu));
        }
        let gpu = Gpu::open(Driver::of(self.vendor)?, number)?;
        open.insert(number, Arc::clone(&gpu));
        Ok(gpu)
    }
}

impl Devices for Gpus {
    fn count(&self) -> u32 {
        Driver::of(self.vendor).map_or(0, Driver::count)
    }

    fn context(&self, number: u32) -> Result<DeviceContext> {
        let gpu = self.gpu(number)?;
        let (blas, dnn) = (self.blas(&gpu, number), self.dnn(&gpu, number));
        Ok(DeviceContext { gpu, blas, dnn })
    }

    fn collectives(&self) -> Result<Arc<CollectiveLibrary>> {
        CollectiveLibrary::of(self.vendor)
    }
}

impl Backend for Gpus {
    fn name(&self) -> &'static str {
        self.vendor.name()
    }

    fn serves(&self, device: Device) -> bool {
        self.number(device).is_some()
    }

    fn devices(&self) -> Vec<Device> {
        let device = |number| match self.vendor {
            Vendor::Cuda => Device::Cuda(number),
            Vendor::Hip => Device::Hip(number),
        };
        (0..self.count()).map(device).collect()
    }

    fn why_not(&self, device: Device) -> Option<String> {
        let number = self.number(device)?;
        match Driver::of(self.vendor) {
            Err(error) => Some(error.to_string()),
            Ok(driver) if number >= driver.count() => {
                Some(GpuError::NoSuchDevice { number, count: driver.count() }.to_string())
            }
            Ok(_) => None,
        }
    }

    fn capabilities(&self, _: Device) -> Capabilities {
        let recipes = Recipe::ALL.map(Precision::Quantized);
        let precisions = Precision::ALL.into_iter().chain(recipes).collect();
        Capabilities { tiers: Tier::ALL.to_vec(), precisions, observes_values: true }
    }

    fn plan(&self, program: &Program, target: &Target) -> warpforge_runtime::Result<Plan> {
        lower::plan(program, self.vendor, target)
            .map_err(|error| ErrorKind::import(self.name(), &error).into())
    }

    fn state(&self, values: &[Tensor], target: &Target) -> warpforge_runtime::Result<State> {
        let state = || {
            let number = self.number(target.device);
            let number =
                number.ok_or_else(|| GpuError::Other(format!("{} is no such device", target.device)))?;
            DeviceStore::state(&self.gpu(number)?, values)
        };
        state().map_err(|error| runtime_error(self.vendor, &error))
    }

    fn device_engine(&self) -> Option<&'static str> {
        Some(collective_spec(self.vendor).what)
    }

    fn device_collectives(&self, device: Device) -> warpforge_runtime::Result<Box<dyn DeviceCollectives>> {
        let made = || -> Result<RankDevice> {
            let number = self.number(device);
            let number = number.ok_or_else(|| GpuError::Other(format!("{device} is no such device")))?;
            // What cannot be used at all is said first.
            let gpu = self.gpu(number)?;
            Ok(RankDevice { gpu, library: CollectiveLibrary::of(self.vendor)? })
        };
        match made() {
            Ok(device) => Ok(Box::new(device)),
            Err(error) => Err(runtime_error(self.vendor, &error)),
        }
    }

    fn compile(&self, program: &Program, target: &Target) -> warpforge_runtime::Result<Box<dyn Executable>> {
        let device = |error: GpuError| runtime_error(self.vendor, &error);
        let number = self.number(target.device);
        let number = number
            .ok_or_else(|| {
                GpuError::Other(format!("{} is not a device of {}", target.device, self.vendor.name()))
            })
            .map_err(device)?;
        // An unusable device is reported before any other error.
        self.gpu(number).map_err(device)?;
        let &Target { tier, precision, gradient_checkpointing, .. } = target;
        let machine = target.machine.as_ref();
        let options = CompileOptions { program, tier, precision, machine, gradient_checkpointing };
        match processes::compile(self, number, options) {
            Ok(compiled) => {
                if !compiled.fallbacks().is_empty() {
                    // Operations that the reference does not support are reported now, not in the middle of a run.
                    Reference.compile(program, target)?;
                }
                Ok(Box::new(compiled))
            }
            // The reference has no part in what devices of ranks do together.
            Err(CompileError::Unsupported(reason))
                if target.precision == Precision::Model && program.calls().reduction().is_none() =>
            {
                Ok(Box::new(ReferenceFallback::new(program, target, reason)?))
            }
            Err(CompileError::Unsupported(reason)) => {
                Err(ErrorKind::Unsupported { backend: self.name(), operations: vec![reason] }.into())
            }
            Err(CompileError::Import(error)) => Err(ErrorKind::import(self.name(), &error).into()),
            Err(CompileError::Refused(_)) => {
                Err(device(GpuError::Other("a library refused a query that was not made".to_owned())))
            }
            Err(CompileError::Gpu(error)) => Err(device(error)),
        }
    }
}

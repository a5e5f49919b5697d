//! The backend: what the engine can do, and how it compiles.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use warpforge_codegen::Products as Rounding;
use warpforge_runtime::{
    Backend, Capabilities, Device, ErrorKind, Executable, Precision, Program, Reference, ReferenceFallback,
    Target, Tier,
};

use crate::collectives::Collectives;
use crate::compile::Failure;
use crate::driver::{Driver, Gpu};
use crate::error::{GpuError, Result};
use crate::library::Vendor;
use crate::lower::rounding;
use crate::networks::Networks;
use crate::processes::{self, Devices, Site, Wanted};
use crate::products::Library;

/// The GPUs of a vendor.
pub struct Gpus {
    vendor: Vendor,
    open: Mutex<HashMap<u32, Arc<Gpu>>>,
    products: Mutex<HashMap<u32, Option<Library>>>,
    networks: Mutex<HashMap<u32, Option<Networks>>>,
}

impl Gpus {
    /// The backend of a vendor's GPUs. Nothing is opened before it is asked.
    #[must_use]
    pub fn new(vendor: Vendor) -> Self {
        Self { vendor, open: Mutex::default(), products: Mutex::default(), networks: Mutex::default() }
    }

    fn number(&self, device: Device) -> Option<u32> {
        match (self.vendor, device) {
            (Vendor::Cuda, Device::Cuda(number)) | (Vendor::Hip, Device::Hip(number)) => Some(number),
            _ => None,
        }
    }

    /// The vendor's products on a device; without them generated kernels do their work.
    fn products(&self, gpu: &Arc<Gpu>, number: u32) -> Option<Library> {
        let mut kept = self.products.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = kept.get(&number) {
            return known.clone();
        }
        let opened = match Library::of(gpu) {
            Ok(products) => Some(products),
            Err(error) => {
                tracing::warn!(%error, "generated kernels compute all products");
                None
            }
        };
        kept.insert(number, opened.clone());
        opened
    }

    /// The vendor's convolutions on a device, and its attention; without them generated kernels do their work.
    fn networks(&self, gpu: &Arc<Gpu>, number: u32) -> Option<Networks> {
        let mut kept = self.networks.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = kept.get(&number) {
            return known.clone();
        }
        let opened = match Networks::of(gpu) {
            Ok(networks) => Some(networks),
            Err(error) => {
                tracing::warn!(%error, "generated kernels compute all convolutions and attention");
                None
            }
        };
        kept.insert(number, opened.clone());
        opened
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

    fn site(&self, number: u32) -> Result<Site> {
        let gpu = self.gpu(number)?;
        let (products, networks) = (self.products(&gpu, number), self.networks(&gpu, number));
        Ok(Site { gpu, products, networks })
    }

    fn collectives(&self) -> Result<Arc<Collectives>> {
        Collectives::of(self.vendor)
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
        let precisions = Precision::ALL.to_vec();
        Capabilities { tiers: Tier::ALL.to_vec(), precisions, observes_values: true }
    }

    fn compile(&self, program: &Program, target: &Target) -> warpforge_runtime::Result<Box<dyn Executable>> {
        let device = |error: GpuError| failed(self.vendor, &error);
        let number = self.number(target.device);
        let number = number
            .ok_or_else(|| {
                GpuError::Other(format!("{} is not a device of {}", target.device, self.vendor.name()))
            })
            .map_err(device)?;
        // A device that cannot be used is named before anything else.
        self.gpu(number).map_err(device)?;
        let rounding = rounding(target.precision);
        let wanted = Wanted { program, tier: target.tier, rounding };
        match processes::compile(self, number, wanted) {
            Ok(compiled) => {
                if !compiled.fallbacks().is_empty() {
                    // What the reference cannot evaluate either is named now, not in the middle of a run.
                    Reference.compile(program, target)?;
                }
                Ok(Box::new(compiled))
            }
            Err(Failure::Unsupported(reason)) if rounding == Rounding::Model => {
                Ok(Box::new(ReferenceFallback::new(program, target, reason)?))
            }
            Err(Failure::Unsupported(reason)) => {
                Err(ErrorKind::Unsupported { backend: self.name(), operations: vec![reason] }.into())
            }
            Err(Failure::Refused(_)) => {
                Err(device(GpuError::Other("a library refuses what it was not asked".to_owned())))
            }
            Err(Failure::Gpu(error)) => Err(device(error)),
        }
    }
}

/// An error of the device as one of the runtime.
pub(crate) fn failed(vendor: Vendor, error: &GpuError) -> warpforge_runtime::Error {
    ErrorKind::Failed { backend: vendor.name(), reason: error.to_string() }.into()
}

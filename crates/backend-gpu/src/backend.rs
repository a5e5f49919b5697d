//! The backend: what the engine can do, and how it compiles.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use warpforge_codegen::Products as Rounding;
use warpforge_fusion::graph::import;
use warpforge_fusion::simplify::simplify;
use warpforge_runtime::{
    Backend, Capabilities, Device, ErrorKind, Executable, OnReference, Precision, Program, Reference, Target,
    Tier,
};

use crate::compile::{Failure, Request, make};
use crate::cuda::networks::Networks;
use crate::driver::{Driver, Gpu};
use crate::error::{GpuError, Result};
use crate::executable::Compiled;
use crate::library::Vendor;
use crate::lower::rounding;
use crate::products::Products;

/// The GPUs of a vendor.
pub struct Gpus {
    vendor: Vendor,
    open: Mutex<HashMap<u32, Arc<Gpu>>>,
    products: Mutex<HashMap<u32, Option<Arc<Products>>>>,
    networks: Mutex<HashMap<u32, Option<Arc<Networks>>>>,
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
    fn products(&self, gpu: &Arc<Gpu>, number: u32) -> Option<Arc<Products>> {
        let mut kept = self.products.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = kept.get(&number) {
            return known.clone();
        }
        let opened = match Products::of(gpu) {
            Ok(products) => Some(Arc::new(products)),
            Err(error) => {
                tracing::warn!(%error, "generated kernels compute all products");
                None
            }
        };
        kept.insert(number, opened.clone());
        opened
    }

    /// cuDNN on a device, where the vendor has it; without it generated kernels do its work.
    fn networks(&self, gpu: &Arc<Gpu>, number: u32) -> Option<Arc<Networks>> {
        if self.vendor != Vendor::Cuda {
            return None;
        }
        let mut kept = self.networks.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = kept.get(&number) {
            return known.clone();
        }
        let opened = match Networks::of(gpu) {
            Ok(networks) => Some(Arc::new(networks)),
            Err(error) => {
                tracing::warn!(%error, "generated kernels compute all convolutions and attention");
                None
            }
        };
        kept.insert(number, opened.clone());
        opened
    }

    fn gpu(&self, device: Device) -> Result<Arc<Gpu>> {
        let number = self
            .number(device)
            .ok_or_else(|| GpuError::Other(format!("{device} is not a device of {}", self.vendor.name())))?;
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(gpu) = open.get(&number) {
            return Ok(Arc::clone(gpu));
        }
        let gpu = Gpu::open(Driver::of(self.vendor)?, number)?;
        open.insert(number, Arc::clone(&gpu));
        Ok(gpu)
    }
}

impl Backend for Gpus {
    fn name(&self) -> &'static str {
        self.vendor.name()
    }

    fn devices(&self) -> Vec<Device> {
        let count = Driver::of(self.vendor).map_or(0, Driver::count);
        let device = |number| match self.vendor {
            Vendor::Cuda => Device::Cuda(number),
            Vendor::Hip => Device::Hip(number),
        };
        (0..count).map(device).collect()
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
        let precisions = ["tf32", "bf16", "f16"].map(str::to_owned).to_vec();
        Capabilities { tiers: Tier::ALL.to_vec(), precisions, observes_values: false }
    }

    fn compile(&self, program: &Program, target: &Target) -> warpforge_runtime::Result<Box<dyn Executable>> {
        let device = |error: GpuError| failed(self.vendor, &error);
        let gpu = self.gpu(target.device).map_err(device)?;
        let entry = program.entry();
        let func = program.module().function(entry).ok_or_else(|| ErrorKind::Entry {
            entry: entry.to_owned(),
            reason: "there is no such function".to_owned(),
        })?;
        let rounding = match &target.precision {
            Precision::Named(name) => rounding(name).unwrap_or_default(),
            _ => Rounding::default(),
        };
        let made = import(func, &|at| program.weights().get(at).cloned())
            .map_err(|error| Failure::Unsupported(error.to_string()))
            .and_then(|graph| {
                let graph = simplify(&graph);
                let number = self.number(target.device).unwrap_or(0);
                let products = self.products(&gpu, number);
                let networks = self.networks(&gpu, number);
                make(&gpu, &Request { program, graph, tier: target.tier, rounding, products, networks })
            });
        match made {
            Ok(made) => {
                let compiled = Compiled::new(made);
                if !compiled.on_reference().is_empty() {
                    // What the reference cannot evaluate either is named now, not in the middle of a run.
                    Reference.compile(program, target)?;
                }
                Ok(Box::new(compiled))
            }
            Err(Failure::Unsupported(reason)) if rounding == Rounding::Model => {
                Ok(Box::new(OnReference::new(program, target, reason)?))
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

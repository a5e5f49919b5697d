//! Libraries that do nothing but remember what they were asked: the host's side without a GPU.

// The fakes have the signatures of foreign functions.
#![allow(unsafe_code)]

pub(crate) mod collectives;
mod compiler;
mod cudnn;
mod driver;
mod miopen;
mod products;
mod rocblas;

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use crate::collectives::Collectives;
use crate::compiler::Compiler;
use crate::cuda::networks as cuda_networks;
use crate::driver::{Driver, Gpu, Handle};
use crate::error::Result;
use crate::hip::networks as hip_networks;
use crate::library::Vendor;
use crate::networks::Networks;
use crate::processes::{Devices, Site};
use crate::products::rocblas::Rocblas;
use crate::products::{Library, Products};

/// What the fakes answer otherwise than that all is well.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Trouble {
    /// The version of the driver.
    pub(crate) version: Option<i32>,
    /// What starting a kernel answers.
    pub(crate) launch: i32,
    /// What waiting for the work of a stream answers.
    pub(crate) wait: i32,
    /// What the compiler of kernels answers.
    pub(crate) compile: i32,
    /// How many devices there are besides the first.
    pub(crate) more_devices: i32,
    /// What hipBLASLt answers when it is asked for algorithms.
    pub(crate) products: i32,
    /// What MIOpen answers when it is to compile a fusion.
    pub(crate) fusion: i32,
    /// The number of an epilogue that products do not have.
    pub(crate) epilogue: Option<i32>,
    /// The number of one with which they take long.
    pub(crate) slow: Option<i32>,
}

thread_local! {
    static TROUBLE: Cell<Trouble> = const {
        Cell::new(Trouble {
            version: None,
            launch: 0,
            wait: 0,
            compile: 0,
            more_devices: 0,
            products: 0,
            fusion: 0,
            epilogue: None,
            slow: None,
        })
    };
    /// The epilogue that was asked for last.
    static EPILOGUE: Cell<Option<i32>> = const { Cell::new(None) };
    static STREAMS: Cell<usize> = const { Cell::new(0) };
    static CALLS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

fn note(call: impl Into<String>) -> i32 {
    CALLS.with_borrow_mut(|calls| calls.push(call.into()));
    0
}

/// What the fakes answer to this thread from now on.
pub(crate) fn trouble(trouble: Trouble) {
    TROUBLE.set(trouble);
}

/// What this thread asked of the fakes since the last look.
pub(crate) fn calls() -> Vec<String> {
    CALLS.take()
}

/// A GPU of a vendor that is none: memory is the host's, kernels do nothing.
pub(crate) fn gpu(vendor: Vendor) -> Result<Arc<Gpu>> {
    gpu_at(vendor, 0)
}

/// The GPU of that number; there is one, unless more are asked for.
pub(crate) fn gpu_at(vendor: Vendor, number: u32) -> Result<Arc<Gpu>> {
    STREAMS.set(0);
    let gpu = Gpu::open(&Driver::start(vendor, driver::functions())?, number)?;
    gpu.use_compiler(Compiler::new(vendor, compiler::functions(), None)?);
    Ok(gpu)
}

/// cuDNN or MIOpen that is none.
pub(crate) fn networks(gpu: &Arc<Gpu>) -> Result<Networks> {
    Ok(match gpu.driver.vendor {
        Vendor::Cuda => Networks::Cudnn(Arc::new(cuda_networks::Networks::with(gpu, cudnn::functions())?)),
        Vendor::Hip => Networks::Miopen(Arc::new(hip_networks::Networks::with(gpu, miopen::functions())?)),
    })
}

/// cuBLASLt or hipBLASLt that is none.
pub(crate) fn products(gpu: &Arc<Gpu>) -> Result<Library> {
    Ok(Library { first: Some(Arc::new(Products::with(gpu, products::functions())?)), second: None })
}

/// rocBLAS that is none, alone or behind hipBLASLt.
pub(crate) fn rocblas(gpu: &Arc<Gpu>, behind: bool) -> Result<Library> {
    let first = if behind { products(gpu)?.first } else { None };
    Ok(Library { first, second: Some(Arc::new(Rocblas::with(gpu, rocblas::functions())?)) })
}

fn handle(number: usize) -> Handle {
    number as Handle
}

/// Writes a handle for something that was made.
unsafe extern "C" fn made(to: *mut Handle) -> i32 {
    // SAFETY: callers give the address of a variable.
    unsafe { *to = handle(1) };
    0
}

/// GPUs of a vendor that are none, with its libraries.
pub(crate) struct Fakes {
    pub(crate) vendor: Vendor,
    pub(crate) count: u32,
    /// The library of collectives.
    pub(crate) collectives: Result<Arc<Collectives>>,
}

impl Fakes {
    /// So many of them, with a library of collectives.
    pub(crate) fn new(vendor: Vendor, count: u32) -> Self {
        Self { vendor, count, collectives: Collectives::with(collectives::functions()) }
    }
}

impl Devices for Fakes {
    fn count(&self) -> u32 {
        self.count
    }

    fn site(&self, number: u32) -> Result<Site> {
        trouble(Trouble { more_devices: i32::try_from(self.count).unwrap_or(1) - 1, ..TROUBLE.get() });
        let gpu = gpu_at(self.vendor, number)?;
        let products = Some(products(&gpu)?);
        Ok(Site { gpu, products, networks: None })
    }

    fn collectives(&self) -> Result<Arc<Collectives>> {
        self.collectives.clone()
    }
}

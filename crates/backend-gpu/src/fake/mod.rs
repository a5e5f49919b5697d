//! Fake libraries that log their calls, to test the host side without a GPU.

// The fakes have the signatures of foreign functions.
#![allow(unsafe_code)]

mod blas;
pub(crate) mod collectives;
mod compiler;
mod cudnn;
mod cusolver;
mod driver;
mod miopen;
mod rocblas;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use warpforge_codegen::{Dialect, Options};
use warpforge_fusion::pipeline::Imported;
use warpforge_runtime::{Precision, Program, Tier};

use crate::blas::rocblas::Rocblas;
use crate::blas::{Blas, BlasLt};
use crate::collectives::CollectiveLibrary;
use crate::compile::CompileRequest;
use crate::dnn::DnnLibrary;
use crate::dnn::cudnn as cudnn_api;
use crate::dnn::miopen as miopen_api;
use crate::driver::{Compiler, Driver, Gpu, Handle, Stream};
use crate::error::Result;
use crate::lower::{GpuDevice, load};
use crate::process_group::ProcessGroup;
use crate::processes::{DeviceContext, Devices};
use crate::solver::Cusolver;
use crate::vendor::Vendor;

/// Injected failures.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Trouble {
    /// The version of the driver.
    pub(crate) version: Option<i32>,
    /// Status of a kernel launch.
    pub(crate) launch: i32,
    /// Status of a stream synchronisation.
    pub(crate) wait: i32,
    /// Status of a compilation.
    pub(crate) compile: i32,
    /// Devices besides the first.
    pub(crate) more_devices: i32,
    /// Status of the hipBLASLt heuristic.
    pub(crate) blas: i32,
    /// Status of a MIOpen fusion compilation.
    pub(crate) fusion: i32,
    /// An unsupported epilogue.
    pub(crate) epilogue: Option<i32>,
    /// A slow epilogue.
    pub(crate) slow: Option<i32>,
    /// Status of a solver of dense systems.
    pub(crate) solver: i32,
    /// The outcome that such a solver leaves on the device.
    pub(crate) solver_info: i32,
    /// Steps of a refinement; negative when it does not converge.
    pub(crate) refinement: i32,
}

thread_local! {
    static TROUBLE: Cell<Trouble> = const {
        Cell::new(Trouble {
            version: None,
            launch: 0,
            wait: 0,
            compile: 0,
            more_devices: 0,
            blas: 0,
            fusion: 0,
            epilogue: None,
            slow: None,
            solver: 0,
            solver_info: 0,
            refinement: 0,
        })
    };
    /// The last epilogue.
    static EPILOGUE: Cell<Option<i32>> = const { Cell::new(None) };
    static STREAMS: Cell<usize> = const { Cell::new(0) };
    static EVENTS: Cell<usize> = const { Cell::new(0) };
    static SHOWS_EVENTS: Cell<bool> = const { Cell::new(false) };
    static CALLS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

fn note(call: impl Into<String>) -> i32 {
    CALLS.with_borrow_mut(|calls| calls.push(call.into()));
    0
}

fn shows_events() -> bool {
    SHOWS_EVENTS.get()
}

/// Logs a call about an event, where that is wanted.
fn note_event(call: impl Into<String>) -> i32 {
    if shows_events() { note(call) } else { 0 }
}

/// Logs the events of this thread by their numbers, which begin at 1 again.
pub(crate) fn show_events() {
    SHOWS_EVENTS.set(true);
    EVENTS.set(0);
}

/// Injects failures for this thread.
pub(crate) fn trouble(trouble: Trouble) {
    TROUBLE.set(trouble);
}

/// The calls of this thread since the last query.
pub(crate) fn calls() -> Vec<String> {
    CALLS.take()
}

/// A fake GPU of a vendor.
pub(crate) fn gpu(vendor: Vendor) -> Result<Arc<Gpu>> {
    gpu_at(vendor, 0)
}

/// A fake GPU by index.
pub(crate) fn gpu_at(vendor: Vendor, number: u32) -> Result<Arc<Gpu>> {
    STREAMS.set(0);
    let gpu = Gpu::open(&Driver::start(vendor, driver::functions())?, number)?;
    gpu.use_compiler(Compiler::new(vendor, compiler::functions(), None)?);
    Ok(gpu)
}

/// Fake cuDNN or MIOpen.
pub(crate) fn dnn(gpu: &Arc<Gpu>) -> Result<DnnLibrary> {
    Ok(match gpu.driver.vendor {
        Vendor::Cuda => DnnLibrary::Cudnn(Arc::new(cudnn_api::Cudnn::with(gpu, cudnn::functions())?)),
        Vendor::Hip => DnnLibrary::Miopen(Arc::new(miopen_api::Miopen::with(gpu, miopen::functions())?)),
    })
}

/// Fake cuBLASLt or hipBLASLt.
pub(crate) fn blas(gpu: &Arc<Gpu>) -> Result<Blas> {
    Ok(Blas { blas_lt: Some(Arc::new(BlasLt::with(gpu, blas::functions())?)), rocblas: None })
}

/// Fake cuSOLVER.
pub(crate) fn cusolver(gpu: &Arc<Gpu>, stream: &Stream) -> Result<Cusolver> {
    Cusolver::with(gpu, stream, cusolver::functions())
}

/// Fake rocBLAS, alone or with hipBLASLt.
pub(crate) fn rocblas(gpu: &Arc<Gpu>, behind: bool) -> Result<Blas> {
    let blas_lt = if behind { blas(gpu)?.blas_lt } else { None };
    Ok(Blas { blas_lt, rocblas: Some(Arc::new(Rocblas::with(gpu, rocblas::functions())?)) })
}

fn handle(number: usize) -> Handle {
    number as Handle
}

/// Writes a new handle.
unsafe extern "C" fn made(to: *mut Handle) -> i32 {
    // SAFETY: callers give the address of a variable.
    unsafe { *to = handle(1) };
    0
}

/// Fake GPUs of a vendor with its libraries.
pub(crate) struct Fakes {
    pub(crate) vendor: Vendor,
    pub(crate) count: u32,
    /// The collective library.
    pub(crate) collectives: Result<Arc<CollectiveLibrary>>,
    /// Those that are open.
    pub(crate) open: Mutex<HashMap<u32, DeviceContext>>,
}

impl Fakes {
    /// Fake GPUs with a collective library.
    pub(crate) fn new(vendor: Vendor, count: u32) -> Self {
        let collectives = CollectiveLibrary::with(collectives::functions());
        Self { vendor, count, collectives, open: Mutex::default() }
    }
}

impl Devices for Fakes {
    fn count(&self) -> u32 {
        self.count
    }

    fn context(&self, number: u32) -> Result<DeviceContext> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(context) = open.get(&number) {
            return Ok(context.clone());
        }
        trouble(Trouble { more_devices: i32::try_from(self.count).unwrap_or(1) - 1, ..TROUBLE.get() });
        let gpu = gpu_at(self.vendor, number)?;
        let blas = Some(blas(&gpu)?);
        let context = DeviceContext { gpu, blas, dnn: None };
        open.insert(number, context.clone());
        Ok(context)
    }

    fn collectives(&self) -> Result<Arc<CollectiveLibrary>> {
        self.collectives.clone()
    }
}

/// The graph of a program on a fake GPU, as the pipeline imports it.
pub(crate) fn imported(program: &Program, tier: Tier) -> Imported {
    let options = Options::new(Dialect::Cuda, "sm_90");
    load(program, &GpuDevice::new(tier, Precision::Model, &options, true)).unwrap()
}

/// The compilation of a program without libraries and in the model's precision.
pub(crate) fn request(program: &Program, tier: Tier) -> CompileRequest<'_> {
    CompileRequest {
        program,
        imported: imported(program, tier),
        tier,
        precision: Precision::Model,
        blas: None,
        dnn: None,
        group: ProcessGroup::default(),
        grids: Vec::new(),
    }
}

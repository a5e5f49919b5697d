//! Matrix products by the vendor's library: cuBLASLt or hipBLASLt, whose interfaces are the same but for names and numbers;
//! where hipBLASLt is not there or refuses, rocBLAS.

// The library is foreign.
#![allow(unsafe_code)]

mod library;
mod plan;
pub(crate) mod rocblas;

use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

pub(crate) use library::{Library, Runs};
pub(crate) use plan::{Activation, Matrix, Places, Plan, Product, Side, Sums};

use crate::driver::{Address, Gpu, Handle, Stream};
use crate::error::{GpuError, Result};
use crate::library::{Vendor, functions};
use crate::tuning::least_time;
use crate::{cuda, hip};

functions! {
    /// cuBLASLt and hipBLASLt.
    Functions {
        create(*mut Handle) = "cublasLtCreate", "hipblasLtCreate";
        description_create(*mut Handle, i32, i32) = "cublasLtMatmulDescCreate", "hipblasLtMatmulDescCreate";
        description_destroy(Handle) = "cublasLtMatmulDescDestroy", "hipblasLtMatmulDescDestroy";
        description_set(Handle, i32, *const c_void, usize)
            = "cublasLtMatmulDescSetAttribute", "hipblasLtMatmulDescSetAttribute";
        layout_create(*mut Handle, i32, u64, u64, i64)
            = "cublasLtMatrixLayoutCreate", "hipblasLtMatrixLayoutCreate";
        layout_destroy(Handle) = "cublasLtMatrixLayoutDestroy", "hipblasLtMatrixLayoutDestroy";
        layout_set(Handle, i32, *const c_void, usize)
            = "cublasLtMatrixLayoutSetAttribute", "hipblasLtMatrixLayoutSetAttribute";
        preference_create(*mut Handle) = "cublasLtMatmulPreferenceCreate", "hipblasLtMatmulPreferenceCreate";
        preference_destroy(Handle) = "cublasLtMatmulPreferenceDestroy", "hipblasLtMatmulPreferenceDestroy";
        preference_set(Handle, i32, *const c_void, usize)
            = "cublasLtMatmulPreferenceSetAttribute", "hipblasLtMatmulPreferenceSetAttribute";
        heuristic(Handle, Handle, Handle, Handle, Handle, Handle, Handle, i32, *mut u8, *mut i32)
            = "cublasLtMatmulAlgoGetHeuristic", "hipblasLtMatmulAlgoGetHeuristic";
        multiply(
            Handle, Handle, *const c_void, u64, Handle, u64, Handle, *const c_void, u64, Handle, u64, Handle, *const u8,
            u64, usize, Handle
        ) = "cublasLtMatmul", "hipblasLtMatmul";
    }
}

/// The numbers of a vendor's interface.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Numbers {
    /// How sums are computed: f32, f32 with tf32 operands, f64, i32.
    pub(crate) sum_f32: i32,
    pub(crate) sum_tf32: i32,
    pub(crate) sum_f64: i32,
    pub(crate) sum_i32: i32,
    /// Operands as they are and transposed.
    pub(crate) plain: i32,
    pub(crate) transposed: i32,
    /// Attributes of a product.
    pub(crate) transpose_a: i32,
    pub(crate) transpose_b: i32,
    pub(crate) epilogue: i32,
    pub(crate) bias_address: i32,
    pub(crate) bias_type: i32,
    pub(crate) beside_address: i32,
    pub(crate) beside_stride: i32,
    /// Attributes of a layout.
    pub(crate) batch_count: i32,
    pub(crate) batch_stride: i32,
    /// Attributes of a preference; the alignments of A to D follow each other, where there are such.
    pub(crate) most_workspace: i32,
    pub(crate) alignments: Option<i32>,
    /// Bytes of an algorithm in an answer, and of a whole answer.
    pub(crate) algorithm_bytes: usize,
    pub(crate) answer_bytes: usize,
}

/// Memory that products may use while they run.
pub(crate) const WORKSPACE: usize = 64 << 20;

/// A vendor's library of products, ready for a device.
pub(crate) struct Products {
    gpu: Arc<Gpu>,
    functions: Functions,
    numbers: Numbers,
    handle: Handle,
    /// The best algorithm of each product measured so far, and what it took.
    known: Mutex<HashMap<Product, (Vec<u8>, Duration)>>,
}

// SAFETY: the library's handle may be used from any thread.
unsafe impl Send for Products {}
// SAFETY: as above.
unsafe impl Sync for Products {}

impl Products {
    /// The library for a device.
    ///
    /// # Errors
    ///
    /// When there is none on this machine.
    pub(crate) fn of(gpu: &Arc<Gpu>) -> Result<Self> {
        static CUDA: OnceLock<Result<Functions>> = OnceLock::new();
        static HIP: OnceLock<Result<Functions>> = OnceLock::new();
        let vendor = gpu.driver.vendor;
        let (kept, wanted) = match vendor {
            Vendor::Cuda => (&CUDA, &cuda::PRODUCTS),
            Vendor::Hip => (&HIP, &hip::PRODUCTS),
        };
        let functions = kept.get_or_init(|| Functions::open(wanted));
        Self::with(gpu, functions.clone()?)
    }

    /// The library by its functions.
    pub(crate) fn with(gpu: &Arc<Gpu>, functions: Functions) -> Result<Self> {
        gpu.enter()?;
        let mut handle = std::ptr::null_mut();
        // SAFETY: the address is that of a variable.
        check(unsafe { (functions.create)(&raw mut handle) }, "create a handle for products")?;
        let numbers = match gpu.driver.vendor {
            Vendor::Cuda => cuda::NUMBERS,
            Vendor::Hip => hip::NUMBERS,
        };
        Ok(Self { gpu: Arc::clone(gpu), functions, numbers, handle, known: Mutex::default() })
    }
}

impl Products {
    /// Whose library it is.
    pub(crate) fn vendor(&self) -> Vendor {
        self.gpu.driver.vendor
    }

    /// How long a copy within the device takes.
    pub(crate) fn time_of_copy(
        &self,
        to: Address,
        from: Address,
        bytes: usize,
        stream: &Stream,
    ) -> Result<Duration> {
        least_time(&self.gpu, stream, || stream.copy(to, from, bytes))
    }
}

/// Turns a status into a result.
fn check(code: i32, function: &'static str) -> Result<()> {
    if code == 0 {
        return Ok(());
    }
    let text = match code {
        1 => "not initialised",
        3 => "out of memory",
        7 => "a value does not fit",
        8 => "not for this architecture",
        13 => "a kernel failed",
        14 => "internal error",
        15 => "not supported",
        _ => "the library of products says no more",
    };
    Err(GpuError::Call { function, code, text: text.to_owned() })
}

//! rocBLAS, for GEMMs without hipBLASLt.

use std::ffi::c_void;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use warpforge_tensor::{ElementType, FloatType};

use super::descriptor::{Activation, ComputeType, Gemm, GemmBuffers, Matrix, RunGemm, WORKSPACE};
use crate::driver::{Address, Gpu, Handle, Stream};
use crate::error::{GpuError, Result};
use crate::hip;
use crate::library::functions;

functions! {
    /// rocBLAS.
    Functions {
        create(*mut Handle) = "rocblas_create_handle";
        set_stream(Handle, Handle) = "rocblas_set_stream";
        set_workspace(Handle, Address, usize) = "rocblas_set_workspace";
        multiply(
            Handle, i32, i32, i32, i32, i32, *const c_void, Address, i32, i32, i64, Address, i32, i32, i64,
            *const c_void, Address, i32, i32, i64, Address, i32, i32, i64, i32, i32, i32, i32, u32
        ) = "rocblas_gemm_strided_batched_ex";
    }
}

/// Transpose operations.
const PLAIN: i32 = 111;
const TRANSPOSED: i32 = 112;

/// The library's default algorithm.
const STANDARD: i32 = 0;

/// The result is correct but performance is degraded.
const DEGRADED: i32 = 7;

/// rocBLAS on a device.
pub(crate) struct Rocblas {
    functions: Functions,
    /// Not thread-safe.
    handle: Mutex<Handle>,
}

// SAFETY: the handle is behind a lock.
unsafe impl Send for Rocblas {}
// SAFETY: as above.
unsafe impl Sync for Rocblas {}

impl Rocblas {
    /// Opens the library for a device.
    ///
    /// # Errors
    ///
    /// When it is not installed.
    pub(crate) fn of(gpu: &Arc<Gpu>) -> Result<Self> {
        static FUNCTIONS: OnceLock<Result<Functions>> = OnceLock::new();
        Self::with(gpu, FUNCTIONS.get_or_init(|| Functions::open(&hip::ROCBLAS)).clone()?)
    }

    /// Wraps loaded functions.
    pub(crate) fn with(gpu: &Arc<Gpu>, functions: Functions) -> Result<Self> {
        gpu.enter()?;
        let mut handle = std::ptr::null_mut();
        // SAFETY: the address is that of a variable.
        check(unsafe { (functions.create)(&raw mut handle) }, "create a handle of rocBLAS")?;
        Ok(Self { functions, handle: Mutex::new(handle) })
    }

    /// Plans a GEMM; it is run once.
    ///
    /// # Errors
    ///
    /// When it has an epilogue, which rocBLAS does not support.
    pub(super) fn plan(
        self: &Arc<Self>,
        gemm: &Gemm,
        buffers: GemmBuffers,
        stream: &Stream,
    ) -> Result<RocblasPlan> {
        if gemm.bias.is_some() || gemm.activation != Activation::None || gemm.bias_gradient.is_some() {
            return Err(GpuError::Other("rocBLAS does nothing to a result".to_owned()));
        }
        let plan = RocblasPlan { library: Arc::clone(self), gemm: *gemm, buffers };
        plan.run(stream)?;
        Ok(plan)
    }
}

/// A GEMM that is ready to run.
pub(crate) struct RocblasPlan {
    library: Arc<Rocblas>,
    gemm: Gemm,
    buffers: GemmBuffers,
}

impl RunGemm for RocblasPlan {
    fn run(&self, stream: &Stream) -> Result<()> {
        let Gemm { batch, m, n, k, lhs, rhs, out, compute_type, residual, .. } = self.gemm;
        // Scalars have the compute type.
        let (floats, doubles, integers) = ([1.0f32, 0.0], [1.0f64, 0.0], [1i32, 0]);
        let (compute, alpha, none): (i32, *const c_void, *const c_void) = match compute_type {
            ComputeType::F32 | ComputeType::Tf32 => {
                (data_type(ElementType::F32)?, (&raw const floats[0]).cast(), (&raw const floats[1]).cast())
            }
            ComputeType::F64 => {
                (data_type(ElementType::F64)?, (&raw const doubles[0]).cast(), (&raw const doubles[1]).cast())
            }
            ComputeType::I32 => (
                data_type(ElementType::I32)?,
                (&raw const integers[0]).cast(),
                (&raw const integers[1]).cast(),
            ),
        };
        let buffers = self.buffers;
        let (beta, added) = if residual { (alpha, buffers.residual) } else { (none, buffers.out) };
        let operation = |matrix: Matrix| if matrix.by_columns { TRANSPOSED } else { PLAIN };
        let (given, columns, between) = (data_type(out)?, size(n)?, size(m * n)?);
        let handle = self.library.handle.lock().unwrap_or_else(PoisonError::into_inner);
        let functions = &self.library.functions;
        // The library is column-major: the transposed result is rhs times lhs.
        // SAFETY: handle and stream are alive, layouts and buffers match; scalars are read before the call returns.
        unsafe {
            check((functions.set_stream)(*handle, stream.handle()), "give rocBLAS a stream")?;
            check(
                (functions.set_workspace)(*handle, buffers.workspace, WORKSPACE),
                "give rocBLAS a workspace",
            )?;
            let code = (functions.multiply)(
                *handle,
                operation(rhs),
                operation(lhs),
                columns,
                size(m)?,
                size(k)?,
                alpha,
                buffers.rhs,
                data_type(rhs.element)?,
                size(rhs.stride)?,
                size(rhs.batch_stride)?,
                buffers.lhs,
                data_type(lhs.element)?,
                size(lhs.stride)?,
                size(lhs.batch_stride)?,
                beta,
                added,
                given,
                columns,
                between,
                buffers.out,
                given,
                columns,
                between,
                size(batch)?,
                compute,
                STANDARD,
                0,
                0,
            );
            check(code, "multiply by rocBLAS")
        }
    }
}

fn size<T: TryFrom<usize>>(size: usize) -> Result<T> {
    T::try_from(size).map_err(|_| GpuError::Other("a matrix is too large".to_owned()))
}

/// The data-type code of an element type.
fn data_type(element: ElementType) -> Result<i32> {
    Ok(match element {
        ElementType::Float(FloatType::F16) => 150,
        ElementType::Float(FloatType::F32) => 151,
        ElementType::Float(FloatType::F64) => 152,
        ElementType::I8 => 160,
        ElementType::I32 => 162,
        ElementType::Float(FloatType::Bf16) => 168,
        _ => return Err(GpuError::Other(format!("rocBLAS has no GEMM of {element}"))),
    })
}

/// Texts of status codes.
const STATUSES: &[(i32, &str)] = &[
    (1, "not initialised"),
    (2, "not implemented"),
    (3, "an address does not fit"),
    (4, "a size does not fit"),
    (5, "out of memory"),
    (6, "internal error"),
    (11, "a value does not fit"),
];

/// Converts a status to a result.
fn check(code: i32, function: &'static str) -> Result<()> {
    let code = if code == DEGRADED { 0 } else { code };
    GpuError::of_status(code, function, STATUSES, "rocBLAS gives no further information")
}

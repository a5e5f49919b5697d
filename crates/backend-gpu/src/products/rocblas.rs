//! rocBLAS, for products that hipBLASLt is not there for or refuses.

use std::ffi::c_void;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use warpforge_tensor::{ElementType, FloatType};

use super::{Activation, Matrix, Places, Product, Runs, Sums, WORKSPACE};
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

/// Operands as they are and transposed.
const PLAIN: i32 = 111;
const TRANSPOSED: i32 = 112;

/// The library's own choice of an algorithm.
const STANDARD: i32 = 0;

/// The product is right and slower than it could be.
const DEGRADED: i32 = 7;

/// rocBLAS, ready for a device.
pub(crate) struct Rocblas {
    functions: Functions,
    /// One thread at a time may use it.
    handle: Mutex<Handle>,
}

// SAFETY: the handle is behind a lock.
unsafe impl Send for Rocblas {}
// SAFETY: as above.
unsafe impl Sync for Rocblas {}

impl Rocblas {
    /// The library for a device.
    ///
    /// # Errors
    ///
    /// When there is none on this machine.
    pub(crate) fn of(gpu: &Arc<Gpu>) -> Result<Self> {
        static FUNCTIONS: OnceLock<Result<Functions>> = OnceLock::new();
        Self::with(gpu, FUNCTIONS.get_or_init(|| Functions::open(&hip::OLDER_PRODUCTS)).clone()?)
    }

    /// The library by its functions.
    pub(crate) fn with(gpu: &Arc<Gpu>, functions: Functions) -> Result<Self> {
        gpu.enter()?;
        let mut handle = std::ptr::null_mut();
        // SAFETY: the address is that of a variable.
        check(unsafe { (functions.create)(&raw mut handle) }, "create a handle of rocBLAS")?;
        Ok(Self { functions, handle: Mutex::new(handle) })
    }

    /// A product that it can compute; it is run once.
    ///
    /// # Errors
    ///
    /// When it cannot: it has no bias and no activation.
    pub(super) fn plan(self: &Arc<Self>, product: &Product, places: Places, stream: &Stream) -> Result<Plan> {
        if product.bias.is_some() || product.activation != Activation::None || product.summed.is_some() {
            return Err(GpuError::Other("rocBLAS does nothing to a result".to_owned()));
        }
        let plan = Plan { library: Arc::clone(self), product: *product, places };
        plan.run(stream)?;
        Ok(plan)
    }
}

/// A product ready to run.
pub(crate) struct Plan {
    library: Arc<Rocblas>,
    product: Product,
    places: Places,
}

impl Runs for Plan {
    fn run(&self, stream: &Stream) -> Result<()> {
        let Product { batch, m, n, k, lhs, rhs, out, sums, residual, .. } = self.product;
        // Scalars are of the type of the sums.
        let (floats, doubles, integers) = ([1.0f32, 0.0], [1.0f64, 0.0], [1i32, 0]);
        let (compute, alpha, none): (i32, *const c_void, *const c_void) = match sums {
            Sums::F32 | Sums::Tf32 => {
                (number(ElementType::F32)?, (&raw const floats[0]).cast(), (&raw const floats[1]).cast())
            }
            Sums::F64 => {
                (number(ElementType::F64)?, (&raw const doubles[0]).cast(), (&raw const doubles[1]).cast())
            }
            Sums::I32 => {
                (number(ElementType::I32)?, (&raw const integers[0]).cast(), (&raw const integers[1]).cast())
            }
        };
        let places = self.places;
        let (beta, added) = if residual { (alpha, places.residual) } else { (none, places.out) };
        let operation = |matrix: Matrix| if matrix.by_columns { TRANSPOSED } else { PLAIN };
        let (given, columns, between) = (number(out)?, size(n)?, size(m * n)?);
        let handle = self.library.handle.lock().unwrap_or_else(PoisonError::into_inner);
        let functions = &self.library.functions;
        // The library counts by columns: the result transposed is the right operand transposed times the left one.
        // SAFETY: handle and stream live, descriptions and places belong together; scalars are read before the call
        // returns.
        unsafe {
            check((functions.set_stream)(*handle, stream.handle()), "give rocBLAS a stream")?;
            check(
                (functions.set_workspace)(*handle, places.workspace, WORKSPACE),
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
                places.rhs,
                number(rhs.element)?,
                size(rhs.stride)?,
                size(rhs.batch_stride)?,
                places.lhs,
                number(lhs.element)?,
                size(lhs.stride)?,
                size(lhs.batch_stride)?,
                beta,
                added,
                given,
                columns,
                between,
                places.out,
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

/// The number of a type of elements.
fn number(element: ElementType) -> Result<i32> {
    Ok(match element {
        ElementType::Float(FloatType::F16) => 150,
        ElementType::Float(FloatType::F32) => 151,
        ElementType::Float(FloatType::F64) => 152,
        ElementType::I8 => 160,
        ElementType::I32 => 162,
        ElementType::Float(FloatType::Bf16) => 168,
        _ => return Err(GpuError::Other(format!("rocBLAS has no products of {element}"))),
    })
}

/// Turns a status into a result.
fn check(code: i32, function: &'static str) -> Result<()> {
    if code == 0 || code == DEGRADED {
        return Ok(());
    }
    let text = match code {
        1 => "not initialised",
        2 => "not implemented",
        3 => "an address does not fit",
        4 => "a size does not fit",
        5 => "out of memory",
        6 => "internal error",
        11 => "a value does not fit",
        _ => "rocBLAS says no more",
    };
    Err(GpuError::Call { function, code, text: text.to_owned() })
}

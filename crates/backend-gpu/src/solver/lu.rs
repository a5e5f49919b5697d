//! LU with partial pivoting in f64, and the solution with the factors.

use super::library::{Cusolver, check, check_info};
use crate::driver::{Address, Buffer, Handle, Stream};
use crate::error::{GpuError, Result};

/// `CUDA_R_64F`.
const F64: i32 = 1;

/// `CUBLAS_OP_N`: the matrix as it is.
const NOT_TRANSPOSED: i32 = 0;

/// The memory of one factorization. The matrix is overwritten by its factors.
pub(crate) struct LuPlan {
    params: Handle,
    order: usize,
    matrix: Buffer,
    pivots: Buffer,
    workspace: Buffer,
    host_workspace: Vec<u64>,
    /// The outcomes of the factorization and of the solution.
    infos: [Buffer; 2],
    // Last: it is dropped after the others.
    library: Cusolver,
}

// SAFETY: the parameters belong to the plan, and one thread at a time uses it.
unsafe impl Send for LuPlan {}

impl LuPlan {
    /// Allocates the memory for matrices of this order.
    ///
    /// # Errors
    ///
    /// When out of memory.
    pub(crate) fn new(library: Cusolver, order: usize) -> Result<Self> {
        let gpu = std::sync::Arc::clone(&library.gpu);
        let too_large = || GpuError::Other(format!("a matrix of {order} rows is too large"));
        let bytes = order.checked_mul(order).and_then(|count| count.checked_mul(8)).ok_or_else(too_large)?;
        let rows = i64::try_from(order).map_err(|_| too_large())?;
        let matrix = gpu.allocate(bytes)?;
        let mut params = std::ptr::null_mut();
        let functions = library.functions;
        let pivots = gpu.allocate(order * size_of::<i64>())?;
        let infos = [gpu.allocate(4)?, gpu.allocate(4)?];
        let workspace = gpu.allocate(0)?;
        // SAFETY: the address is that of a variable.
        check(unsafe { (functions.params_create)(&raw mut params) }, "create parameters")?;
        // From here on a failure destroys what was created.
        let host_workspace = Vec::new();
        let mut plan = Self { params, order, matrix, pivots, workspace, host_workspace, infos, library };
        let (mut on_device, mut on_host) = (0, 0);
        // SAFETY: the addresses are those of variables; the matrix has so many rows and columns.
        let asked = unsafe {
            (functions.factor_workspace)(
                plan.library.handle,
                params,
                rows,
                rows,
                F64,
                plan.matrix.address(),
                rows,
                F64,
                &raw mut on_device,
                &raw mut on_host,
            )
        };
        check(asked, "getrf_bufferSize")?;
        plan.workspace = gpu.allocate(on_device)?;
        plan.host_workspace = vec![0; on_host.div_ceil(8)];
        Ok(plan)
    }

    /// Where the matrix goes before each run, column by column.
    pub(crate) fn matrix(&self) -> Address {
        self.matrix.address()
    }

    /// Starts the factorization and the solution for one right-hand side, which the solution replaces.
    pub(crate) fn run(&mut self, rhs: Address) -> Result<()> {
        let Self { params, order, matrix, pivots, workspace, host_workspace, infos, library } = self;
        let (functions, handle, rows) = (library.functions, library.handle, *order as i64);
        let host_bytes = size_of_val(host_workspace.as_slice());
        // SAFETY: the buffers have the sizes that the library asked for; all of them outlive the run, because the
        // caller waits for the stream.
        unsafe {
            check(
                (functions.factor)(
                    handle,
                    *params,
                    rows,
                    rows,
                    F64,
                    matrix.address(),
                    rows,
                    pivots.address(),
                    F64,
                    workspace.address(),
                    workspace.bytes(),
                    host_workspace.as_mut_ptr().cast(),
                    host_bytes,
                    infos[0].address(),
                ),
                "getrf",
            )?;
            check(
                (functions.solve)(
                    handle,
                    *params,
                    NOT_TRANSPOSED,
                    rows,
                    1,
                    F64,
                    matrix.address(),
                    rows,
                    pivots.address(),
                    F64,
                    rhs,
                    rows,
                    infos[1].address(),
                ),
                "getrs",
            )
        }
    }

    /// Whether the last run, which has ended, succeeded.
    pub(crate) fn check(&self, stream: &Stream) -> Result<()> {
        check_info(&self.infos[0], stream, "getrf")?;
        check_info(&self.infos[1], stream, "getrs")
    }
}

impl Drop for LuPlan {
    fn drop(&mut self) {
        // SAFETY: nobody uses them any more.
        unsafe { (self.library.functions.params_destroy)(self.params) };
    }
}

//! LU in low precision and refinement to the accuracy of f64 by GMRES, as one call of cuSOLVER.

use super::library::{Cusolver, check, check_info};
use crate::driver::{Address, Buffer, Handle, Stream};
use crate::error::{GpuError, Result};

/// `CUSOLVER_R_64F`: matrix, right-hand side and solution.
const MAIN: i32 = 1203;

/// `CUSOLVER_IRS_REFINE_GMRES`: GMRES with the factors as preconditioner.
const GMRES: i32 = 1104;

/// The most steps of the refinement.
const MOST_STEPS: i32 = 100;

/// The element type that the factors are computed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LowPrecision {
    /// f32.
    F32,
    /// f32, multiplied as tf32.
    Tf32,
    /// f16, accumulated in f32.
    F16,
    /// bf16, accumulated in f32.
    Bf16,
}

impl LowPrecision {
    /// The library's constant.
    fn code(self) -> i32 {
        match self {
            Self::F32 => 1204,
            Self::F16 => 1205,
            Self::Bf16 => 1206,
            Self::Tf32 => 1207,
        }
    }
}

/// The memory and the settings of one solution. The matrix stays as it is.
pub(crate) struct RefinedPlan {
    params: Handle,
    outcome: Handle,
    order: i32,
    workspace: Buffer,
    info: Buffer,
    // Last: it is dropped after the others.
    library: Cusolver,
}

// SAFETY: the settings belong to the plan, and one thread at a time uses it.
unsafe impl Send for RefinedPlan {}

impl RefinedPlan {
    /// Allocates the memory for matrices of this order.
    ///
    /// # Errors
    ///
    /// When out of memory, or the library has no such precision for this device.
    pub(crate) fn new(library: Cusolver, order: usize, precision: LowPrecision) -> Result<Self> {
        let gpu = std::sync::Arc::clone(&library.gpu);
        let too_large = |_| GpuError::Other(format!("a matrix of {order} rows is too large"));
        let order = i32::try_from(order).map_err(too_large)?;
        let (mut params, mut outcome) = (std::ptr::null_mut(), std::ptr::null_mut());
        let functions = library.functions;
        // SAFETY: the addresses are those of variables.
        unsafe {
            check((functions.refinement_create)(&raw mut params), "create a refinement")?;
            check((functions.outcome_create)(&raw mut outcome), "create a refinement's outcome")?;
        }
        let info = gpu.allocate(4)?;
        let workspace = gpu.allocate(0)?;
        // From here on a failure destroys what was created.
        let mut plan = Self { params, outcome, order, workspace, info, library };
        let mut bytes = 0;
        // SAFETY: both objects live, and the address is that of a variable.
        unsafe {
            let precisions = (functions.refinement_precisions)(params, MAIN, precision.code());
            check(precisions, "set the precisions of a refinement")?;
            check((functions.refinement_solver)(params, GMRES), "set the solver of a refinement")?;
            check((functions.refinement_limit)(params, MOST_STEPS), "limit a refinement")?;
            // A solution in f64 would be one of another benchmark.
            check((functions.refinement_no_fallback)(params), "disable the fallback")?;
            let asked = (functions.refined_workspace)(plan.library.handle, params, order, 1, &raw mut bytes);
            check(asked, "IRSXgesv_bufferSize")?;
        }
        plan.workspace = gpu.allocate(bytes)?;
        Ok(plan)
    }

    /// Solves for one right-hand side. Some of the work waits for the device. Returns the steps of the refinement.
    ///
    /// # Errors
    ///
    /// When the refinement does not converge.
    pub(crate) fn run(&mut self, matrix: Address, rhs: Address, solution: Address) -> Result<usize> {
        let Self { params, outcome, order, workspace, info, library } = self;
        let mut steps = 0;
        // SAFETY: matrix and vectors have the plan's order, the workspace has the size that the library asked for, and
        // all of them outlive the run, because the caller waits for the stream.
        let code = unsafe {
            (library.functions.refined_solve)(
                library.handle,
                *params,
                *outcome,
                *order,
                1,
                matrix,
                *order,
                rhs,
                *order,
                solution,
                *order,
                workspace.address(),
                workspace.bytes(),
                &raw mut steps,
                info.address(),
            )
        };
        check(code, "IRSXgesv")?;
        usize::try_from(steps).map_err(|_| {
            let reason = match steps {
                -1 => "cuSOLVER finds low precision not worth its while for this order".to_owned(),
                -2 | -5 => "a value is too large for the factors' type".to_owned(),
                -3 => "the factorization failed".to_owned(),
                _ => format!("the refinement did not converge within {MOST_STEPS} steps"),
            };
            GpuError::Other(format!("{reason} (cuSOLVER says {steps})"))
        })
    }

    /// Whether the last run, which has ended, succeeded.
    pub(crate) fn check(&self, stream: &Stream) -> Result<()> {
        check_info(&self.info, stream, "IRSXgesv")
    }
}

impl Drop for RefinedPlan {
    fn drop(&mut self) {
        // SAFETY: nobody uses them any more.
        unsafe {
            (self.library.functions.outcome_destroy)(self.outcome);
            (self.library.functions.refinement_destroy)(self.params);
        }
    }
}

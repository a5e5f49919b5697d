//! Fake cuSOLVER for tests: it solves diagonal systems, in the memory of the host.

use std::ffi::c_void;

use super::{TROUBLE, made, note};
use crate::driver::{Address, Handle};
use crate::solver::Functions;

/// Divides by the diagonal.
///
/// # Safety
///
/// The addresses are those of a matrix of this order and of two vectors.
unsafe fn divide(matrix: Address, order: usize, from: Address, to: Address) {
    let (matrix, from, to) = (matrix as *const f64, from as *const f64, to as *mut f64);
    for at in 0..order {
        // SAFETY: as the caller promises.
        unsafe { *to.add(at) = *from.add(at) / *matrix.add(at * order + at) };
    }
}

pub(super) fn functions() -> Functions {
    unsafe extern "C" fn version(to: *mut i32) -> i32 {
        // SAFETY: callers give the address of a variable.
        unsafe { *to = 12_009 };
        0
    }
    unsafe extern "C" fn ignore(_: Handle) -> i32 {
        0
    }
    unsafe extern "C" fn set_stream(_: Handle, _: Handle) -> i32 {
        0
    }
    unsafe extern "C" fn factor_workspace(
        _: Handle,
        _: Handle,
        _: i64,
        _: i64,
        _: i32,
        _: Address,
        _: i64,
        _: i32,
        device: *mut usize,
        host: *mut usize,
    ) -> i32 {
        // SAFETY: callers give the addresses of variables.
        unsafe { (*device, *host) = (1000, 100) };
        0
    }
    #[allow(clippy::too_many_arguments)]
    unsafe extern "C" fn factor(
        _: Handle,
        _: Handle,
        rows: i64,
        columns: i64,
        element: i32,
        matrix: Address,
        stride: i64,
        pivots: Address,
        compute: i32,
        workspace: Address,
        bytes: usize,
        host: *mut c_void,
        host_bytes: usize,
        info: Address,
    ) -> i32 {
        assert!(matrix != 0 && pivots != 0 && workspace != 0 && !host.is_null(), "memory has no address");
        assert!(stride == rows && bytes >= 1000 && host_bytes >= 100, "memory is too small");
        // SAFETY: callers give the address of device memory of this size.
        unsafe { *(info as *mut i32) = TROUBLE.get().solver_info };
        note(format!("getrf {rows} x {columns} of {element}, computed in {compute}"));
        TROUBLE.get().solver
    }
    #[allow(clippy::too_many_arguments)]
    unsafe extern "C" fn solve(
        _: Handle,
        _: Handle,
        transposed: i32,
        order: i64,
        count: i64,
        _: i32,
        matrix: Address,
        _: i64,
        pivots: Address,
        _: i32,
        rhs: Address,
        _: i64,
        info: Address,
    ) -> i32 {
        assert!(transposed == 0 && pivots != 0, "not the matrix that was given");
        // SAFETY: callers give the addresses of a matrix, a vector and a number.
        unsafe {
            divide(matrix, order as usize, rhs, rhs);
            *(info as *mut i32) = 0;
        }
        note(format!("getrs {order} for {count}"))
    }
    unsafe extern "C" fn precisions(_: Handle, main: i32, lowest: i32) -> i32 {
        note(format!("refinement of {main} by {lowest}"))
    }
    unsafe extern "C" fn refinement_solver(_: Handle, solver: i32) -> i32 {
        note(format!("refinement by {solver}"))
    }
    unsafe extern "C" fn limit(_: Handle, steps: i32) -> i32 {
        note(format!("refinement of {steps} steps"))
    }
    unsafe extern "C" fn no_fallback(_: Handle) -> i32 {
        note("refinement without fallback")
    }
    unsafe extern "C" fn refined_workspace(_: Handle, _: Handle, _: i32, _: i32, bytes: *mut usize) -> i32 {
        // SAFETY: callers give the address of a variable.
        unsafe { *bytes = 3000 };
        0
    }
    #[allow(clippy::too_many_arguments)]
    unsafe extern "C" fn refined_solve(
        _: Handle,
        _: Handle,
        _: Handle,
        order: i32,
        count: i32,
        matrix: Address,
        _: i32,
        rhs: Address,
        _: i32,
        solution: Address,
        _: i32,
        workspace: Address,
        bytes: usize,
        steps: *mut i32,
        info: Address,
    ) -> i32 {
        assert!(workspace != 0 && bytes >= 3000, "the workspace is too small");
        let trouble = TROUBLE.get();
        // SAFETY: callers give the addresses of a matrix, two vectors and two variables.
        unsafe {
            divide(matrix, order as usize, rhs, solution);
            *steps = if trouble.refinement == 0 { 7 } else { trouble.refinement };
            *(info as *mut i32) = trouble.solver_info;
        }
        note(format!("gesv {order} for {count}"));
        trouble.solver
    }
    Functions {
        version,
        create: made,
        destroy: ignore,
        set_stream,
        params_create: made,
        params_destroy: ignore,
        factor_workspace,
        factor,
        solve,
        refinement_create: made,
        refinement_destroy: ignore,
        refinement_precisions: precisions,
        refinement_solver,
        refinement_limit: limit,
        refinement_no_fallback: no_fallback,
        outcome_create: made,
        outcome_destroy: ignore,
        refined_workspace,
        refined_solve,
    }
}

//! Fake rocBLAS for tests.

use std::ffi::c_void;

use super::{made, note};
use crate::blas::rocblas::Functions;
use crate::driver::Handle;

pub(super) fn functions() -> Functions {
    unsafe extern "C" fn set_stream(_: Handle, _: Handle) -> i32 {
        0
    }
    unsafe extern "C" fn set_workspace(_: Handle, at: u64, bytes: usize) -> i32 {
        assert_ne!(at, 0, "a workspace has no address");
        note(format!("rocBLAS: workspace of {bytes}"))
    }
    #[allow(clippy::too_many_arguments)]
    unsafe extern "C" fn multiply(
        _: Handle,
        transpose_a: i32,
        transpose_b: i32,
        m: i32,
        n: i32,
        k: i32,
        _: *const c_void,
        a: u64,
        a_type: i32,
        a_stride: i32,
        a_between: i64,
        b: u64,
        b_type: i32,
        b_stride: i32,
        b_between: i64,
        beta: *const c_void,
        c: u64,
        c_type: i32,
        _: i32,
        _: i64,
        d: u64,
        d_type: i32,
        d_stride: i32,
        d_between: i64,
        batch: i32,
        compute: i32,
        algorithm: i32,
        _: i32,
        _: u32,
    ) -> i32 {
        assert!(a != 0 && b != 0 && c != 0 && d != 0, "a matrix has no address");
        assert_eq!((c_type, algorithm), (d_type, 0));
        // SAFETY: scalars of f32, which is what tests compute in, and wider ones begin with as many bytes.
        let beta = unsafe { *beta.cast::<f32>() };
        note(format!(
            "rocBLAS: {batch} x {m} x {n} x {k} in {compute}, beta {beta}: \
             {transpose_a} of {a_type} {a_stride} {a_between}, {transpose_b} of {b_type} {b_stride} {b_between}, \
             gives {d_type} {d_stride} {d_between}"
        ))
    }
    Functions { create: made, set_stream, set_workspace, multiply }
}

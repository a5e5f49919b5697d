//! Fake cuBLASLt and hipBLASLt for tests.

use std::ffi::c_void;

use super::{EPILOGUE, TROUBLE, made, note};
use crate::blas::Functions;
use crate::blas::constants;
use crate::driver::Handle;

pub(super) fn functions() -> Functions {
    unsafe extern "C" fn describe(to: *mut Handle, compute: i32, scale: i32) -> i32 {
        note(format!("describe a product: sums {compute}, scale {scale}"));
        // SAFETY: callers give the address of a variable.
        unsafe { made(to) }
    }
    unsafe extern "C" fn ignore(_: Handle) -> i32 {
        0
    }
    unsafe extern "C" fn set_product(_: Handle, attribute: i32, value: *const c_void, bytes: usize) -> i32 {
        if bytes == 4 {
            // SAFETY: the value has so many bytes.
            let value = unsafe { *value.cast::<i32>() };
            note(format!("matmul attribute {attribute} = {value}"));
            if attribute == constants::CUBLASLT.epilogue {
                EPILOGUE.set(Some(value));
            }
            if TROUBLE.get().epilogue == Some(value) {
                return 15;
            }
        } else if bytes == 1 {
            // SAFETY: as above.
            note(format!("matmul attribute {attribute} = {}", unsafe { *value.cast::<i8>() }));
        } else {
            // SAFETY: as above; addresses and distances are of 64 bits.
            let value = unsafe { *value.cast::<u64>() };
            note(format!("matmul attribute {attribute} is {}", if value == 0 { "nothing" } else { "given" }));
        }
        0
    }
    unsafe extern "C" fn layout(to: *mut Handle, ty: i32, rows: u64, columns: u64, stride: i64) -> i32 {
        note(format!("matrix of {ty}: {rows} x {columns}, {stride} apart"));
        // SAFETY: callers give the address of a variable.
        unsafe { made(to) }
    }
    unsafe extern "C" fn set(_: Handle, _: i32, _: *const c_void, _: usize) -> i32 {
        0
    }
    unsafe extern "C" fn ask(
        _: Handle,
        _: Handle,
        _: Handle,
        _: Handle,
        _: Handle,
        _: Handle,
        _: Handle,
        _: i32,
        _: *mut u8,
        count: *mut i32,
    ) -> i32 {
        // SAFETY: callers give the address of a variable.
        unsafe { *count = 2 };
        TROUBLE.get().blas
    }
    unsafe extern "C" fn multiply(
        _: Handle,
        _: Handle,
        _: *const c_void,
        a: u64,
        _: Handle,
        b: u64,
        _: Handle,
        _: *const c_void,
        _: u64,
        _: Handle,
        d: u64,
        _: Handle,
        _: *const u8,
        _: u64,
        _: usize,
        _: Handle,
    ) -> i32 {
        assert!(a != 0 && b != 0 && d != 0, "a matrix has no address");
        note("multiply")
    }
    Functions {
        create: made,
        description_create: describe,
        description_destroy: ignore,
        description_set: set_product,
        layout_create: layout,
        layout_destroy: ignore,
        layout_set: set,
        preference_create: made,
        preference_destroy: ignore,
        preference_set: set,
        heuristic: ask,
        multiply,
    }
}

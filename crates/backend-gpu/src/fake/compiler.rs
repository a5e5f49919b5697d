//! A fake run-time compiler for tests.

use std::ffi::c_char;

use super::{TROUBLE, made};
use crate::driver::CompilerFunctions as Functions;
use crate::driver::Handle;

pub(super) fn functions() -> Functions {
    unsafe extern "C" fn version(major: *mut i32, minor: *mut i32) -> i32 {
        // SAFETY: callers give the addresses of variables.
        unsafe { (*major, *minor) = (0, 0) };
        0
    }
    unsafe extern "C" fn create(
        to: *mut Handle,
        _: *const c_char,
        _: *const c_char,
        _: i32,
        _: *const *const c_char,
        _: *const *const c_char,
    ) -> i32 {
        // SAFETY: as above.
        unsafe { made(to) }
    }
    unsafe extern "C" fn compile(_: Handle, _: i32, _: *const *const c_char) -> i32 {
        TROUBLE.get().compile
    }
    unsafe extern "C" fn size(_: Handle, to: *mut usize) -> i32 {
        // SAFETY: as above.
        unsafe { *to = 5 };
        0
    }
    unsafe extern "C" fn code(_: Handle, to: *mut c_char) -> i32 {
        // SAFETY: callers give room for as many bytes as they were told.
        unsafe { std::ptr::copy_nonoverlapping(c"code".as_ptr(), to, 5) };
        0
    }
    unsafe extern "C" fn destroy(_: *mut Handle) -> i32 {
        0
    }
    Functions { version, create, compile, code_size: size, code, log_size: size, log: code, destroy }
}

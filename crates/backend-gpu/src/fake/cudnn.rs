//! Fake cuDNN for tests.

use std::ffi::c_void;

use super::{made, note};
use crate::dnn::cudnn::Functions;
use crate::driver::Handle;

pub(super) fn functions() -> Functions {
    unsafe extern "C" fn version() -> i32 {
        1
    }
    unsafe extern "C" fn set_stream(_: Handle, _: Handle) -> i32 {
        0
    }
    unsafe extern "C" fn create(kind: i32, to: *mut Handle) -> i32 {
        note(format!("descriptor of kind {kind}"));
        // SAFETY: callers give the address of a variable.
        unsafe { made(to) }
    }
    unsafe extern "C" fn ignore(_: Handle) -> i32 {
        0
    }
    unsafe extern "C" fn set(_: Handle, attribute: i32, ty: i32, count: i64, values: *const c_void) -> i32 {
        // 64-bit attributes are lists, 32-bit ones and booleans single values.
        let text = match ty {
            // SAFETY: there are so many values of that type.
            3 => unsafe {
                std::slice::from_raw_parts(values.cast::<i64>(), usize::try_from(count).unwrap_or(0))
            }
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(" "),
            // SAFETY: as above.
            1 | 14 | 18 => unsafe { *values.cast::<i32>() }.to_string(),
            // SAFETY: as above.
            2 => unsafe { *values.cast::<bool>() }.to_string(),
            _ => return 0,
        };
        note(format!("attribute {attribute} = {text}"))
    }
    unsafe extern "C" fn get(
        _: Handle,
        attribute: i32,
        _: i32,
        _: i64,
        count: *mut i64,
        values: *mut c_void,
    ) -> i32 {
        // One candidate without notes and workspace.
        // SAFETY: callers give the address of a variable, and space for at least one value.
        unsafe {
            *count = i64::from(attribute != 1303);
            if attribute == 402 {
                *values.cast::<i64>() = 0;
            }
        }
        0
    }
    unsafe extern "C" fn execute(_: Handle, _: Handle, _: Handle) -> i32 {
        note("run a plan")
    }
    Functions {
        version,
        create: made,
        set_stream,
        descriptor_create: create,
        descriptor_destroy: ignore,
        finalise: ignore,
        set,
        get,
        execute,
    }
}

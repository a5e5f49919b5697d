//! Fake MIOpen for tests.

use std::ffi::c_void;

use super::{TROUBLE, made, note};
use crate::dnn::miopen::{Functions, Solution};
use crate::driver::Handle;

fn listed(values: *const i32, count: i32) -> String {
    // SAFETY: callers give so many numbers.
    let values = unsafe { std::slice::from_raw_parts(values, usize::try_from(count).unwrap_or(0)) };
    values.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

#[allow(clippy::too_many_lines)] // One function for each of the library's.
pub(super) fn functions() -> Functions {
    unsafe extern "C" fn ignore(_: Handle) -> i32 {
        0
    }
    unsafe extern "C" fn set_stream(_: Handle, _: Handle) -> i32 {
        0
    }
    unsafe extern "C" fn tensor_set(
        _: Handle,
        ty: i32,
        rank: i32,
        dims: *const i32,
        strides: *const i32,
    ) -> i32 {
        note(format!("tensor of {ty}: {} by {}", listed(dims, rank), listed(strides, rank)))
    }
    unsafe extern "C" fn convolution_set(
        _: Handle,
        rank: i32,
        padding: *const i32,
        strides: *const i32,
        dilations: *const i32,
        mode: i32,
    ) -> i32 {
        let [padding, strides, dilations] = [padding, strides, dilations].map(|values| listed(values, rank));
        note(format!("convolution {mode}: padding {padding}, strides {strides}, dilations {dilations}"))
    }
    unsafe extern "C" fn convolution_groups(_: Handle, groups: i32) -> i32 {
        note(format!("{groups} groups"))
    }
    unsafe extern "C" fn solution_count(
        _: Handle,
        _: Handle,
        _: Handle,
        _: Handle,
        _: Handle,
        to: *mut usize,
    ) -> i32 {
        // SAFETY: callers give the address of a variable.
        unsafe { *to = 4 };
        0
    }
    unsafe extern "C" fn solutions(
        _: Handle,
        _: Handle,
        _: Handle,
        _: Handle,
        _: Handle,
        most: usize,
        count: *mut usize,
        to: *mut Solution,
    ) -> i32 {
        // Winograd; a workspace that is too large; one that does not compile; one that does.
        let known = [(3, 0, 70), (1, usize::MAX, 71), (0, 0, 72), (5, 1024, 73)];
        assert!(most >= known.len());
        for (at, (algorithm, workspace, number)) in known.into_iter().enumerate() {
            // SAFETY: callers give room for as many as they were told.
            unsafe { *to.add(at) = Solution { time: 1.0, workspace, number, algorithm } };
        }
        // SAFETY: callers give the address of a variable.
        unsafe { *count = known.len() };
        0
    }
    unsafe extern "C" fn compile(_: Handle, _: Handle, _: Handle, _: Handle, _: Handle, number: u64) -> i32 {
        note(format!("compile solution {number}"));
        if number == 72 { 5 } else { 0 }
    }
    #[allow(clippy::too_many_arguments)]
    unsafe extern "C" fn run(
        _: Handle,
        _: Handle,
        weights: u64,
        _: Handle,
        input: u64,
        _: Handle,
        _: Handle,
        output: u64,
        workspace: u64,
        bytes: usize,
        number: u64,
    ) -> i32 {
        assert!(weights != 0 && input != 0 && output != 0 && workspace != 0, "a tensor has no address");
        note(format!("run solution {number} with {bytes} bytes"))
    }
    unsafe extern "C" fn fusion_create(to: *mut Handle, direction: i32, _: Handle) -> i32 {
        note(format!("fusion {direction}"));
        // SAFETY: callers give the address of a variable.
        unsafe { made(to) }
    }
    unsafe extern "C" fn fusion_compile(_: Handle, _: Handle) -> i32 {
        note("compile the fusion");
        TROUBLE.get().fusion
    }
    unsafe extern "C" fn fuse_convolution(_: Handle, to: *mut Handle, _: Handle, _: Handle) -> i32 {
        note("fuse a convolution");
        // SAFETY: callers give the address of a variable.
        unsafe { made(to) }
    }
    unsafe extern "C" fn fuse_bias(_: Handle, to: *mut Handle, _: Handle) -> i32 {
        note("fuse a bias");
        // SAFETY: as above.
        unsafe { made(to) }
    }
    unsafe extern "C" fn fuse_activation(_: Handle, to: *mut Handle, mode: i32) -> i32 {
        note(format!("fuse activation {mode}"));
        // SAFETY: as above.
        unsafe { made(to) }
    }
    unsafe extern "C" fn argument(
        _: Handle,
        _: Handle,
        one: *const c_void,
        zero: *const c_void,
        at: u64,
    ) -> i32 {
        // SAFETY: both are addresses of numbers.
        let scales = unsafe { (*one.cast::<f32>(), *zero.cast::<f32>()) };
        assert!(at != 0 && scales == (1.0, 0.0));
        0
    }
    unsafe extern "C" fn arguments_activation(
        _: Handle,
        _: Handle,
        _: *const c_void,
        _: *const c_void,
        _: f64,
        _: f64,
        _: f64,
    ) -> i32 {
        0
    }
    unsafe extern "C" fn fusion_run(
        _: Handle,
        _: Handle,
        _: Handle,
        input: u64,
        _: Handle,
        output: u64,
        _: Handle,
    ) -> i32 {
        assert!(input != 0 && output != 0, "a tensor has no address");
        note("run the fusion")
    }
    Functions {
        create: made,
        set_stream,
        tensor_create: made,
        tensor_set,
        tensor_destroy: ignore,
        convolution_create: made,
        convolution_set,
        convolution_groups,
        convolution_destroy: ignore,
        solution_count,
        solutions,
        solution_compile: compile,
        run,
        fusion_create,
        fusion_destroy: ignore,
        fusion_compile,
        fuse_convolution,
        fuse_bias,
        fuse_activation,
        arguments_create: made,
        arguments_destroy: ignore,
        arguments_convolution: argument,
        arguments_bias: argument,
        arguments_activation,
        fusion_run,
    }
}

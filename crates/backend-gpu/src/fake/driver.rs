//! A fake driver for tests: device memory is host memory, kernels do nothing.

use std::ffi::{CStr, c_char, c_void};

use super::{EPILOGUE, EVENTS, STREAMS, TROUBLE, handle, made, note, note_event, shows_events};
use crate::driver::{Address, Functions, Handle};

pub(super) fn functions() -> Functions {
    unsafe extern "C" fn init(_: u32) -> i32 {
        0
    }
    unsafe extern "C" fn version(to: *mut i32) -> i32 {
        // SAFETY: callers give the address of a variable.
        unsafe { *to = TROUBLE.get().version.unwrap_or(i32::MAX) };
        0
    }
    unsafe extern "C" fn count(to: *mut i32) -> i32 {
        // SAFETY: as above.
        unsafe { *to = 1 + TROUBLE.get().more_devices };
        0
    }
    unsafe extern "C" fn device(to: *mut i32, number: i32) -> i32 {
        // SAFETY: as above.
        unsafe { *to = number };
        0
    }
    unsafe extern "C" fn name(to: *mut c_char, _: i32, _: i32) -> i32 {
        // SAFETY: callers give room for a name.
        unsafe { *to = 0 };
        0
    }
    unsafe extern "C" fn attribute(to: *mut i32, _: i32, _: i32) -> i32 {
        // SAFETY: callers give the address of a variable.
        unsafe { *to = 9 };
        0
    }
    unsafe extern "C" fn retain(to: *mut Handle, _: i32) -> i32 {
        // SAFETY: as above.
        unsafe { made(to) }
    }
    unsafe extern "C" fn enter(_: Handle) -> i32 {
        0
    }
    unsafe extern "C" fn info(free: *mut usize, total: *mut usize) -> i32 {
        // SAFETY: as above.
        unsafe { (*free, *total) = (1 << 20, 1 << 30) };
        0
    }
    unsafe extern "C" fn allocate(to: *mut Address, bytes: usize) -> i32 {
        if bytes > 1 << 30 {
            return 2;
        }
        let memory = vec![0u128; bytes.div_ceil(16)].into_boxed_slice();
        // SAFETY: as above. The memory is never given back: tests are short.
        unsafe { *to = Box::leak(memory).as_mut_ptr() as u64 };
        note(format!("allocate {bytes}"))
    }
    unsafe extern "C" fn free(_: Address) -> i32 {
        0
    }
    unsafe extern "C" fn allocate_host(to: *mut Handle, bytes: usize) -> i32 {
        let memory = vec![0u128; bytes.div_ceil(16)].into_boxed_slice();
        // SAFETY: callers give the address of a variable.
        unsafe { *to = Box::leak(memory).as_mut_ptr().cast() };
        0
    }
    unsafe extern "C" fn copy_in(to: Address, from: *const c_void, bytes: usize, on: Handle) -> i32 {
        // SAFETY: both sides are memory of the host with so many bytes.
        unsafe { std::ptr::copy_nonoverlapping(from.cast::<u8>(), to as *mut u8, bytes) };
        note(format!("copy in {bytes} on {}", on as usize))
    }
    unsafe extern "C" fn copy_out(to: *mut c_void, from: Address, bytes: usize, on: Handle) -> i32 {
        // SAFETY: as above.
        unsafe { std::ptr::copy_nonoverlapping(from as *const u8, to.cast::<u8>(), bytes) };
        note(format!("copy out {bytes} on {}", on as usize))
    }
    unsafe extern "C" fn within(to: Address, from: Address, bytes: usize, on: Handle) -> i32 {
        // SAFETY: as above.
        unsafe { std::ptr::copy(from as *const u8, to as *mut u8, bytes) };
        note(format!("copy within {bytes} on {}", on as usize))
    }
    unsafe extern "C" fn fill(to: Address, value: u8, bytes: usize, _: Handle) -> i32 {
        // SAFETY: as above.
        unsafe { std::ptr::write_bytes(to as *mut u8, value, bytes) };
        0
    }
    unsafe extern "C" fn create(to: *mut Handle, _: u32) -> i32 {
        EVENTS.set(EVENTS.get() + 1);
        // SAFETY: callers give the address of a variable.
        unsafe { *to = handle(EVENTS.get()) };
        0
    }
    unsafe extern "C" fn event_record(event: Handle, stream: Handle) -> i32 {
        note_event(format!("{} records event {}", stream as usize, event as usize))
    }
    unsafe extern "C" fn stream(to: *mut Handle, _: u32) -> i32 {
        STREAMS.set(STREAMS.get() + 1);
        // SAFETY: as above.
        unsafe { *to = handle(STREAMS.get()) };
        0
    }
    unsafe extern "C" fn stream_wait(stream: Handle, event: Handle, _: u32) -> i32 {
        if shows_events() {
            return note(format!("{} waits for event {}", stream as usize, event as usize));
        }
        note(format!("{} waits", stream as usize))
    }
    unsafe extern "C" fn synchronise(_: Handle) -> i32 {
        TROUBLE.get().wait
    }
    unsafe extern "C" fn ignore(_: Handle) -> i32 {
        0
    }
    unsafe extern "C" fn elapsed(to: *mut f32, _: Handle, _: Handle) -> i32 {
        let slow = TROUBLE.get().slow;
        // SAFETY: as above.
        unsafe { *to = if slow.is_some() && slow == EPILOGUE.get() { 10.0 } else { 1.0 } };
        0
    }
    unsafe extern "C" fn load(to: *mut Handle, code: *const c_void) -> i32 {
        // SAFETY: as above; the code is the fake compiler's, a text.
        unsafe {
            *to = handle(1);
            assert_eq!(CStr::from_ptr(code.cast()).to_bytes(), b"code");
        }
        0
    }
    unsafe extern "C" fn function(to: *mut Handle, _: Handle, name: *const c_char) -> i32 {
        // SAFETY: as above; the name is a text.
        let name = unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned();
        // SAFETY: as above.
        unsafe { *to = Box::into_raw(Box::new(name)).cast() };
        0
    }
    unsafe extern "C" fn function_attribute(_: Handle, _: i32, _: i32) -> i32 {
        0
    }
    #[allow(clippy::too_many_arguments)]
    unsafe extern "C" fn launch(
        _: Handle,
        gx: u32,
        _: u32,
        _: u32,
        bx: u32,
        _: u32,
        _: u32,
        _: u32,
        _: Handle,
        arguments: *mut Handle,
        _: *mut Handle,
    ) -> i32 {
        // SAFETY: every kernel has an argument, and each is the address of an address.
        let first = unsafe { **arguments.cast::<*const Address>() };
        assert_ne!(first, 0, "an argument has no address");
        note(format!("launch {gx} blocks of {bx}"));
        TROUBLE.get().launch
    }
    unsafe extern "C" fn begin(_: Handle, _: i32) -> i32 {
        note("record")
    }
    unsafe extern "C" fn end(_: Handle, to: *mut Handle) -> i32 {
        note("recorded");
        // SAFETY: callers give the address of a variable.
        unsafe { made(to) }
    }
    unsafe extern "C" fn instantiate(to: *mut Handle, _: Handle, _: u64) -> i32 {
        // SAFETY: as above.
        unsafe { made(to) }
    }
    unsafe extern "C" fn graph_launch(_: Handle, _: Handle) -> i32 {
        note("launch all")
    }
    unsafe extern "C" fn uuid(to: *mut [u8; 16], number: i32) -> i32 {
        // SAFETY: as above.
        unsafe { *to = [[7; 15].as_slice(), &[number as u8]].concat().try_into().unwrap_or_default() };
        0
    }
    unsafe extern "C" fn error_text(_: i32, to: *mut *const c_char) -> i32 {
        // SAFETY: as above.
        unsafe { *to = c"as told".as_ptr() };
        0
    }
    Functions {
        init,
        driver_version: version,
        device_count: count,
        device_get: device,
        device_name: name,
        device_uuid: uuid,
        device_attribute: attribute,
        context_retain: retain,
        context_set: enter,
        memory_info: info,
        allocate,
        free,
        allocate_host,
        copy_in,
        copy_out,
        copy_within: within,
        set_bytes: fill,
        stream_create: stream,
        stream_destroy: ignore,
        stream_wait,
        stream_synchronise: synchronise,
        event_create: create,
        event_destroy: ignore,
        event_record,
        event_synchronise: ignore,
        event_elapsed: elapsed,
        module_load: load,
        module_unload: ignore,
        module_function: function,
        function_attribute,
        launch,
        capture_begin: begin,
        capture_end: end,
        graph_instantiate: instantiate,
        graph_launch,
        graph_destroy: ignore,
        graph_exec_destroy: ignore,
        error_text,
    }
}

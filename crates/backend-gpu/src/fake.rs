//! Libraries that do nothing but remember what they were asked: the host's side without a GPU.

// The fakes have the signatures of foreign functions.
#![allow(unsafe_code)]

use std::cell::{Cell, RefCell};
use std::ffi::{CStr, c_char, c_void};
use std::sync::Arc;

use crate::compiler::{self, Compiler};
use crate::cuda::networks::{self, Networks};
use crate::driver::{self, Address, Driver, Gpu, Handle};
use crate::error::Result;
use crate::library::Vendor;
use crate::products::{self, Products};

/// What the fakes answer otherwise than that all is well.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Trouble {
    /// The version of the driver.
    pub(crate) version: Option<i32>,
    /// What starting a kernel and waiting for it answer.
    pub(crate) launch: i32,
    /// What the compiler of kernels answers.
    pub(crate) compile: i32,
}

thread_local! {
    static TROUBLE: Cell<Trouble> = const { Cell::new(Trouble { version: None, launch: 0, compile: 0 }) };
    static CALLS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

fn note(call: impl Into<String>) -> i32 {
    CALLS.with_borrow_mut(|calls| calls.push(call.into()));
    0
}

/// What the fakes answer to this thread from now on.
pub(crate) fn trouble(trouble: Trouble) {
    TROUBLE.set(trouble);
}

/// What this thread asked of the fakes since the last look.
pub(crate) fn calls() -> Vec<String> {
    CALLS.take()
}

/// A GPU of a vendor that is none: memory is the host's, kernels do nothing.
pub(crate) fn gpu(vendor: Vendor) -> Result<Arc<Gpu>> {
    gpu_at(vendor, 0)
}

/// The GPU of that number; there is one.
pub(crate) fn gpu_at(vendor: Vendor, number: u32) -> Result<Arc<Gpu>> {
    let gpu = Gpu::open(&Driver::start(vendor, driver_functions())?, number)?;
    gpu.use_compiler(Compiler::new(vendor, compiler_functions(), None)?);
    Ok(gpu)
}

/// cuDNN that is none.
pub(crate) fn networks(gpu: &Arc<Gpu>) -> Result<Networks> {
    Networks::with(gpu, networks_functions())
}

/// A library of products that is none.
pub(crate) fn products(gpu: &Arc<Gpu>) -> Result<Products> {
    Products::with(gpu, products_functions())
}

fn handle(number: usize) -> Handle {
    number as Handle
}

/// Writes a handle for something that was made.
unsafe extern "C" fn made(to: *mut Handle) -> i32 {
    // SAFETY: callers give the address of a variable.
    unsafe { *to = handle(1) };
    0
}

fn driver_functions() -> driver::Functions {
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
        unsafe { *to = 1 };
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
    unsafe extern "C" fn copy_in(to: Address, from: *const c_void, bytes: usize, _: Handle) -> i32 {
        // SAFETY: both sides are memory of the host with so many bytes.
        unsafe { std::ptr::copy_nonoverlapping(from.cast::<u8>(), to as *mut u8, bytes) };
        note(format!("copy in {bytes}"))
    }
    unsafe extern "C" fn copy_out(to: *mut c_void, from: Address, bytes: usize, _: Handle) -> i32 {
        // SAFETY: as above.
        unsafe { std::ptr::copy_nonoverlapping(from as *const u8, to.cast::<u8>(), bytes) };
        note(format!("copy out {bytes}"))
    }
    unsafe extern "C" fn within(to: Address, from: Address, bytes: usize, _: Handle) -> i32 {
        // SAFETY: as above.
        unsafe { std::ptr::copy(from as *const u8, to as *mut u8, bytes) };
        0
    }
    unsafe extern "C" fn fill(to: Address, value: u8, bytes: usize, _: Handle) -> i32 {
        // SAFETY: as above.
        unsafe { std::ptr::write_bytes(to as *mut u8, value, bytes) };
        0
    }
    unsafe extern "C" fn create(to: *mut Handle, _: u32) -> i32 {
        // SAFETY: callers give the address of a variable.
        unsafe { made(to) }
    }
    unsafe extern "C" fn ignore(_: Handle) -> i32 {
        0
    }
    unsafe extern "C" fn pair(_: Handle, _: Handle) -> i32 {
        0
    }
    unsafe extern "C" fn elapsed(to: *mut f32, _: Handle, _: Handle) -> i32 {
        // SAFETY: as above.
        unsafe { *to = 1.0 };
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
    unsafe extern "C" fn error_text(_: i32, to: *mut *const c_char) -> i32 {
        // SAFETY: as above.
        unsafe { *to = c"as told".as_ptr() };
        0
    }
    driver::Functions {
        init,
        driver_version: version,
        device_count: count,
        device_get: device,
        device_name: name,
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
        stream_create: create,
        stream_destroy: ignore,
        stream_synchronise: ignore,
        event_create: create,
        event_destroy: ignore,
        event_record: pair,
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

fn compiler_functions() -> compiler::Functions {
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
    compiler::Functions {
        version,
        create,
        compile,
        code_size: size,
        code,
        log_size: size,
        log: code,
        destroy,
    }
}

fn products_functions() -> products::Functions {
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
            note(format!("product attribute {attribute} = {}", unsafe { *value.cast::<i32>() }));
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
        0
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
    products::Functions {
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

fn networks_functions() -> networks::Functions {
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
        // Types of numbers: those of 64 bits are a list, those of 32 bits are one.
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
        // One proposal, and no workspace.
        // SAFETY: callers give the address of a variable, and room for at least one value.
        unsafe {
            *count = 1;
            if attribute == 402 {
                *values.cast::<i64>() = 0;
            }
        }
        0
    }
    unsafe extern "C" fn execute(_: Handle, _: Handle, _: Handle) -> i32 {
        note("run a plan")
    }
    networks::Functions {
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

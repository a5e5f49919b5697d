//! Driver functions; CUDA and HIP differ only in names.

use std::ffi::{c_char, c_void};

use crate::library::functions;

/// A device address.
pub(crate) type Address = u64;

/// An opaque driver object.
pub(crate) type Handle = *mut c_void;

functions! {
    /// The driver.
    Functions {
        init(u32) = "cuInit", "hipInit";
        driver_version(*mut i32) = "cuDriverGetVersion", "hipDriverGetVersion";
        device_count(*mut i32) = "cuDeviceGetCount", "hipGetDeviceCount";
        device_get(*mut i32, i32) = "cuDeviceGet", "hipDeviceGet";
        device_name(*mut c_char, i32, i32) = "cuDeviceGetName", "hipDeviceGetName";
        device_uuid(*mut [u8; 16], i32) = "cuDeviceGetUuid", "hipDeviceGetUuid";
        device_attribute(*mut i32, i32, i32) = "cuDeviceGetAttribute", "hipDeviceGetAttribute";
        context_retain(*mut Handle, i32) = "cuDevicePrimaryCtxRetain", "hipDevicePrimaryCtxRetain";
        context_set(Handle) = "cuCtxSetCurrent", "hipCtxSetCurrent";
        memory_info(*mut usize, *mut usize) = "cuMemGetInfo_v2", "hipMemGetInfo";
        allocate(*mut Address, usize) = "cuMemAlloc_v2", "hipMalloc";
        free(Address) = "cuMemFree_v2", "hipFree";
        allocate_host(*mut Handle, usize) = "cuMemAllocHost_v2", "hipMemAllocHost";
        copy_in(Address, *const c_void, usize, Handle) = "cuMemcpyHtoDAsync_v2", "hipMemcpyHtoDAsync";
        copy_out(*mut c_void, Address, usize, Handle) = "cuMemcpyDtoHAsync_v2", "hipMemcpyDtoHAsync";
        copy_within(Address, Address, usize, Handle) = "cuMemcpyDtoDAsync_v2", "hipMemcpyDtoDAsync";
        set_bytes(Address, u8, usize, Handle) = "cuMemsetD8Async", "hipMemsetD8Async";
        stream_create(*mut Handle, u32) = "cuStreamCreate", "hipStreamCreateWithFlags";
        stream_destroy(Handle) = "cuStreamDestroy_v2", "hipStreamDestroy";
        stream_wait(Handle, Handle, u32) = "cuStreamWaitEvent", "hipStreamWaitEvent";
        stream_synchronise(Handle) = "cuStreamSynchronize", "hipStreamSynchronize";
        event_create(*mut Handle, u32) = "cuEventCreate", "hipEventCreateWithFlags";
        event_destroy(Handle) = "cuEventDestroy_v2", "hipEventDestroy";
        event_record(Handle, Handle) = "cuEventRecord", "hipEventRecord";
        event_synchronise(Handle) = "cuEventSynchronize", "hipEventSynchronize";
        event_elapsed(*mut f32, Handle, Handle) = "cuEventElapsedTime", "hipEventElapsedTime";
        module_load(*mut Handle, *const c_void) = "cuModuleLoadData", "hipModuleLoadData";
        module_unload(Handle) = "cuModuleUnload", "hipModuleUnload";
        module_function(*mut Handle, Handle, *const c_char) = "cuModuleGetFunction", "hipModuleGetFunction";
        function_attribute(Handle, i32, i32) = "cuFuncSetAttribute", "hipFuncSetAttribute";
        launch(Handle, u32, u32, u32, u32, u32, u32, u32, Handle, *mut Handle, *mut Handle)
            = "cuLaunchKernel", "hipModuleLaunchKernel";
        capture_begin(Handle, i32) = "cuStreamBeginCapture_v2", "hipStreamBeginCapture";
        capture_end(Handle, *mut Handle) = "cuStreamEndCapture", "hipStreamEndCapture";
        graph_instantiate(*mut Handle, Handle, u64) = "cuGraphInstantiateWithFlags", "hipGraphInstantiateWithFlags";
        graph_launch(Handle, Handle) = "cuGraphLaunch", "hipGraphLaunch";
        graph_destroy(Handle) = "cuGraphDestroy", "hipGraphDestroy";
        graph_exec_destroy(Handle) = "cuGraphExecDestroy", "hipGraphExecDestroy";
        error_text(i32, *mut *const c_char) = "cuGetErrorString", "hipDrvGetErrorString";
    }
}

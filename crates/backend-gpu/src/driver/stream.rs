//! Streams, events and captured graphs.

use std::ffi::c_void;
use std::sync::Arc;
use std::time::Duration;

use super::functions::{Address, Handle};
use super::gpu::Gpu;
use super::module::Function;
use crate::error::Result;

/// Not ordered with the legacy default stream.
const NON_BLOCKING: u32 = 1;

/// Capture checks only this thread's calls.
const THREAD_LOCAL: i32 = 1;

/// A stream.
pub(crate) struct Stream {
    gpu: Arc<Gpu>,
    handle: Handle,
}

// SAFETY: streams may be used from any thread.
unsafe impl Send for Stream {}
// SAFETY: as above.
unsafe impl Sync for Stream {}

impl Stream {
    /// A new stream.
    pub(crate) fn new(gpu: &Arc<Gpu>) -> Result<Self> {
        gpu.enter()?;
        let mut handle = std::ptr::null_mut();
        // SAFETY: the address is that of a variable.
        let code = unsafe { (gpu.driver.functions.stream_create)(&raw mut handle, NON_BLOCKING) };
        gpu.check(code, "stream_create")?;
        Ok(Self { gpu: Arc::clone(gpu), handle })
    }

    /// The driver handle.
    pub(crate) fn handle(&self) -> Handle {
        self.handle
    }

    /// Waits for all work.
    pub(crate) fn synchronise(&self) -> Result<()> {
        // SAFETY: the stream lives.
        let code = unsafe { (self.gpu.driver.functions.stream_synchronise)(self.handle) };
        self.gpu.check(code, "stream_synchronise")
    }

    /// Enqueues a memset.
    pub(crate) fn fill(&self, address: Address, value: u8, bytes: usize) -> Result<()> {
        // SAFETY: the plan keeps the range inside a buffer.
        let code = unsafe { (self.gpu.driver.functions.set_bytes)(address, value, bytes, self.handle) };
        self.gpu.check(code, "set_bytes")
    }

    /// Enqueues a device-to-device copy.
    pub(crate) fn copy(&self, to: Address, from: Address, bytes: usize) -> Result<()> {
        // SAFETY: callers keep both ranges inside buffers.
        let code = unsafe { (self.gpu.driver.functions.copy_within)(to, from, bytes, self.handle) };
        self.gpu.check(code, "copy_within")
    }

    /// Uploads bytes synchronously.
    pub(crate) fn write(&self, to: Address, bytes: &[u8]) -> Result<()> {
        self.start_write(to, bytes)?;
        self.synchronise()
    }

    /// Starts an upload. The source must stay unchanged until it completes.
    pub(super) fn start_write(&self, to: Address, bytes: &[u8]) -> Result<()> {
        let from = bytes.as_ptr().cast::<c_void>();
        // SAFETY: the plan keeps the range inside a buffer, and callers wait before the slice goes.
        let code = unsafe { (self.gpu.driver.functions.copy_in)(to, from, bytes.len(), self.handle) };
        self.gpu.check(code, "copy_in")
    }

    /// Downloads bytes synchronously.
    pub(crate) fn read(&self, from: Address, bytes: &mut [u8]) -> Result<()> {
        self.start_read(from, bytes)?;
        self.synchronise()
    }

    /// Starts a download. The target must not be accessed until it completes.
    pub(crate) fn start_read(&self, from: Address, bytes: &mut [u8]) -> Result<()> {
        let to = bytes.as_mut_ptr().cast::<c_void>();
        // SAFETY: the plan keeps the range inside a buffer, and callers wait before the slice goes.
        let code = unsafe { (self.gpu.driver.functions.copy_out)(to, from, bytes.len(), self.handle) };
        self.gpu.check(code, "copy_out")
    }

    /// Makes later work wait for an event of another stream.
    pub(crate) fn wait(&self, moment: &Event) -> Result<()> {
        // SAFETY: event and stream live.
        let code = unsafe { (self.gpu.driver.functions.stream_wait)(self.handle, moment.handle, 0) };
        self.gpu.check(code, "stream_wait")
    }

    /// Launches a kernel; each argument is an address or an encoded tensor map.
    pub(crate) fn launch(
        &self,
        function: &Function,
        grid: [u32; 3],
        block: [u32; 3],
        shared_bytes: u32,
        arguments: &mut [Vec<u64>],
    ) -> Result<()> {
        let mut pointers: Vec<Handle> =
            arguments.iter_mut().map(|argument| argument.as_mut_ptr().cast()).collect();
        let ([gx, gy, gz], [bx, by, bz]) = (grid, block);
        // SAFETY: the kernel takes as many arguments of these sizes; the driver copies them before it returns.
        let code = unsafe {
            (self.gpu.driver.functions.launch)(
                function.handle(),
                gx,
                gy,
                gz,
                bx,
                by,
                bz,
                shared_bytes,
                self.handle,
                pointers.as_mut_ptr(),
                std::ptr::null_mut(),
            )
        };
        self.gpu.check(code, "launch")
    }

    /// Captures the work of a closure into a graph.
    pub(crate) fn record(&self, work: impl FnOnce() -> Result<()>) -> Result<Graph> {
        let functions = &self.gpu.driver.functions;
        // SAFETY: the stream lives.
        self.gpu.check(unsafe { (functions.capture_begin)(self.handle, THREAD_LOCAL) }, "capture_begin")?;
        let worked = work();
        let mut graph = std::ptr::null_mut();
        // SAFETY: the stream lives, and the address is that of a variable. The recording ends in any case.
        let ended = unsafe { (functions.capture_end)(self.handle, &raw mut graph) };
        worked?;
        self.gpu.check(ended, "capture_end")?;
        let mut handle = std::ptr::null_mut();
        // SAFETY: the graph is the one just recorded; what can be launched does not need it any more.
        let made = unsafe {
            let made = (functions.graph_instantiate)(&raw mut handle, graph, 0);
            (functions.graph_destroy)(graph);
            made
        };
        self.gpu.check(made, "graph_instantiate")?;
        Ok(Graph { gpu: Arc::clone(&self.gpu), handle })
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if self.gpu.enter().is_ok() {
            // SAFETY: nobody uses it any more.
            unsafe { (self.gpu.driver.functions.stream_destroy)(self.handle) };
        }
    }
}

/// A captured graph.
pub(crate) struct Graph {
    gpu: Arc<Gpu>,
    handle: Handle,
}

// SAFETY: launched from one thread at a time, by whoever holds it.
unsafe impl Send for Graph {}

impl Graph {
    /// Launches the graph.
    pub(crate) fn launch(&self, stream: &Stream) -> Result<()> {
        // SAFETY: graph and stream live.
        let code = unsafe { (self.gpu.driver.functions.graph_launch)(self.handle, stream.handle) };
        self.gpu.check(code, "graph_launch")
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        if self.gpu.enter().is_ok() {
            // SAFETY: nobody uses it any more.
            unsafe { (self.gpu.driver.functions.graph_exec_destroy)(self.handle) };
        }
    }
}

/// An event.
pub(crate) struct Event {
    gpu: Arc<Gpu>,
    handle: Handle,
}

// SAFETY: events may be used from any thread.
unsafe impl Send for Event {}
// SAFETY: as above, at the same time too.
unsafe impl Sync for Event {}

impl Event {
    /// A new event.
    pub(crate) fn new(gpu: &Arc<Gpu>) -> Result<Self> {
        let mut handle = std::ptr::null_mut();
        // SAFETY: the address is that of a variable.
        gpu.check(unsafe { (gpu.driver.functions.event_create)(&raw mut handle, 0) }, "event_create")?;
        Ok(Self { gpu: Arc::clone(gpu), handle })
    }

    /// Records the event after all work so far.
    pub(crate) fn record(&self, stream: &Stream) -> Result<()> {
        // SAFETY: event and stream live.
        let code = unsafe { (self.gpu.driver.functions.event_record)(self.handle, stream.handle) };
        self.gpu.check(code, "event_record")
    }

    /// Waits for the event.
    pub(crate) fn synchronise(&self) -> Result<()> {
        // SAFETY: the event lives.
        let code = unsafe { (self.gpu.driver.functions.event_synchronise)(self.handle) };
        self.gpu.check(code, "event_synchronise")
    }

    /// The elapsed time since an earlier event; both have completed.
    pub(crate) fn since(&self, earlier: &Event) -> Result<Duration> {
        let mut milliseconds = 0.0f32;
        // SAFETY: both events live, and the address is that of a variable.
        let code = unsafe {
            (self.gpu.driver.functions.event_elapsed)(&raw mut milliseconds, earlier.handle, self.handle)
        };
        self.gpu.check(code, "event_elapsed")?;
        Ok(Duration::from_secs_f64(f64::from(milliseconds.max(0.0)) / 1e3))
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        if self.gpu.enter().is_ok() {
            // SAFETY: nobody uses it any more.
            unsafe { (self.gpu.driver.functions.event_destroy)(self.handle) };
        }
    }
}

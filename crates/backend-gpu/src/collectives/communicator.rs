//! The processes of a group, each with its end of what connects them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{Collectives, UniqueId, check};
use crate::driver::{Address, Gpu, Handle, Stream};
use crate::error::{GpuError, Result};

/// One process's end of a group.
pub(crate) struct Communicator {
    library: Arc<Collectives>,
    gpu: Arc<Gpu>,
    handle: Handle,
    /// The handle is of no more use.
    aborted: AtomicBool,
}

// SAFETY: the process's own thread alone enqueues by the handle; giving up is what the library allows to others.
unsafe impl Send for Communicator {}
// SAFETY: as above.
unsafe impl Sync for Communicator {}

impl Communicator {
    /// Connects processes on these GPUs, in their order.
    ///
    /// # Errors
    ///
    /// When the library cannot connect them.
    pub(super) fn connect(library: &Arc<Collectives>, gpus: &[Arc<Gpu>]) -> Result<Vec<Arc<Self>>> {
        let functions = &library.functions;
        let count = i32::try_from(gpus.len())
            .map_err(|_| GpuError::Other(format!("a group of {} processes is too large", gpus.len())))?;
        let mut id = UniqueId([0; 128]);
        // SAFETY: the address is that of a variable.
        check(unsafe { (functions.unique_id)(&raw mut id) }, "make a communicator")?;
        let mut handles = vec![std::ptr::null_mut(); gpus.len()];
        // One thread connects all: the library starts when the calls of all ranks are there.
        grouped(library, || {
            for ((handle, gpu), rank) in handles.iter_mut().zip(gpus).zip(0..) {
                gpu.enter()?;
                // SAFETY: the address is that of a variable that lives until the group ends.
                let code = unsafe { (functions.initialise)(std::ptr::from_mut(handle), count, id, rank) };
                check(code, "make a communicator")?;
            }
            Ok(())
        })?;
        let ends = handles.into_iter().zip(gpus).map(|(handle, gpu)| Self {
            library: Arc::clone(library),
            gpu: Arc::clone(gpu),
            handle,
            aborted: AtomicBool::new(false),
        });
        Ok(ends.map(Arc::new).collect())
    }

    /// Whether what is enqueued can be recorded.
    pub(crate) fn is_recordable(&self) -> bool {
        self.library.is_recordable()
    }

    /// Enqueues what `work` does as one.
    pub(crate) fn together(&self, work: impl FnOnce() -> Result<()>) -> Result<()> {
        self.handle()?;
        grouped(&self.library, work)
    }

    /// Folds `count` elements of all, for all.
    pub(crate) fn all_reduce(
        &self,
        from: Address,
        to: Address,
        count: usize,
        by: Reduction,
        stream: &Stream,
    ) -> Result<()> {
        self.fold(self.library.functions.all_reduce, [from, to], count, by, stream)
    }

    /// Folds the elements of all; each gets `count` of them.
    pub(crate) fn reduce_scatter(
        &self,
        from: Address,
        to: Address,
        count: usize,
        by: Reduction,
        stream: &Stream,
    ) -> Result<()> {
        self.fold(self.library.functions.reduce_scatter, [from, to], count, by, stream)
    }

    fn fold(
        &self,
        by_library: unsafe extern "C" fn(Address, Address, usize, i32, i32, Handle, Handle) -> i32,
        [from, to]: [Address; 2],
        count: usize,
        by: Reduction,
        stream: &Stream,
    ) -> Result<()> {
        let (handle, Reduction { element, operation }) = (self.handle()?, by);
        // SAFETY: handle and stream live, and the plan keeps both ranges inside buffers.
        let code = unsafe { by_library(from, to, count, element, operation, handle, stream.handle()) };
        check(code, "reduce among all")
    }

    /// Gathers so many bytes of each, for all.
    pub(crate) fn all_gather(&self, from: Address, to: Address, bytes: usize, stream: &Stream) -> Result<()> {
        let handle = self.handle()?;
        // SAFETY: as above.
        let code =
            unsafe { (self.library.functions.all_gather)(from, to, bytes, BYTE, handle, stream.handle()) };
        check(code, "gather for all")
    }

    /// Gives bytes of one to all.
    pub(crate) fn broadcast(
        &self,
        from: Address,
        to: Address,
        bytes: usize,
        root: usize,
        stream: &Stream,
    ) -> Result<()> {
        let (handle, root) = (self.handle()?, rank(root)?);
        // SAFETY: as above.
        let code = unsafe {
            (self.library.functions.broadcast)(from, to, bytes, BYTE, root, handle, stream.handle())
        };
        check(code, "broadcast")
    }

    /// Sends bytes to another.
    pub(crate) fn send(&self, from: Address, bytes: usize, peer: usize, stream: &Stream) -> Result<()> {
        let (handle, peer) = (self.handle()?, rank(peer)?);
        // SAFETY: as above.
        let code = unsafe { (self.library.functions.send)(from, bytes, BYTE, peer, handle, stream.handle()) };
        check(code, "send")
    }

    /// Receives bytes from another.
    pub(crate) fn receive(&self, to: Address, bytes: usize, peer: usize, stream: &Stream) -> Result<()> {
        let (handle, peer) = (self.handle()?, rank(peer)?);
        // SAFETY: as above.
        let code =
            unsafe { (self.library.functions.receive)(to, bytes, BYTE, peer, handle, stream.handle()) };
        check(code, "receive")
    }

    /// Ends what waits for others that will not come; nothing can be exchanged any more. Returns when nothing is
    /// recorded any more that would exchange something.
    pub(crate) fn abort(&self) {
        if !self.aborted.swap(true, Ordering::AcqRel) {
            // SAFETY: the handle is not used after this: every other use looks at `aborted` first.
            let code = unsafe { (self.library.functions.abort)(self.handle) };
            if let Err(error) = check(code, "abort a communicator") {
                tracing::warn!(%error, "a communicator is left as it is");
            }
        }
    }

    fn handle(&self) -> Result<Handle> {
        match self.aborted.load(Ordering::Acquire) {
            false => Ok(self.handle),
            true => Err(GpuError::Other("another process failed; compile the program again".to_owned())),
        }
    }
}

impl Drop for Communicator {
    fn drop(&mut self) {
        if !self.aborted.load(Ordering::Acquire) && self.gpu.enter().is_ok() {
            // SAFETY: nobody uses it any more.
            unsafe { (self.library.functions.destroy)(self.handle) };
        }
    }
}

/// Bytes, by the library's number for their type.
const BYTE: i32 = 1;

/// The numbers of a type of elements and of an operation on them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Reduction {
    pub(super) element: i32,
    pub(super) operation: i32,
}

fn rank(place: usize) -> Result<i32> {
    i32::try_from(place).map_err(|_| GpuError::Other(format!("there is no process {place}")))
}

/// Calls that belong together; the group ends in any case.
fn grouped(library: &Collectives, work: impl FnOnce() -> Result<()>) -> Result<()> {
    let functions = &library.functions;
    // SAFETY: the functions take nothing; a group is ended by the thread that began it.
    check(unsafe { (functions.group_begin)() }, "begin a group of calls")?;
    let worked = work();
    // SAFETY: as above.
    let ended = unsafe { (functions.group_end)() };
    worked?;
    check(ended, "end a group of calls")
}

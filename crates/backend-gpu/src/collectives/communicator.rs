//! Communicators of process groups.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{CollectiveLibrary, UniqueId, check};
use crate::driver::{Address, Gpu, Handle, Stream};
use crate::error::{GpuError, Result};

/// The communicator of one rank.
pub(crate) struct Communicator {
    library: Arc<CollectiveLibrary>,
    gpu: Arc<Gpu>,
    handle: Handle,
    /// Whether the handle has been aborted.
    aborted: AtomicBool,
}

// SAFETY: one thread at a time enqueues by the handle: that of the process in a grid, and the holder of a lock among ranks. To abort is
// what the library allows to others meanwhile.
unsafe impl Send for Communicator {}
// SAFETY: as above.
unsafe impl Sync for Communicator {}

impl Communicator {
    /// Connects the processes on these GPUs, in rank order.
    ///
    /// # Errors
    ///
    /// When the library fails to connect them.
    pub(super) fn connect(library: &Arc<CollectiveLibrary>, gpus: &[Arc<Gpu>]) -> Result<Vec<Arc<Self>>> {
        let functions = &library.functions;
        let count = i32::try_from(gpus.len())
            .map_err(|_| GpuError::Other(format!("a group of {} processes is too large", gpus.len())))?;
        let id = library.unique_id()?;
        let mut handles = vec![std::ptr::null_mut(); gpus.len()];
        // One thread connects all ranks: initialisation completes when all ranks have called it.
        grouped(library, || {
            for ((handle, gpu), rank) in handles.iter_mut().zip(gpus).zip(0..) {
                gpu.enter()?;
                // SAFETY: the address is that of a variable that lives until the group ends.
                let code = unsafe { (functions.initialise)(std::ptr::from_mut(handle), count, id, rank) };
                check(code, "make a communicator")?;
            }
            Ok(())
        })?;
        let all = handles.into_iter().zip(gpus).map(|(handle, gpu)| Self::new(library, gpu, handle));
        Ok(all.map(Arc::new).collect())
    }

    /// Joins the ranks that do the same with this identifier, each in a process of its own, and waits for them.
    ///
    /// # Errors
    ///
    /// When the library fails to connect them.
    pub(crate) fn join(
        library: &Arc<CollectiveLibrary>,
        gpu: &Arc<Gpu>,
        id: UniqueId,
        rank: usize,
        size: usize,
    ) -> Result<Self> {
        let (rank, size) = (rank_number(rank)?, rank_number(size)?);
        let mut handle = std::ptr::null_mut();
        gpu.enter()?;
        // SAFETY: the address is that of a variable.
        let code = unsafe { (library.functions.initialise)(&raw mut handle, size, id, rank) };
        check(code, "join a communicator")?;
        Ok(Self::new(library, gpu, handle))
    }

    fn new(library: &Arc<CollectiveLibrary>, gpu: &Arc<Gpu>, handle: Handle) -> Self {
        let (library, gpu) = (Arc::clone(library), Arc::clone(gpu));
        Self { library, gpu, handle, aborted: AtomicBool::new(false) }
    }

    /// Whether its calls can be captured into a graph.
    pub(crate) fn is_capturable(&self) -> bool {
        self.library.is_capturable()
    }

    /// Enqueues several calls as one group.
    pub(crate) fn grouped_calls(&self, work: impl FnOnce() -> Result<()>) -> Result<()> {
        self.handle()?;
        grouped(&self.library, work)
    }

    /// All-reduces `count` elements.
    pub(crate) fn all_reduce(
        &self,
        from: Address,
        to: Address,
        count: usize,
        by: Reduction,
        stream: &Stream,
    ) -> Result<()> {
        self.reduce(self.library.functions.all_reduce, [from, to], count, by, stream)
    }

    /// Reduce-scatters; each rank gets `count` elements.
    pub(crate) fn reduce_scatter(
        &self,
        from: Address,
        to: Address,
        count: usize,
        by: Reduction,
        stream: &Stream,
    ) -> Result<()> {
        self.reduce(self.library.functions.reduce_scatter, [from, to], count, by, stream)
    }

    fn reduce(
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

    /// All-gathers this number of bytes per rank.
    pub(crate) fn all_gather(&self, from: Address, to: Address, bytes: usize, stream: &Stream) -> Result<()> {
        let handle = self.handle()?;
        // SAFETY: as above.
        let code =
            unsafe { (self.library.functions.all_gather)(from, to, bytes, BYTE, handle, stream.handle()) };
        check(code, "gather for all")
    }

    /// Broadcasts bytes.
    pub(crate) fn broadcast(
        &self,
        from: Address,
        to: Address,
        bytes: usize,
        root: usize,
        stream: &Stream,
    ) -> Result<()> {
        let (handle, root) = (self.handle()?, rank_number(root)?);
        // SAFETY: as above.
        let code = unsafe {
            (self.library.functions.broadcast)(from, to, bytes, BYTE, root, handle, stream.handle())
        };
        check(code, "broadcast")
    }

    /// Sends bytes to a rank.
    pub(crate) fn send(&self, from: Address, bytes: usize, peer: usize, stream: &Stream) -> Result<()> {
        let (handle, peer) = (self.handle()?, rank_number(peer)?);
        // SAFETY: as above.
        let code = unsafe { (self.library.functions.send)(from, bytes, BYTE, peer, handle, stream.handle()) };
        check(code, "send")
    }

    /// Receives bytes from a rank.
    pub(crate) fn receive(&self, to: Address, bytes: usize, peer: usize, stream: &Stream) -> Result<()> {
        let (handle, peer) = (self.handle()?, rank_number(peer)?);
        // SAFETY: as above.
        let code =
            unsafe { (self.library.functions.receive)(to, bytes, BYTE, peer, handle, stream.handle()) };
        check(code, "receive")
    }

    /// Aborts pending calls; the communicator cannot be used afterwards. Returns when no captured graph uses it any
    /// more.
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

/// The data-type code of bytes.
const BYTE: i32 = 1;

/// The library's codes of an element type and a reduction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Reduction {
    pub(super) element: i32,
    pub(super) operation: i32,
}

fn rank_number(rank: usize) -> Result<i32> {
    i32::try_from(rank).map_err(|_| GpuError::Other(format!("there is no process {rank}")))
}

/// Groups calls; the group is ended on every path.
fn grouped(library: &CollectiveLibrary, work: impl FnOnce() -> Result<()>) -> Result<()> {
    let functions = &library.functions;
    // SAFETY: the functions take nothing; a group is ended by the thread that began it.
    check(unsafe { (functions.group_begin)() }, "begin a group of calls")?;
    let worked = work();
    // SAFETY: as above.
    let ended = unsafe { (functions.group_end)() };
    worked?;
    check(ended, "end a group of calls")
}

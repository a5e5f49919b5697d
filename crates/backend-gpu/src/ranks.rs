//! The GPU of this rank among those of other ranks: NCCL and RCCL between processes.

use std::any::Any;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use warpforge_runtime::{DeviceCollectives, DeviceGroup, DeviceReduction, RankPlace};

use crate::collectives::{CollectiveLibrary, Communicator, Reduction, UniqueId};
use crate::driver::{Address, Gpu, Stream};
use crate::error::{GpuError, Result, runtime_error};

/// How often a rank that connects looks whether the others will.
const LOOK: Duration = Duration::from_millis(50);

/// How long an abort waits for a call that is being queued. A call that takes longer waits for another rank, and the abort is what
/// ends it.
const QUEUING: Duration = Duration::from_secs(1);

/// How long to wait for the cause of a call that failed.
const CAUSE: Duration = Duration::from_secs(2);

/// How long a group that goes waits for its abort.
const ABORTING: Duration = Duration::from_secs(2);

/// A GPU and the library that connects it with others.
pub(crate) struct RankDevice {
    pub(crate) gpu: Arc<Gpu>,
    pub(crate) library: Arc<CollectiveLibrary>,
}

impl RankDevice {
    fn join(
        &self,
        id: &[u8],
        RankPlace { rank, size }: RankPlace,
        failed: &dyn Fn() -> Option<String>,
    ) -> Result<RankGroup> {
        let id = id.try_into().map_err(|_| GpuError::Other(format!("an id of {} bytes", id.len())))?;
        let (sender, receiver) = channel();
        let (library, gpu) = (Arc::clone(&self.library), Arc::clone(&self.gpu));
        // The library waits for the other ranks in this call, however long; a thread that is left in it ends with the process.
        let join = move || drop(sender.send(Communicator::join(&library, &gpu, UniqueId(id), rank, size)));
        let thread = std::thread::Builder::new().name("connect ranks".to_owned()).spawn(join);
        thread.map_err(|error| GpuError::Other(format!("no thread to connect ranks: {error}")))?;
        let communicator = loop {
            match receiver.recv_timeout(LOOK) {
                Ok(made) => break made?,
                Err(RecvTimeoutError::Timeout) => {
                    if let Some(reason) = failed() {
                        return Err(GpuError::Ranks(reason));
                    }
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(GpuError::Other("the thread that connects ranks has ended".to_owned()));
                }
            }
        };
        Ok(RankGroup(Arc::new(Shared {
            gpu: Arc::clone(&self.gpu),
            size,
            communicator: Arc::new(communicator),
            queuing: Arc::default(),
            failure: OnceLock::new(),
            finished: AtomicBool::new(false),
            aborting: Mutex::default(),
        })))
    }

    fn failed(&self, error: &GpuError) -> warpforge_runtime::Error {
        runtime_error(self.gpu.driver.vendor, error)
    }
}

impl DeviceCollectives for RankDevice {
    fn version(&self) -> String {
        self.library.version()
    }

    fn device(&self) -> Option<String> {
        self.gpu.properties.guid.clone()
    }

    fn new_id(&self) -> warpforge_runtime::Result<Vec<u8>> {
        let id = self.gpu.enter().and_then(|()| self.library.unique_id());
        id.map(|id| id.0.to_vec()).map_err(|error| self.failed(&error))
    }

    fn connect(
        &self,
        id: &[u8],
        place: RankPlace,
        failed: &dyn Fn() -> Option<String>,
    ) -> warpforge_runtime::Result<Arc<dyn DeviceGroup>> {
        match self.join(id, place, failed) {
            Ok(group) => Ok(Arc::new(group)),
            Err(error) => Err(self.failed(&error)),
        }
    }
}

/// The GPU of this rank, connected with those of the others. Cheap to clone.
#[derive(Clone)]
pub(crate) struct RankGroup(Arc<Shared>);

struct Shared {
    gpu: Arc<Gpu>,
    size: usize,
    communicator: Arc<Communicator>,
    /// Held while a call is queued.
    queuing: Arc<parking_lot::Mutex<()>>,
    /// Why the group is of no use any more.
    failure: OnceLock<String>,
    finished: AtomicBool,
    aborting: Mutex<Option<JoinHandle<()>>>,
}

impl RankGroup {
    /// The group of a program's calls, where they are made on a GPU of this process.
    ///
    /// # Errors
    ///
    /// When it is another GPU than the program's.
    pub(crate) fn of(reduction: Option<&DeviceReduction>, gpu: &Arc<Gpu>) -> Result<Option<Self>> {
        let Some(reduction) = reduction else { return Ok(None) };
        let group = reduction.group.as_any().downcast_ref::<Self>();
        match group.filter(|group| Arc::ptr_eq(&group.0.gpu, gpu)) {
            Some(group) => Ok(Some(group.clone())),
            None => Err(GpuError::Other(
                "the ranks are connected on another device than the program's".to_owned(),
            )),
        }
    }

    /// How many ranks there are.
    pub(crate) fn size(&self) -> usize {
        self.0.size
    }

    /// Makes the device current on this thread.
    pub(crate) fn enter(&self) -> Result<()> {
        self.0.gpu.enter()
    }

    /// Whether its calls can be captured into a graph.
    pub(crate) fn is_capturable(&self) -> bool {
        self.0.communicator.is_capturable()
    }

    /// Why no result of the group can be trusted any more: what was under way has ended without its values.
    pub(crate) fn check(&self) -> Result<()> {
        match self.0.failure.get() {
            None => Ok(()),
            Some(reason) => Err(GpuError::Ranks(reason.clone())),
        }
    }

    /// Enqueues an all-reduce in place. All ranks do so in one order.
    pub(crate) fn all_reduce(
        &self,
        values: Address,
        count: usize,
        by: Reduction,
        stream: &Stream,
    ) -> Result<()> {
        let queuing = self.0.queuing.lock();
        self.check()?;
        let queued = self.0.communicator.all_reduce(values, values, count, by, stream);
        drop(queuing);
        queued.map_err(|error| self.cause().unwrap_or(error))
    }

    /// Why a call failed, where that is known soon: the library does not say which rank is gone.
    fn cause(&self) -> Option<GpuError> {
        let begin = Instant::now();
        loop {
            match self.check() {
                Err(cause) => return Some(cause),
                Ok(()) if begin.elapsed() > CAUSE => return None,
                Ok(()) => std::thread::sleep(LOOK),
            }
        }
    }
}

impl DeviceGroup for RankGroup {
    fn abort(&self, reason: &str) {
        if self.0.failure.set(reason.to_owned()).is_err() {
            return;
        }
        let (communicator, queuing) = (Arc::clone(&self.0.communicator), Arc::clone(&self.0.queuing));
        // It waits for captured graphs to be destroyed.
        let abort = move || {
            let _queuing = queuing.try_lock_for(QUEUING);
            communicator.abort();
        };
        let thread = std::thread::Builder::new().name("abort ranks".to_owned()).spawn(abort);
        match thread {
            Ok(thread) => {
                *self.0.aborting.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
            }
            Err(error) => tracing::warn!(%error, "calls between ranks are left as they are"),
        }
    }

    fn finish(&self) {
        self.0.finished.store(true, Ordering::Release);
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl fmt::Debug for RankGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RankGroup").field("size", &self.0.size).finish_non_exhaustive()
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let aborting = self.aborting.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        match aborting {
            Some(thread) => {
                let begin = Instant::now();
                while !thread.is_finished() && begin.elapsed() < ABORTING {
                    std::thread::sleep(LOOK / 5);
                }
            }
            // To destroy a communicator takes all ranks, some of which may never come.
            None if !self.finished.load(Ordering::Acquire) => self.communicator.abort(),
            None => {}
        }
    }
}

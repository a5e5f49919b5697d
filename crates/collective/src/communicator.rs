//! A process group in a thread of its own: collectives are started, and waited for later.

use std::fmt;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use crate::alone::Alone;
use crate::launch::Engine;
use crate::mpi::MpiGroup;
use crate::ucc::UccGroup;
use crate::{Error, Lost, Numbers, ProcessGroup, TcpGroup, World};

/// Numbers on their way.
#[derive(Debug, Clone, PartialEq)]
pub enum Buffer {
    /// Single precision.
    F32(Vec<f32>),
    /// Double precision.
    F64(Vec<f64>),
}

enum Job {
    Mean(Buffer, Sender<Result<Buffer, Error>>),
    Broadcast(Vec<u8>, usize, Sender<Result<Vec<u8>, Error>>),
    Finish(Sender<Result<(), Error>>),
}

/// Told of a failure.
type Listener = Box<dyn FnOnce(&Error) + Send>;

/// The first failure, after which nothing works any more, and who waits to be told of it.
#[derive(Default)]
struct Health {
    failure: Option<Error>,
    listeners: Vec<Listener>,
}

#[derive(Clone, Default)]
struct Failed(Arc<Mutex<Health>>);

impl Failed {
    fn lock(&self) -> MutexGuard<'_, Health> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn known(&self) -> Option<Error> {
        self.lock().failure.clone()
    }

    /// Keeps the first failure and tells of it.
    fn set(&self, error: &Error) {
        let mut health = self.lock();
        if health.failure.is_some() {
            return;
        }
        health.failure = Some(error.clone());
        let listeners = std::mem::take(&mut health.listeners);
        drop(health);
        listeners.into_iter().for_each(|listener| listener(error));
    }

    fn listen(&self, listener: Listener) {
        let mut health = self.lock();
        match health.failure.clone() {
            None => health.listeners.push(listener),
            Some(error) => {
                drop(health);
                listener(&error);
            }
        }
    }
}

impl fmt::Debug for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.known(), f)
    }
}

/// A collective that was started.
#[derive(Debug)]
pub struct Pending<T>(Receiver<Result<T, Error>>);

impl<T> Pending<T> {
    /// Waits for its end.
    ///
    /// # Errors
    ///
    /// When a rank is gone, or at another operation.
    pub fn wait(self) -> Result<T, Error> {
        self.0.recv().map_err(|_| Error::Ended)?
    }
}

/// A process group whose collectives run in the order in which they are started, beside what the caller computes.
#[derive(Debug)]
pub struct Communicator {
    rank: usize,
    size: usize,
    engine: &'static str,
    jobs: Option<Sender<Job>>,
    failed: Failed,
    thread: Option<JoinHandle<()>>,
}

impl Communicator {
    /// Joins the other ranks of a world. `lost` is called when a rank is found to be gone, at once, whatever this one is doing;
    /// engines that end all ranks by themselves, as MPI does, do not call it.
    ///
    /// # Errors
    ///
    /// When the ranks do not find each other.
    pub fn open(world: World, lost: Lost) -> Result<Self, Error> {
        let World { rank, size, engine, .. } = world;
        let failed = Failed::default();
        let known = failed.clone();
        let lost: Lost = Arc::new(move |error| {
            known.set(error);
            lost(error);
        });
        // MPI and UCC want all calls from the thread that they were started in.
        Self::start_thread(failed, move || match engine {
            Engine::Alone => Ok(Box::new(Alone)),
            Engine::Tcp(meeting) => Ok(Box::new(TcpGroup::open(rank, size, meeting, lost)?)),
            Engine::Mpi(library) => Ok(Box::new(MpiGroup::open(library)?)),
            Engine::Ucc(meeting) => Ok(Box::new(UccGroup::open(rank, size, meeting, lost)?)),
        })
    }

    /// Runs a group that the function makes.
    ///
    /// # Errors
    ///
    /// Those of the function.
    pub fn run(
        open: impl FnOnce() -> Result<Box<dyn ProcessGroup>, Error> + Send + 'static,
    ) -> Result<Self, Error> {
        Self::start_thread(Failed::default(), open)
    }

    fn start_thread(
        failed: Failed,
        open: impl FnOnce() -> Result<Box<dyn ProcessGroup>, Error> + Send + 'static,
    ) -> Result<Self, Error> {
        let (jobs, waiting) = channel();
        let (ready, opened) = channel();
        let shared = failed.clone();
        let thread = std::thread::Builder::new().name("collectives".to_owned()).spawn(move || {
            let mut group = match open() {
                Ok(group) => group,
                Err(error) => return drop(ready.send(Err(error))),
            };
            let _ = ready.send(Ok((group.rank(), group.size(), group.engine())));
            work(group.as_mut(), &waiting, &shared);
        });
        let thread = thread.map_err(|_| Error::Ended)?;
        let (rank, size, engine) = opened.recv().map_err(|_| Error::Ended)??;
        Ok(Self { rank, size, engine, jobs: Some(jobs), failed, thread: Some(thread) })
    }

    /// This rank, from 0.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// How many ranks there are.
    #[must_use]
    pub fn size(&self) -> usize {
        self.size
    }

    /// The name of the engine.
    #[must_use]
    pub fn engine(&self) -> &'static str {
        self.engine
    }

    /// Why the group is of no use any more.
    #[must_use]
    pub fn failure(&self) -> Option<Error> {
        self.failed.known()
    }

    /// Calls a function once the group is of no use any more, from whatever thread finds that out: at once where it is so already.
    pub fn on_failure(&self, listener: impl FnOnce(&Error) + Send + 'static) {
        self.failed.listen(Box::new(listener));
    }

    /// Starts to average numbers over all ranks.
    #[must_use]
    pub fn mean(&self, numbers: Buffer) -> Pending<Buffer> {
        self.start(|done| Job::Mean(numbers, done))
    }

    /// Gives all ranks the bytes of one; the others give as many of any content.
    ///
    /// # Errors
    ///
    /// When a rank is gone, or at another operation.
    pub fn broadcast(&self, bytes: Vec<u8>, root: usize) -> Result<Vec<u8>, Error> {
        self.start(|done| Job::Broadcast(bytes, root, done)).wait()
    }

    /// Leaves the group in peace. A communicator that is dropped without is missed by the other ranks.
    ///
    /// # Errors
    ///
    /// When the engine cannot.
    pub fn finish(&self) -> Result<(), Error> {
        self.start(Job::Finish).wait()
    }

    fn start<T>(&self, job: impl FnOnce(Sender<Result<T, Error>>) -> Job) -> Pending<T> {
        let (done, pending) = channel();
        // A thread that has ended drops the sender: whoever waits is told so.
        if let Some(jobs) = &self.jobs {
            let _ = jobs.send(job(done));
        }
        Pending(pending)
    }
}

impl Drop for Communicator {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn work(group: &mut dyn ProcessGroup, jobs: &Receiver<Job>, failed: &Failed) {
    for job in jobs {
        match job {
            Job::Mean(numbers, done) => {
                answer(failed, &done, || mean(group, numbers));
            }
            Job::Broadcast(mut bytes, root, done) => {
                answer(failed, &done, || group.broadcast(&mut bytes, root).map(|()| bytes));
            }
            Job::Finish(done) => {
                answer(failed, &done, || group.finish());
                return;
            }
        }
    }
}

/// Runs a collective unless one failed before, and hands over what comes of it.
fn answer<T>(
    failed: &Failed,
    done: &Sender<Result<T, Error>>,
    collective: impl FnOnce() -> Result<T, Error>,
) {
    let result = match failed.known() {
        Some(error) => Err(error),
        None => collective(),
    };
    if let Err(error) = &result {
        failed.set(error);
    }
    let _ = done.send(result);
}

fn mean(group: &mut dyn ProcessGroup, mut numbers: Buffer) -> Result<Buffer, Error> {
    let count = group.size();
    match &mut numbers {
        Buffer::F32(values) => {
            group.sum(Numbers::F32(values))?;
            values.iter_mut().for_each(|value| *value /= count as f32);
        }
        Buffer::F64(values) => {
            group.sum(Numbers::F64(values))?;
            values.iter_mut().for_each(|value| *value /= count as f64);
        }
    }
    Ok(numbers)
}

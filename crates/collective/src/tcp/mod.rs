//! Ranks that are connected by TCP: a ring for values, and a line of each rank to rank 0 that shows who is alive.

mod rendezvous;
mod ring;
mod watch;

use std::net::TcpListener;
use std::sync::Arc;

pub use self::rendezvous::listen;
use self::ring::Ring;
use self::watch::Watch;
use crate::{Error, Numbers, ProcessGroup};

/// Called once, from another thread, when a rank is gone.
pub type Lost = Arc<dyn Fn(&Error) + Send + Sync>;

/// Where the ranks meet.
#[derive(Debug)]
pub struct Meeting {
    /// The host of rank 0.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// The port, bound already, where this rank is 0.
    pub listener: Option<TcpListener>,
}

/// A process group over TCP.
pub struct TcpGroup {
    rank: usize,
    size: usize,
    ring: Ring,
    watch: Watch,
}

impl TcpGroup {
    /// Joins the other ranks where they meet.
    ///
    /// # Errors
    ///
    /// When the ranks do not find each other.
    pub fn open(rank: usize, size: usize, meeting: Meeting, lost: Lost) -> Result<Self, Error> {
        let links = rendezvous::meet(rank, size, meeting)?;
        let ring = Ring::new(rank, size, links.next, links.previous)?;
        let watch = Watch::start(rank, links.control, ring.handles()?, lost)?;
        Ok(Self { rank, size, ring, watch })
    }

    /// Gathers as many bytes of each rank, in the order of the ranks: `all` has room for those of all.
    pub(crate) fn all_gather(&mut self, own: &[u8], all: &mut [u8]) -> Result<(), Error> {
        let result = self.ring.all_gather(own, all);
        self.known(result)
    }

    /// The rank that is gone, where that is known.
    pub(crate) fn lost(&self) -> Option<Error> {
        self.watch.known()
    }

    /// Why a rank is gone, where that becomes known soon.
    pub(crate) fn cause(&self) -> Option<Error> {
        self.watch.cause()
    }

    /// An error of the ring with what the watch knows about its cause.
    fn known<T>(&self, result: Result<T, Error>) -> Result<T, Error> {
        match result {
            Err(error @ Error::Lost { .. }) => Err(self.cause().unwrap_or(error)),
            other => other,
        }
    }
}

impl ProcessGroup for TcpGroup {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn engine(&self) -> &'static str {
        "tcp"
    }

    fn sum(&mut self, numbers: Numbers<'_>) -> Result<(), Error> {
        let result = match numbers {
            Numbers::F32(values) => self.ring.all_reduce(values),
            Numbers::F64(values) => self.ring.all_reduce(values),
        };
        self.known(result)
    }

    fn broadcast(&mut self, bytes: &mut [u8], root: usize) -> Result<(), Error> {
        let result = self.ring.broadcast(bytes, root);
        self.known(result)
    }

    fn finish(&mut self) -> Result<(), Error> {
        // Who leaves while others are at work would close their ring.
        let mut nothing = [0.0f32];
        self.sum(Numbers::F32(&mut nothing))?;
        self.watch.leave();
        Ok(())
    }
}

#[cfg(test)]
mod tests;

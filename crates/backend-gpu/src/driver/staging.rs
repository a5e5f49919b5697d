//! Bytes of the host on their way to the device: copied into pinned memory part by part, so that the device takes one part
//! while the host fills the next, and the host goes on while the device takes the last.

use std::sync::Arc;

use super::{Address, Event, Gpu, Pinned, Stream};
use crate::error::Result;

/// Bytes of a part.
const PART: usize = 4 << 20;

/// Two parts of pinned memory that are filled in turn.
pub(crate) struct Staging {
    parts: [Part; 2],
    next: usize,
}

struct Part {
    pinned: Pinned,
    /// When the device has taken what is in it.
    taken: Event,
    busy: bool,
}

impl Part {
    fn new(gpu: &Arc<Gpu>) -> Result<Self> {
        Ok(Self { pinned: Pinned::new(gpu, PART)?, taken: Event::new(gpu)?, busy: false })
    }

    fn wait(&mut self) -> Result<()> {
        if std::mem::take(&mut self.busy) { self.taken.synchronise() } else { Ok(()) }
    }
}

impl Staging {
    /// Memory from the pool.
    pub(crate) fn new(gpu: &Arc<Gpu>) -> Result<Self> {
        Ok(Self { parts: [Part::new(gpu)?, Part::new(gpu)?], next: 0 })
    }

    /// Copies bytes to the device in the order of a stream's work. They may be changed when this returns, whether or not
    /// they have arrived.
    pub(crate) fn write(&mut self, stream: &Stream, to: Address, bytes: &[u8]) -> Result<()> {
        let mut at = to;
        for piece in bytes.chunks(PART) {
            let part = &mut self.parts[self.next % 2];
            self.next += 1;
            part.wait()?;
            let place = &mut part.pinned.bytes_mut()[..piece.len()];
            place.copy_from_slice(piece);
            // The part is neither written nor given back before the device has taken it.
            part.busy = true;
            stream.start_write(at, place)?;
            part.taken.record(stream)?;
            at += piece.len() as u64;
        }
        Ok(())
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        for part in &mut self.parts {
            // A device that fails takes nothing any more.
            let _ = part.wait();
        }
    }
}

//! Double-buffered uploads through pinned memory.

use std::sync::Arc;

use super::functions::Address;
use super::gpu::{Gpu, Pinned};
use super::stream::{Event, Stream};
use crate::error::Result;

/// Bytes per staging buffer.
const BUFFER_BYTES: usize = 4 << 20;

/// Two staging buffers, used alternately.
pub(crate) struct Staging {
    buffers: [StagingBuffer; 2],
    next: usize,
}

struct StagingBuffer {
    pinned: Pinned,
    /// When the device has read it.
    taken: Event,
    busy: bool,
}

impl StagingBuffer {
    fn new(gpu: &Arc<Gpu>) -> Result<Self> {
        Ok(Self { pinned: Pinned::new(gpu, BUFFER_BYTES)?, taken: Event::new(gpu)?, busy: false })
    }

    fn wait(&mut self) -> Result<()> {
        if std::mem::take(&mut self.busy) { self.taken.synchronise() } else { Ok(()) }
    }
}

impl Staging {
    /// Allocates the staging buffers.
    pub(crate) fn new(gpu: &Arc<Gpu>) -> Result<Self> {
        Ok(Self { buffers: [StagingBuffer::new(gpu)?, StagingBuffer::new(gpu)?], next: 0 })
    }

    /// Enqueues an upload on a stream. The source may be changed when this returns.
    pub(crate) fn write(&mut self, stream: &Stream, to: Address, bytes: &[u8]) -> Result<()> {
        let mut at = to;
        for piece in bytes.chunks(BUFFER_BYTES) {
            let buffer = &mut self.buffers[self.next % 2];
            self.next += 1;
            buffer.wait()?;
            let target = &mut buffer.pinned.bytes_mut()[..piece.len()];
            target.copy_from_slice(piece);
            // The buffer is reused or freed only after the device has read it.
            buffer.busy = true;
            stream.start_write(at, target)?;
            buffer.taken.record(stream)?;
            at += piece.len() as u64;
        }
        Ok(())
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        for buffer in &mut self.buffers {
            // A failed device reads nothing any more.
            let _ = buffer.wait();
        }
    }
}

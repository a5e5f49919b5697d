//! The way of a run's inputs and outputs beside the work of other runs: a stream of copies, and memory of its own.
//!
//! A program's steps know the addresses that they read and write, so one run at a time computes. What it was given before
//! and what it gives after travels meanwhile, on as many lanes as there are runs at a time.

use std::sync::Arc;

use warpforge_tensor::{Blob, Tensor};

use crate::driver::{Buffer, Event, Gpu, Pinned, Staging, Stream};
use crate::error::{GpuError, Result};

/// A stream of copies with what one run needs beside it.
pub(crate) struct Lane {
    gpu: Arc<Gpu>,
    stream: Stream,
    staging: Staging,
    /// When the inputs are on the device, and when the outputs are computed.
    arrived: Event,
    computed: Event,
}

impl Lane {
    /// A lane of a device.
    pub(crate) fn new(gpu: &Arc<Gpu>) -> Result<Self> {
        Ok(Self {
            stream: Stream::new(gpu)?,
            staging: Staging::new(gpu)?,
            arrived: Event::new(gpu)?,
            computed: Event::new(gpu)?,
            gpu: Arc::clone(gpu),
        })
    }

    /// Brings inputs to the device, each to memory of this run alone.
    pub(crate) fn bring(&mut self, inputs: &[Tensor]) -> Result<Vec<Buffer>> {
        self.gpu.enter()?;
        let mut brought = Vec::with_capacity(inputs.len());
        for tensor in inputs {
            let buffer = self.gpu.allocate(tensor.bytes().len())?;
            self.staging.write(&self.stream, buffer.address(), tensor.bytes())?;
            brought.push(buffer);
        }
        self.arrived.record(&self.stream)?;
        Ok(brought)
    }

    /// Memory of this run alone for outputs of these sizes.
    pub(crate) fn room(&self, sizes: &[usize]) -> Result<Vec<Buffer>> {
        sizes.iter().map(|&bytes| self.gpu.allocate(bytes)).collect()
    }

    /// Puts inputs where steps read them, after the work that a stream has so far.
    pub(crate) fn hand_in<'b>(&self, stream: &Stream, copies: impl Iterator<Item = Moved<'b>>) -> Result<()> {
        stream.wait(&self.arrived)?;
        copy_all(stream, copies)
    }

    /// Takes outputs from where steps wrote them, so that the next run may write there.
    pub(crate) fn take_out<'b>(
        &self,
        stream: &Stream,
        copies: impl Iterator<Item = Moved<'b>>,
    ) -> Result<()> {
        copy_all(stream, copies)?;
        self.computed.record(stream)
    }

    /// Waits for outputs and brings them to the host.
    pub(crate) fn bring_back(&self, taken: &[Buffer], sizes: &[usize]) -> Result<Vec<Blob>> {
        let back: Result<Vec<Pinned>> = sizes.iter().map(|&bytes| Pinned::new(&self.gpu, bytes)).collect();
        let mut back = back?;
        let started = self.stream.wait(&self.computed).and_then(|()| {
            let mut pairs = taken.iter().zip(&mut back);
            pairs
                .try_for_each(|(buffer, pinned)| self.stream.start_read(buffer.address(), pinned.bytes_mut()))
        });
        // Nothing is given back to the pools while the device may still write there.
        let ended = self.stream.synchronise();
        started.and(ended)?;
        Ok(back.into_iter().map(Blob::new).collect())
    }
}

/// A copy inside the device: from, to, bytes.
type Moved<'b> = (&'b Buffer, &'b Buffer, usize);

fn copy_all<'b>(stream: &Stream, mut copies: impl Iterator<Item = Moved<'b>>) -> Result<()> {
    copies.try_for_each(|(from, to, bytes)| {
        if bytes > from.bytes() || bytes > to.bytes() {
            return Err(GpuError::Other("a value is larger than its place".to_owned()));
        }
        if bytes == 0 { Ok(()) } else { stream.copy(to.address(), from.address(), bytes) }
    })
}

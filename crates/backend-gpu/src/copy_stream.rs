//! Copy streams: transfers of a run's inputs and outputs that overlap with other runs.
//!
//! Steps have fixed addresses, so one run computes at a time. Its transfers use a stream and buffers of their own and
//! overlap with the computation of other runs.

use std::sync::Arc;

use warpforge_tensor::{Blob, Tensor};

use crate::driver::{Buffer, Event, Gpu, Pinned, Staging, Stream};
use crate::error::{GpuError, Result};

/// A stream of copies with its staging buffers and events.
pub(crate) struct CopyStream {
    gpu: Arc<Gpu>,
    stream: Stream,
    staging: Staging,
    /// Inputs uploaded, and outputs computed.
    arrived: Event,
    computed: Event,
}

impl CopyStream {
    /// A copy stream of a device.
    pub(crate) fn new(gpu: &Arc<Gpu>) -> Result<Self> {
        Ok(Self {
            stream: Stream::new(gpu)?,
            staging: Staging::new(gpu)?,
            arrived: Event::new(gpu)?,
            computed: Event::new(gpu)?,
            gpu: Arc::clone(gpu),
        })
    }

    /// Uploads inputs to buffers of this run.
    pub(crate) fn upload(&mut self, inputs: &[Tensor]) -> Result<Vec<Buffer>> {
        self.gpu.enter()?;
        let mut buffers = Vec::with_capacity(inputs.len());
        for tensor in inputs {
            let buffer = self.gpu.allocate(tensor.bytes().len())?;
            self.staging.write(&self.stream, buffer.address(), tensor.bytes())?;
            buffers.push(buffer);
        }
        self.arrived.record(&self.stream)?;
        Ok(buffers)
    }

    /// Allocates output buffers of this run.
    pub(crate) fn allocate(&self, sizes: &[usize]) -> Result<Vec<Buffer>> {
        sizes.iter().map(|&bytes| self.gpu.allocate(bytes)).collect()
    }

    /// Copies inputs to the addresses of the steps, after the work of a stream so far.
    pub(crate) fn copy_inputs<'b>(
        &self,
        stream: &Stream,
        copies: impl Iterator<Item = DeviceCopy<'b>>,
    ) -> Result<()> {
        stream.wait(&self.arrived)?;
        copy_all(stream, copies)
    }

    /// Copies outputs from the addresses of the steps, so that the next run may overwrite them.
    pub(crate) fn copy_outputs<'b>(
        &self,
        stream: &Stream,
        copies: impl Iterator<Item = DeviceCopy<'b>>,
    ) -> Result<()> {
        copy_all(stream, copies)?;
        self.computed.record(stream)
    }

    /// Downloads outputs to the host.
    pub(crate) fn download(&self, taken: &[Buffer], sizes: &[usize]) -> Result<Vec<Blob>> {
        let back: Result<Vec<Pinned>> = sizes.iter().map(|&bytes| Pinned::new(&self.gpu, bytes)).collect();
        let mut back = back?;
        let started = self.stream.wait(&self.computed).and_then(|()| {
            let mut pairs = taken.iter().zip(&mut back);
            pairs
                .try_for_each(|(buffer, pinned)| self.stream.start_read(buffer.address(), pinned.bytes_mut()))
        });
        // Buffers return to the pools only after the device has finished with them.
        let ended = self.stream.synchronise();
        started.and(ended)?;
        Ok(back.into_iter().map(Blob::new).collect())
    }
}

/// A device-to-device copy: from, to, bytes.
type DeviceCopy<'b> = (&'b Buffer, &'b Buffer, usize);

fn copy_all<'b>(stream: &Stream, mut copies: impl Iterator<Item = DeviceCopy<'b>>) -> Result<()> {
    copies.try_for_each(|(from, to, bytes)| {
        if bytes > from.bytes() || bytes > to.bytes() {
            return Err(GpuError::Other("a value is larger than its place".to_owned()));
        }
        if bytes == 0 { Ok(()) } else { stream.copy(to.address(), from.address(), bytes) }
    })
}

//! Peak throughput of a GPU: GEMMs in each format, multiply-adds without tensor cores, copies; dense linear systems.

mod copy;
mod fma;
mod format;
mod gemm;
mod linear_system;

use std::sync::Arc;
use std::time::Duration;

pub use copy::{CopyProbe, Direction};
pub use fma::FmaProbe;
pub use format::NumericFormat;
pub use gemm::GemmProbe;
pub use linear_system::{FactorType, LinearSystem, Solution};

use crate::driver::{Buffer, Driver, Event, Gpu, Stream};
use crate::error::Result;
use crate::vendor::Vendor;

/// A GPU under measurement.
pub struct Probe {
    gpu: Arc<Gpu>,
    stream: Stream,
    events: [Event; 2],
}

impl Probe {
    /// Opens a GPU.
    ///
    /// # Errors
    ///
    /// When there is no driver or no such device.
    pub fn open(vendor: Vendor, number: u32) -> Result<Self> {
        Self::with(Gpu::open(Driver::of(vendor)?, number)?)
    }

    /// Wraps an opened device.
    fn with(gpu: Arc<Gpu>) -> Result<Self> {
        let stream = Stream::new(&gpu)?;
        let events = [Event::new(&gpu)?, Event::new(&gpu)?];
        Ok(Self { gpu, stream, events })
    }

    /// The device's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.gpu.properties.name
    }

    /// The identifier that the vendor's management library and sysfs use, if available.
    #[must_use]
    pub fn guid(&self) -> Option<&str> {
        self.gpu.properties.guid.as_deref()
    }

    /// Free and total bytes of its memory.
    ///
    /// # Errors
    ///
    /// When the device fails.
    pub fn memory(&self) -> Result<(usize, usize)> {
        self.gpu.enter()?;
        self.gpu.memory()
    }

    fn timed(&self, work: impl FnOnce() -> Result<()>) -> Result<Duration> {
        let [begin, end] = &self.events;
        self.gpu.enter()?;
        begin.record(&self.stream)?;
        work()?;
        end.record(&self.stream)?;
        self.stream.synchronise()?;
        end.since(begin)
    }

    fn filled(&self, bytes: usize, pattern: &[u8]) -> Result<Buffer> {
        let buffer = self.gpu.allocate(bytes)?;
        for start in (0..bytes).step_by(pattern.len().max(1)) {
            let length = pattern.len().min(bytes - start);
            self.stream.write(buffer.address() + start as u64, &pattern[..length])?;
        }
        Ok(buffer)
    }
}

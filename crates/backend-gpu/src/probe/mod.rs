//! What a GPU can do at most: products in each precision, multiply-adds of its ordinary units, copies on the device and
//! from and to the host.

mod chain;
mod copy;
mod numbers;
mod product;

use std::sync::Arc;
use std::time::Duration;

pub use chain::ChainProbe;
pub use copy::{CopyProbe, Direction};
pub use numbers::Numbers;
pub use product::ProductProbe;

use crate::driver::{Buffer, Driver, Event, Gpu, Stream};
use crate::error::Result;
use crate::library::Vendor;

/// A GPU whose limits are measured.
pub struct Probe {
    gpu: Arc<Gpu>,
    stream: Stream,
    moments: [Event; 2],
}

impl Probe {
    /// Opens a GPU.
    ///
    /// # Errors
    ///
    /// When there is no driver or no such device.
    pub fn open(vendor: Vendor, number: u32) -> Result<Self> {
        let gpu = Gpu::open(Driver::of(vendor)?, number)?;
        let stream = Stream::new(&gpu)?;
        let moments = [Event::new(&gpu)?, Event::new(&gpu)?];
        Ok(Self { gpu, stream, moments })
    }

    /// The device's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.gpu.properties.name
    }

    /// What the vendor's management library and sysfs know the device by, where the driver tells.
    #[must_use]
    pub fn guid(&self) -> Option<&str> {
        self.gpu.properties.guid.as_deref()
    }

    fn timed(&self, work: impl FnOnce() -> Result<()>) -> Result<Duration> {
        let [begin, end] = &self.moments;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_measured_where_there_is_a_gpu() {
        let probe = match Probe::open(Vendor::Cuda, 0) {
            Ok(probe) => probe,
            Err(reason) => {
                eprintln!("skipped: {reason}");
                return;
            }
        };
        let mut copy = CopyProbe::new(&probe, Direction::Within, 64 << 20).unwrap();
        assert!(copy.rate().unwrap() > 1e9);
        for numbers in [Numbers::F32, Numbers::I8] {
            let product = ProductProbe::new(&probe, numbers, 512).unwrap();
            assert!(product.rate().unwrap() > 1e9);
            let chain = ChainProbe::new(&probe, numbers).unwrap().unwrap();
            assert!(chain.rate().unwrap() > 1e9);
        }
    }
}

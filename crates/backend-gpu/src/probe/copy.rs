//! Copies on the device, and from and to the host.

use warpforge_tensor::ElementType;

use super::Probe;
use super::format::pattern;
use crate::driver::{Buffer, Pinned};
use crate::error::Result;

/// The direction of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Host to device.
    In,
    /// Device to host.
    Out,
    /// Device to device.
    Within,
}

impl Direction {
    /// All of them.
    pub const ALL: [Direction; 3] = [Direction::In, Direction::Out, Direction::Within];

    /// The name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Direction::In => "host_to_device",
            Direction::Out => "device_to_host",
            Direction::Within => "device_to_device",
        }
    }
}

/// A copy of random bytes.
pub struct CopyProbe<'p> {
    probe: &'p Probe,
    direction: Direction,
    device: [Buffer; 2],
    host: Pinned,
    bytes: usize,
}

impl<'p> CopyProbe<'p> {
    /// Allocates buffers of this size.
    ///
    /// # Errors
    ///
    /// When out of memory.
    pub fn new(probe: &'p Probe, direction: Direction, bytes: usize) -> Result<Self> {
        let pattern = pattern(ElementType::F32);
        let device = [probe.filled(bytes, &pattern)?, probe.gpu.allocate(bytes)?];
        let host_bytes = if direction == Direction::Within { 1 } else { bytes };
        let mut host = Pinned::new(&probe.gpu, host_bytes)?;
        // Touches the pages.
        host.bytes_mut().fill(1);
        Ok(Self { probe, direction, device, host, bytes })
    }

    /// Copies once and returns bytes per second; a device-to-device copy counts reads and writes.
    ///
    /// # Errors
    ///
    /// When the device fails.
    pub fn rate(&mut self) -> Result<f64> {
        let Self { probe, direction, device: [from, to], host, bytes } = self;
        let stream = &probe.stream;
        let time = probe.timed(|| match direction {
            Direction::In => stream.write(to.address(), host.as_ref()),
            Direction::Out => stream.read(from.address(), host.bytes_mut()),
            Direction::Within => stream.copy(to.address(), from.address(), *bytes),
        })?;
        let moved = if *direction == Direction::Within { 2 * *bytes } else { *bytes };
        Ok(moved as f64 / time.as_secs_f64().max(1e-9))
    }
}

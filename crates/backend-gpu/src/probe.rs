//! What a GPU can do at most: products in each precision, copies on the device and from and to the host.

use std::sync::Arc;
use std::time::Duration;

use warpforge_tensor::{ElementType, FloatType};

use crate::driver::{Buffer, Driver, Event, Gpu, Pinned, Stream};
use crate::error::{GpuError, Result};
use crate::library::Vendor;
use crate::products::{Activation, Matrix, Places, Plan, Product, Products, Sums, WORKSPACE};

/// Random numbers are made for so many bytes and repeated.
const PATTERN_BYTES: usize = 4 << 20;

/// Numbers that products are computed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Numbers {
    /// 64-bit floats.
    F64,
    /// 32-bit floats, without tensor cores.
    F32,
    /// 32-bit floats rounded to 19 bits for the tensor cores.
    Tf32,
    /// 16-bit floats on the tensor cores, sums in 32 bits.
    F16,
    /// The upper half of 32-bit floats on the tensor cores, sums in 32 bits.
    Bf16,
}

impl Numbers {
    /// All of them.
    pub const ALL: [Numbers; 5] = [Numbers::F64, Numbers::F32, Numbers::Tf32, Numbers::F16, Numbers::Bf16];

    /// The word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Numbers::F64 => "f64",
            Numbers::F32 => "f32",
            Numbers::Tf32 => "tf32",
            Numbers::F16 => "f16",
            Numbers::Bf16 => "bf16",
        }
    }

    fn element(self) -> ElementType {
        match self {
            Numbers::F64 => ElementType::F64,
            Numbers::F32 | Numbers::Tf32 => ElementType::F32,
            Numbers::F16 => ElementType::Float(FloatType::F16),
            Numbers::Bf16 => ElementType::Float(FloatType::Bf16),
        }
    }
}

/// From where to where bytes are copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From the host's memory to the device's.
    In,
    /// From the device's memory to the host's.
    Out,
    /// Inside the device's memory.
    Within,
}

impl Direction {
    /// All of them.
    pub const ALL: [Direction; 3] = [Direction::In, Direction::Out, Direction::Within];

    /// The word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Direction::In => "host_to_device",
            Direction::Out => "device_to_host",
            Direction::Within => "device_to_device",
        }
    }
}

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

/// A product of two square matrices of random numbers.
pub struct ProductProbe<'p> {
    probe: &'p Probe,
    plan: Plan,
    /// Operations of one product.
    flops: f64,
    _memory: [Buffer; 4],
}

impl<'p> ProductProbe<'p> {
    /// Fills two matrices and measures which algorithm is the best for them.
    ///
    /// # Errors
    ///
    /// When there is no library of products, no memory, or the library has no such product.
    pub fn new(probe: &'p Probe, numbers: Numbers, size: usize) -> Result<Self> {
        let element = numbers.element();
        let square = size.checked_mul(size).and_then(|count| count.checked_mul(element.byte_width()));
        let bytes = square.ok_or_else(|| GpuError::Other(format!("a matrix of {size} rows is too large")))?;
        let pattern = pattern(element);
        let memory = [
            probe.filled(bytes, &pattern)?,
            probe.filled(bytes, &pattern)?,
            probe.gpu.allocate(bytes)?,
            probe.gpu.allocate(WORKSPACE)?,
        ];
        let matrix = Matrix { element, by_columns: false, stride: size, batch_stride: 0, alignment: 256 };
        let product = Product {
            batch: 1,
            m: size,
            n: size,
            k: size,
            lhs: matrix,
            rhs: matrix,
            out: element,
            sums: match numbers {
                Numbers::F64 => Sums::F64,
                Numbers::Tf32 => Sums::Tf32,
                _ => Sums::F32,
            },
            bias: None,
            activation: Activation::None,
            residual: false,
        };
        let [lhs, rhs, out, workspace] = &memory;
        let places = Places {
            lhs: lhs.address(),
            rhs: rhs.address(),
            out: out.address(),
            workspace: workspace.address(),
            ..Places::default()
        };
        let library = Arc::new(Products::of(&probe.gpu)?);
        let plan = Plan::new(&library, &product, places, &probe.stream)?;
        Ok(Self { probe, plan, flops: 2.0 * (size as f64).powi(3), _memory: memory })
    }

    /// Runs once: operations each second.
    ///
    /// # Errors
    ///
    /// When the device fails.
    pub fn rate(&self) -> Result<f64> {
        let time = self.probe.timed(|| self.plan.run(&self.probe.stream))?;
        Ok(self.flops / time.as_secs_f64().max(1e-9))
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
    /// Memory for copies of so many bytes.
    ///
    /// # Errors
    ///
    /// When there is not so much.
    pub fn new(probe: &'p Probe, direction: Direction, bytes: usize) -> Result<Self> {
        let pattern = pattern(ElementType::F32);
        let device = [probe.filled(bytes, &pattern)?, probe.gpu.allocate(bytes)?];
        let host_bytes = if direction == Direction::Within { 1 } else { bytes };
        let mut host = Pinned::new(&probe.gpu, host_bytes)?;
        // Touched, so that the pages are there.
        host.bytes_mut().fill(1);
        Ok(Self { probe, direction, device, host, bytes })
    }

    /// Copies once: bytes each second; a copy on the device reads and writes, and both count.
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

/// Bytes of random numbers from -1 to 1.
fn pattern(element: ElementType) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut bytes = Vec::with_capacity(PATTERN_BYTES);
    while bytes.len() < PATTERN_BYTES {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let number = (state >> 40) as f32 / (1u32 << 23) as f32 - 1.0;
        match element {
            ElementType::Float(FloatType::F64) => bytes.extend(f64::from(number).to_le_bytes()),
            // The sign, an exponent below one, and the upper bits of the fraction.
            ElementType::Float(FloatType::F16) => {
                let half = ((state >> 48) as u16 & 0x83ff) | 0x3800;
                bytes.extend(half.to_le_bytes());
            }
            ElementType::Float(FloatType::Bf16) => bytes.extend(&number.to_le_bytes()[2..]),
            _ => bytes.extend(number.to_le_bytes()),
        }
    }
    bytes.truncate(PATTERN_BYTES);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_numbers_below_one() {
        for bytes in pattern(ElementType::F32).chunks_exact(4) {
            let number = f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
            assert!(number.abs() <= 1.0, "{number}");
        }
        for bytes in pattern(ElementType::Float(FloatType::F16)).chunks_exact(2) {
            // All exponents are that of numbers from a half to one.
            assert_eq!(u16::from_le_bytes([bytes[0], bytes[1]]) & 0x7c00, 0x3800);
        }
    }

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
        let product = ProductProbe::new(&probe, Numbers::F32, 512).unwrap();
        assert!(product.rate().unwrap() > 1e9);
    }
}

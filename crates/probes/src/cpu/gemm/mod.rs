//! Matrix products: blocked and packed, on the widest arithmetic that the processor has.
//!
//! The right matrix is first copied into panels in the order in which the innermost kernel reads them ([`pack`]); then
//! each thread computes its rows of the result block by block, copying each block of the left matrix just before its
//! use ([`blocked`]). A [`kernel::MicroKernel`] is all that
//! differs between instruction sets.

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod amx;
mod blocked;
mod element;
mod kernel;
mod matrix;
mod pack;
mod portable;
#[cfg(target_arch = "x86_64")]
mod x86;

use std::fmt;
use std::time::Duration;

use super::Dtype;
use crate::memory::MemoryError;
use crate::team::Team;
use blocked::Blocked;
use kernel::MicroKernel;

/// A way to multiply matrices that this processor can run.
#[derive(Debug, Clone, Copy)]
pub struct Gemm {
    dtype: Dtype,
    isa: &'static str,
    product: fn(Shape, usize) -> Result<Box<dyn RunProduct>, MemoryError>,
}

/// The sizes of a product: an `m` by `k` matrix times a `k` by `n` one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Rows of the left matrix and of the result.
    pub m: usize,
    /// Columns of the right matrix and of the result.
    pub n: usize,
    /// Columns of the left matrix and rows of the right one.
    pub k: usize,
}

impl Gemm {
    /// The type of number it multiplies.
    #[must_use]
    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// The instructions it uses, named as in [`super::PeakKernel::isa`].
    #[must_use]
    pub fn isa(&self) -> &'static str {
        self.isa
    }

    /// Two random matrices of this shape, to be multiplied by teams of up to so many threads.
    ///
    /// # Errors
    /// If the system has not enough memory to give.
    pub fn product(&self, shape: Shape, threads: usize) -> Result<Product, MemoryError> {
        Ok(Product { shape, run: (self.product)(shape, threads)? })
    }

    /// The product made by one kernel, where it can run.
    fn of<K: MicroKernel>(dtype: Dtype, isa: &'static str) -> Option<Self> {
        K::detect()?;
        let product = |shape, threads| -> Result<Box<dyn RunProduct>, MemoryError> {
            // A `Gemm` exists only where the kernel does, and a processor keeps its instructions.
            let kernel = K::detect().expect("the kernel was found before");
            Ok(Box::new(Blocked::random(kernel, shape, threads)?))
        };
        Some(Self { dtype, isa, product })
    }
}

/// Two matrices and their product.
pub struct Product {
    shape: Shape,
    run: Box<dyn RunProduct>,
}

impl Product {
    /// Operations in one product; a multiplication and its addition are two.
    #[must_use]
    pub fn ops(&self) -> u64 {
        2 * (self.shape.m * self.shape.n * self.shape.k) as u64
    }

    /// Multiplies the matrices, packing included, on all threads of the team.
    ///
    /// # Panics
    /// If the team is larger than what the product was made for.
    pub fn run(&mut self, team: &mut Team) -> Duration {
        self.run.run(team)
    }
}

impl fmt::Debug for Product {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Product").field("shape", &self.shape).finish_non_exhaustive()
    }
}

/// A product whose types of number are known only to itself.
trait RunProduct {
    fn run(&mut self, team: &mut Team) -> Duration;
}

/// The products that this processor can run, the widest instructions of each [`Dtype`] before its narrower ones. A
/// type without matrix instructions is absent.
#[must_use]
pub fn gemms() -> Vec<Gemm> {
    let mut gemms = Vec::new();
    #[cfg(target_arch = "x86_64")]
    {
        gemms.extend(amx::gemms());
        gemms.extend(x86::gemms());
    }
    #[cfg(target_arch = "aarch64")]
    gemms.extend(aarch64::gemms());
    gemms.extend(portable::gemms());
    gemms
}

//! Matrix multiplications by the engine's GEMM on random operands, for the element types that it multiplies natively.

// The GEMM reads and writes through addresses.
#![allow(unsafe_code)]

use std::fmt;
use std::time::Duration;

use half::bf16;
use thiserror::Error;
use warpforge_kernels::buffer::{AlignedBuffer, AllocationError};
use warpforge_kernels::gemm::{ComputeType, GemmError, Operand, Rhs, Shape as GemmShape};
use warpforge_tensor::ElementType;

use super::Dtype;
use crate::team::Team;

/// Why matrices cannot be multiplied.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(transparent)]
pub struct ProductError(#[from] GemmError);

impl From<AllocationError> for ProductError {
    fn from(error: AllocationError) -> Self {
        Self(error.into())
    }
}

/// The engine's GEMM for one element type.
#[derive(Debug, Clone, Copy)]
pub struct Gemm {
    dtype: Dtype,
    kind: ComputeType,
    isa: &'static str,
}

/// The sizes of a multiplication: an `m` by `k` matrix times a `k` by `n` one.
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
    /// The element type of the operands.
    #[must_use]
    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// The instructions it uses, named as in [`super::PeakKernel::isa`].
    #[must_use]
    pub fn isa(&self) -> &'static str {
        self.isa
    }

    /// Two random matrices of this shape, and room for their product.
    ///
    /// # Errors
    /// If there is not enough memory.
    pub fn product(&self, shape: Shape) -> Result<Product, ProductError> {
        let mut random = fastrand::Rng::with_seed(0x5eed);
        let bytes =
            |rows: usize, columns: usize, width: usize| rows.saturating_mul(columns).saturating_mul(width);
        let width = self.dtype.bytes();
        let result_bytes = bytes(shape.m, shape.n, self.kind.accumulator().byte_width());
        let result = AlignedBuffer::new(result_bytes)?;
        // SAFETY: the buffer has at least so many bytes, and nobody else has it.
        unsafe { result.as_ptr().write_bytes(0, result_bytes) };
        Ok(Product {
            shape,
            dtype: self.dtype,
            gemm: warpforge_kernels::gemm::Gemm::for_rows(self.kind, shape.m),
            left: filled(self.dtype, bytes(shape.m, shape.k, width), &mut random)?,
            right: filled(self.dtype, bytes(shape.k, shape.n, width), &mut random)?,
            result,
            result_bytes,
        })
    }
}

/// Two matrices and their product.
pub struct Product {
    shape: Shape,
    dtype: Dtype,
    gemm: warpforge_kernels::gemm::Gemm,
    left: AlignedBuffer,
    right: AlignedBuffer,
    result: AlignedBuffer,
    result_bytes: usize,
}

impl Product {
    /// Multiplies the matrices, packing included, on all threads of the team.
    ///
    /// # Errors
    /// If there is no memory to pack into.
    pub fn run(&mut self, team: &mut Team) -> Result<Duration, ProductError> {
        let Shape { m, n, k } = self.shape;
        let element = match self.dtype {
            Dtype::F64 => ElementType::F64,
            Dtype::F32 => ElementType::F32,
            Dtype::Bf16 => ElementType::BF16,
            Dtype::Int8 => ElementType::I8,
        };
        let operand = |memory: &AlignedBuffer, columns| Operand {
            data: memory.as_ptr(),
            element,
            row_stride: columns,
            column_stride: 1,
        };
        let (left, right) = (operand(&self.left, k), operand(&self.right, n));
        let result = self.result.as_ptr();
        let (took, outcome) = team.run_shared(|pool| {
            // SAFETY: the three buffers have the sizes of the shape and belong to `self`, which is borrowed exclusively.
            unsafe {
                self.gemm.multiply(
                    pool,
                    GemmShape { m, n, k },
                    &left,
                    Rhs::Strided(right),
                    Some(result),
                    n,
                    None,
                )
            }
        });
        outcome?;
        Ok(took)
    }

    /// The sizes.
    #[must_use]
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// The element type of the operands. The result has that of the accumulator: `f64`, `f32`, or `i32` for int8.
    #[must_use]
    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// The elements of the left matrix, row by row.
    #[must_use]
    pub fn left(&self) -> &[u8] {
        elements(&self.left, self.shape.m * self.shape.k * self.dtype.bytes())
    }

    /// The elements of the right matrix, row by row.
    #[must_use]
    pub fn right(&self) -> &[u8] {
        elements(&self.right, self.shape.k * self.shape.n * self.dtype.bytes())
    }

    /// The elements of the result, row by row; zeros before the first run.
    #[must_use]
    pub fn result(&self) -> &[u8] {
        elements(&self.result, self.result_bytes)
    }
}

/// The first bytes of a buffer that a product filled when it was made.
fn elements(memory: &AlignedBuffer, bytes: usize) -> &[u8] {
    assert!(bytes <= memory.len(), "a buffer of {} bytes has no {bytes}", memory.len());
    // SAFETY: the buffer has so many bytes, which were written when it was made, and lives as long as the borrow. Only
    // `Product::run` writes to it, which borrows the product exclusively.
    unsafe { std::slice::from_raw_parts(memory.as_ptr(), bytes) }
}

impl fmt::Debug for Product {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Product").field("shape", &self.shape).finish_non_exhaustive()
    }
}

/// A buffer of so many bytes with random elements: -1 to 1, or all of int8.
fn filled(dtype: Dtype, bytes: usize, random: &mut fastrand::Rng) -> Result<AlignedBuffer, AllocationError> {
    let memory = AlignedBuffer::new(bytes)?;
    let write = |width: usize, next: &mut dyn FnMut() -> [u8; 8]| {
        for offset in (0..bytes).step_by(width) {
            let element = next();
            // SAFETY: the buffer has `bytes` bytes, a multiple of `width`, which is at most 8, and nobody else has it.
            unsafe { memory.as_ptr().add(offset).copy_from_nonoverlapping(element.as_ptr(), width) };
        }
    };
    let padded = |element: &[u8]| {
        let mut bytes = [0; 8];
        bytes[..element.len()].copy_from_slice(element);
        bytes
    };
    match dtype {
        Dtype::F64 => write(8, &mut || padded(&(2.0 * random.f64() - 1.0).to_ne_bytes())),
        Dtype::F32 => write(4, &mut || padded(&(2.0 * random.f32() - 1.0).to_ne_bytes())),
        Dtype::Bf16 => write(2, &mut || padded(&bf16::from_f32(2.0 * random.f32() - 1.0).to_ne_bytes())),
        Dtype::Int8 => write(1, &mut || padded(&random.i8(..).to_ne_bytes())),
    }
    Ok(memory)
}

/// Rows that every kind of GEMM has kernels of its own for.
const MANY_ROWS: usize = 1024;

/// The engine's GEMMs, widest element type first. A type that the engine can multiply on this processor only after
/// widening it is absent.
#[must_use]
pub fn gemms() -> Vec<Gemm> {
    let kinds = [
        (Dtype::F64, ComputeType::F64),
        (Dtype::F32, ComputeType::F32),
        (Dtype::Bf16, ComputeType::Bf16),
        (Dtype::Int8, ComputeType::I8),
    ];
    kinds
        .into_iter()
        .filter_map(|(dtype, kind)| {
            let isa = warpforge_kernels::gemm::Gemm::for_rows(kind, MANY_ROWS).instructions()?;
            Some(Gemm { dtype, kind, isa })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::affinity;

    /// Elements as f64.
    fn values(bytes: &[u8], element: ElementType) -> Vec<f64> {
        let width = element.byte_width();
        bytes
            .chunks_exact(width)
            .map(|bytes| match element {
                ElementType::F64 => f64::from_ne_bytes(bytes.try_into().unwrap()),
                ElementType::F32 => f32::from_ne_bytes(bytes.try_into().unwrap()).into(),
                ElementType::I32 => i32::from_ne_bytes(bytes.try_into().unwrap()).into(),
                ElementType::BF16 => bf16::from_ne_bytes(bytes.try_into().unwrap()).into(),
                _ => i8::from_ne_bytes(bytes.try_into().unwrap()).into(),
            })
            .collect()
    }

    #[test]
    fn the_result_is_the_product_of_the_operands() {
        let cpus = affinity::allowed().unwrap();
        let mut team = Team::new(&cpus).unwrap();
        let (m, n, k) = (37, 41, 70);
        for gemm in gemms() {
            let mut product = gemm.product(Shape { m, n, k }).unwrap();
            assert!(product.result().iter().all(|&byte| byte == 0), "nothing has run yet");
            product.run(&mut team).unwrap();
            let (element, sum, tolerance) = match gemm.dtype() {
                Dtype::F64 => (ElementType::F64, ElementType::F64, 1e-13),
                Dtype::F32 => (ElementType::F32, ElementType::F32, 1e-4),
                Dtype::Bf16 => (ElementType::BF16, ElementType::F32, 1e-4),
                Dtype::Int8 => (ElementType::I8, ElementType::I32, 0.0),
            };
            let left = values(product.left(), element);
            let right = values(product.right(), element);
            assert_eq!((left.len(), right.len()), (m * k, k * n));
            assert!(left.iter().any(|&value| value < 0.0) && left.iter().any(|&value| value > 0.0));
            let result = values(product.result(), sum);
            for (row, column) in (0..m).flat_map(|row| (0..n).map(move |column| (row, column))) {
                let expected: f64 = (0..k).map(|i| left[row * k + i] * right[i * n + column]).sum();
                let found = result[row * n + column];
                assert!((found - expected).abs() <= tolerance, "{gemm:?} {row} {column}: {found} {expected}");
            }
        }
    }

    #[test]
    fn every_processor_multiplies_floating_point_and_too_much_is_an_error() {
        for dtype in [Dtype::F64, Dtype::F32] {
            let gemm = gemms().into_iter().find(|gemm| gemm.dtype() == dtype).unwrap();
            assert!(gemm.product(Shape { m: 1 << 40, n: 1, k: 1 << 40 }).is_err());
        }
    }
}

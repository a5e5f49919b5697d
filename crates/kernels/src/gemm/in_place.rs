//! GEMMs of a few rows whose right-hand operand is no weight and is read as it lies in memory.

use half::{bf16, f16};
use warpforge_tensor::ElementType;

use super::compute_type::ComputeType;
use super::convert::{from_bf16, to_bf16};
use super::matmul::Gemm;
use super::microkernel::{FewRowsArgs, FewRowsFn, few_rows};
use super::operand::{Operand, Shape};

/// More rows are worth the packing of the operand.
const MOST_ROWS: usize = 8;

/// The product of a few rows and an operand in memory.
#[derive(Debug, Clone, Copy)]
pub struct InPlace {
    kernel: FewRowsFn,
    /// Whether rows are rounded to bf16, as the compute type says.
    rounded: bool,
}

impl Gemm {
    /// The product of `m` rows by such an operand without packing it; none where packing pays, or there is no kernel.
    #[must_use]
    pub fn in_place(&self, m: usize, rhs: &Operand) -> Option<InPlace> {
        let fits = match self.compute_type() {
            ComputeType::F32 => matches!(rhs.element, ElementType::F32 | ElementType::BF16),
            ComputeType::Bf16 => rhs.element == ElementType::BF16,
            _ => false,
        };
        if m > MOST_ROWS || !fits {
            return None;
        }
        let kernel = few_rows(self.isa(), rhs.element, [rhs.row_stride, rhs.column_stride])?;
        Some(InPlace { kernel, rounded: self.compute_type() == ComputeType::Bf16 })
    }
}

impl InPlace {
    /// Multiplies on the calling thread, into a row-major tile of f32. `rows` is scratch memory.
    ///
    /// # Safety
    ///
    /// The operands are valid for the shape, the right one as it was asked for; `out` is valid for `m` rows of `n` elements,
    /// `stride` apart.
    pub unsafe fn multiply(
        &self,
        rows: &mut Vec<f32>,
        shape: Shape,
        lhs: &Operand,
        rhs: &Operand,
        out: *mut f32,
        stride: usize,
    ) {
        let Shape { m, n, k } = shape;
        let is_ready = lhs.element == ElementType::F32 && lhs.column_stride == 1 && !self.rounded;
        let (data, row_stride) = if is_ready {
            (lhs.data.cast(), lhs.row_stride)
        } else {
            rows.clear();
            for row in 0..m {
                // SAFETY: guaranteed by the caller.
                unsafe { self.widen(lhs, row, k, rows) };
            }
            (rows.as_ptr(), k)
        };
        let rhs_stride = if rhs.column_stride == 1 { rhs.row_stride } else { rhs.column_stride };
        let args = FewRowsArgs {
            rows: data,
            row_stride,
            m,
            rhs: rhs.data,
            rhs_stride,
            k,
            n,
            out,
            out_stride: stride,
        };
        // SAFETY: the kernel is for the instruction set of this CPU; the rest is guaranteed by the caller.
        unsafe { (self.kernel)(&args) };
    }

    /// Adds a row of the left-hand operand to the rows.
    unsafe fn widen(&self, lhs: &Operand, row: usize, k: usize, rows: &mut Vec<f32>) {
        let round = |value: f32| if self.rounded { from_bf16(to_bf16(value)) } else { value };
        // SAFETY: guaranteed by the caller; elements are of the type that the arm names.
        unsafe {
            match lhs.element {
                ElementType::BF16 => {
                    rows.extend((0..k).map(|at| from_bf16(lhs.at(row, at).cast::<bf16>().read())));
                }
                ElementType::F16 => {
                    rows.extend((0..k).map(|at| round(lhs.at(row, at).cast::<f16>().read().to_f32())));
                }
                _ if lhs.column_stride == 1 => {
                    let from = std::slice::from_raw_parts(lhs.at(row, 0).cast::<f32>(), k);
                    rows.extend(from.iter().map(|&value| round(value)));
                }
                _ => rows.extend((0..k).map(|at| round(lhs.at(row, at).cast::<f32>().read()))),
            }
        }
    }
}

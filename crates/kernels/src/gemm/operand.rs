//! Shapes and operands of GEMMs, and their errors.

use thiserror::Error;
use warpforge_tensor::ElementType;

use super::packed::{PackedRhs, PackedView};
use crate::buffer::AllocationError;

/// The sizes of a GEMM: `m × k` times `k × n`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Rows of the result.
    pub m: usize,
    /// Columns of the result.
    pub n: usize,
    /// The reduction depth.
    pub k: usize,
}

/// A matrix in memory; a transposed one has its strides swapped.
#[derive(Debug, Clone, Copy)]
pub struct Operand {
    /// The element of row 0 and column 0.
    pub data: *const u8,
    /// The type of the elements.
    pub element: ElementType,
    /// From one row to the next, in elements.
    pub row_stride: usize,
    /// From one column to the next, in elements.
    pub column_stride: usize,
}

// SAFETY: operands are read-only, and the caller of a GEMM guarantees that nothing writes to them during the call.
unsafe impl Send for Operand {}
// SAFETY: as above.
unsafe impl Sync for Operand {}

impl Operand {
    /// The element of this row and column.
    ///
    /// # Safety
    ///
    /// The operand has such an element, or one directly before it.
    pub(crate) unsafe fn at(&self, row: usize, column: usize) -> *const u8 {
        let elements = row * self.row_stride + column * self.column_stride;
        // SAFETY: guaranteed by the caller.
        unsafe { self.data.add(elements * size_of_element(self.element)) }
    }
}

/// The right-hand operand of a GEMM.
#[derive(Debug, Clone, Copy)]
pub enum Rhs<'a> {
    /// Packed in advance: weights.
    Packed(&'a PackedRhs),
    /// Packed in advance, into a buffer of the caller.
    View(PackedView<'a>),
    /// Strided; packed during the call.
    Strided(Operand),
}

/// Why a GEMM cannot run.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum GemmError {
    /// The packing buffer cannot be allocated.
    #[error(transparent)]
    Memory(#[from] AllocationError),
    /// An element type that the compute type does not accept.
    #[error("a {compute_type} GEMM does not accept elements of type {element}: convert the operand")]
    Element {
        /// The compute type.
        compute_type: &'static str,
        /// The type of the operand.
        element: ElementType,
    },
    /// An operand packed for another compute type, instruction set or size.
    #[error("the packed operand is {found}, expected {wanted}: pack it again")]
    Packed {
        /// Format and sizes of the operand.
        found: String,
        /// Format and sizes that the call needs.
        wanted: String,
    },
}

/// Bytes of an element type that GEMMs accept; 1 for others, which are rejected before anything is read.
pub(crate) fn size_of_element(element: ElementType) -> usize {
    match element {
        ElementType::F64 | ElementType::I64 | ElementType::U64 => 8,
        ElementType::F32 | ElementType::I32 | ElementType::U32 => 4,
        ElementType::F16 | ElementType::BF16 | ElementType::I16 | ElementType::U16 => 2,
        _ => 1,
    }
}

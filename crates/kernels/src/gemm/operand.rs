//! What a product is made of: its shape, its operands, and what may be wrong with them.

use thiserror::Error;
use warpforge_tensor::ElementType;

use super::memory::MemoryError;
use super::packed::{PackedRhs, PackedView};

/// The sizes of a product: `m × k` times `k × n`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Rows of the result.
    pub m: usize,
    /// Columns of the result.
    pub n: usize,
    /// The length of each sum.
    pub k: usize,
}

/// A matrix in memory; a transposed one has its strides exchanged.
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

// SAFETY: an operand is read only, and who makes a product of it promises that nobody writes to it meanwhile.
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
        // SAFETY: as the caller promises.
        unsafe { self.data.add(elements * size_of_element(self.element)) }
    }
}

/// The right operand of a product.
#[derive(Debug, Clone, Copy)]
pub enum Rhs<'a> {
    /// Packed before: weights.
    Packed(&'a PackedRhs),
    /// Packed before, into memory of the caller's.
    View(PackedView<'a>),
    /// As it lies in memory; packed during the call.
    Strided(Operand),
}

/// Why a product cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum GemmError {
    /// No memory to pack into.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// Operands of a type that this kind of product does not take.
    #[error("products of kind {kind} take no elements of type {element}: convert the operand")]
    Element {
        /// The kind of the product.
        kind: &'static str,
        /// The type of the operand.
        element: ElementType,
    },
    /// A packed operand that another kind or another instruction set has packed, or one of another size.
    #[error("the packed operand is {found}, wanted is {wanted}: pack it again")]
    Packed {
        /// Format and sizes of the operand.
        found: String,
        /// Format and sizes that the call needs.
        wanted: String,
    },
}

/// Bytes of an element of a type that products take; 1 for others, which are refused before anything is read.
pub(crate) fn size_of_element(element: ElementType) -> usize {
    match element {
        ElementType::F64 => 8,
        ElementType::F32 | ElementType::I32 => 4,
        ElementType::F16 | ElementType::BF16 => 2,
        _ => 1,
    }
}

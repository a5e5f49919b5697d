//! Rectangles of a matrix that threads work on at the same time.

// Parts of a matrix that do not overlap are changed at the same time, which slices cannot express.
#![allow(unsafe_code)]

use std::ops::Range;

use warpforge_kernels::gemm::{Operand, OperandMut};

use crate::real::Real;

/// A rectangle of a matrix by its address. It borrows nothing: whoever uses it keeps the matrix.
#[derive(Debug, Clone, Copy)]
pub(crate) struct View<T> {
    /// The first element of the first row.
    pub(crate) data: *mut T,
    /// From one row to the next, in elements.
    pub(crate) stride: usize,
    pub(crate) rows: usize,
    pub(crate) columns: usize,
}

// SAFETY: a view is an address; the threads that use it change parts that do not overlap.
unsafe impl<T: Real> Send for View<T> {}
// SAFETY: as above.
unsafe impl<T: Real> Sync for View<T> {}

impl<T: Real> View<T> {
    /// A rectangle of this one.
    ///
    /// # Panics
    /// If it is not inside.
    pub(crate) fn part(&self, rows: Range<usize>, columns: Range<usize>) -> Self {
        assert!(rows.start <= rows.end && rows.end <= self.rows, "rows {rows:?} of {}", self.rows);
        assert!(
            columns.start <= columns.end && columns.end <= self.columns,
            "columns {columns:?} of {}",
            self.columns
        );
        let offset = rows.start * self.stride + columns.start;
        // An empty part at the end may have no element to point at, so the sum must not claim that there is one.
        let data = self.data.wrapping_add(offset);
        Self { data, stride: self.stride, rows: rows.len(), columns: columns.len() }
    }

    /// Elements of a row.
    ///
    /// # Safety
    /// The matrix lives, its elements have been written, and nobody else uses these ones as long as the slice lives.
    ///
    /// # Panics
    /// If they are not inside.
    #[inline]
    pub(crate) unsafe fn row<'a>(&self, row: usize, columns: Range<usize>) -> &'a mut [T] {
        assert!(row < self.rows && columns.start <= columns.end && columns.end <= self.columns);
        // SAFETY: the elements are inside the rectangle; the rest is as the caller promises.
        unsafe {
            std::slice::from_raw_parts_mut(self.data.add(row * self.stride + columns.start), columns.len())
        }
    }

    /// Elements of a row, to be read only.
    ///
    /// # Safety
    /// The matrix lives, its elements have been written, and nobody changes these ones as long as the slice lives.
    ///
    /// # Panics
    /// If they are not inside.
    #[inline]
    pub(crate) unsafe fn read<'a>(&self, row: usize, columns: Range<usize>) -> &'a [T] {
        assert!(row < self.rows && columns.start <= columns.end && columns.end <= self.columns);
        // SAFETY: the elements are inside the rectangle; the rest is as the caller promises.
        unsafe {
            let start = self.data.add(row * self.stride + columns.start).cast_const();
            std::slice::from_raw_parts(start, columns.len())
        }
    }

    /// The rectangle as an operand of a GEMM.
    pub(crate) fn operand(&self) -> Operand {
        Operand {
            data: self.data.cast::<u8>().cast_const(),
            element: T::ELEMENT,
            row_stride: self.stride,
            column_stride: 1,
        }
    }

    /// The rectangle as a matrix that a GEMM changes.
    pub(crate) fn operand_mut(&self) -> OperandMut {
        OperandMut { data: self.data.cast(), stride: self.stride }
    }
}

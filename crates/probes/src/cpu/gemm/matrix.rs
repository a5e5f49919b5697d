//! The memory of matrices and panels: aligned, so that no vector lies in two cache lines, and in huge pages where the
//! system gives them, since the kernels walk through many pages at once.

// Memory from the system is seen as a slice of numbers.
#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use crate::cpu::register::Plain;
use crate::memory::{Buffer, MemoryError, Pages};

/// Numbers, zero at first.
#[derive(Debug)]
pub(super) struct Matrix<T> {
    buffer: Buffer,
    len: usize,
    elements: PhantomData<T>,
}

impl<T: Plain> Matrix<T> {
    /// That many zeros.
    ///
    /// # Errors
    /// If the system has not that much memory to give.
    pub(super) fn zeroed(len: usize) -> Result<Self, MemoryError> {
        let bytes = len.saturating_mul(size_of::<T>()).max(1);
        Ok(Self { buffer: Buffer::new(bytes, Pages::Huge)?, len, elements: PhantomData })
    }
}

impl<T: Plain> Deref for Matrix<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: the buffer has room for `len` elements, is aligned to a page, zeroed at first, and any bytes are a
        // valid `T`; it is borrowed as long as the slice.
        unsafe { std::slice::from_raw_parts(self.buffer.start().cast().as_ptr(), self.len) }
    }
}

impl<T: Plain> DerefMut for Matrix<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above, and it is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.buffer.start().cast().as_ptr(), self.len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_the_rest_is_zero() {
        let mut matrix = Matrix::<f64>::zeroed(700_001).unwrap();
        matrix[700_000] = 1.5;
        assert_eq!(matrix.len(), 700_001);
        assert_eq!(matrix.as_ptr() as usize % 64, 0);
        assert!(matrix[..700_000].iter().all(|&number| number == 0.0));
        assert_eq!(matrix[700_000], 1.5);
        assert!(Matrix::<f32>::zeroed(0).unwrap().is_empty());
    }

    #[test]
    fn more_memory_than_there_is_is_an_error() {
        assert!(Matrix::<f64>::zeroed(usize::MAX).is_err());
    }
}

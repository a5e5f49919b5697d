//! Square matrices in aligned memory.

// Aligned memory is seen as rows of elements.
#![allow(unsafe_code)]

use std::fmt;
use std::marker::PhantomData;

use warpforge_kernels::buffer::AlignedBuffer;
use warpforge_kernels::pool::Pool;

use crate::LinalgError;
use crate::real::Real;
use crate::view::View;

/// Bytes of a cache line.
const LINE: usize = 64;
/// Rows whose distance is a multiple of this share the same few sets of a cache.
const CONFLICT: usize = 1024;

/// A square row-major matrix. Its rows begin at cache lines and are padded so that a column does not lie in one cache
/// set.
pub struct Matrix<T> {
    memory: AlignedBuffer,
    order: usize,
    stride: usize,
    elements: PhantomData<T>,
}

impl<T: Real> Matrix<T> {
    /// A matrix of this order. `fill` is called for every row, by the threads of the pool, to write it.
    ///
    /// # Errors
    /// If there is no memory.
    pub fn new(
        pool: &Pool,
        order: usize,
        fill: impl Fn(usize, &mut [T]) + Sync,
    ) -> Result<Self, LinalgError> {
        let too_large = LinalgError::Memory { order };
        let line = LINE / size_of::<T>();
        let mut stride = order.checked_next_multiple_of(line).ok_or(too_large.clone())?;
        if (stride * size_of::<T>()).is_multiple_of(CONFLICT) {
            stride += line;
        }
        let bytes = stride.checked_mul(order).and_then(|count| count.checked_mul(size_of::<T>()));
        let memory = AlignedBuffer::new(bytes.ok_or(too_large.clone())?).map_err(|_| too_large)?;
        let mut matrix = Self { memory, order, stride, elements: PhantomData };
        matrix.fill(pool, fill);
        Ok(matrix)
    }

    /// Writes every row anew.
    pub fn fill(&mut self, pool: &Pool, fill: impl Fn(usize, &mut [T]) + Sync) {
        let (view, order) = (self.view(), self.order);
        pool.run(order, &|row, _| {
            // SAFETY: the row is inside the matrix, which is borrowed exclusively, and every row is one piece. Elements
            // are written before they are read: they are numbers, and the memory is zeroed first.
            let elements = unsafe {
                view.data.add(row * view.stride).write_bytes(0, order);
                view.row(row, 0..order)
            };
            fill(row, elements);
        });
    }

    /// The number of rows, which is that of columns.
    #[must_use]
    pub fn order(&self) -> usize {
        self.order
    }

    /// A row.
    ///
    /// # Panics
    /// If there is no such row.
    #[must_use]
    pub fn row(&self, row: usize) -> &[T] {
        assert!(row < self.order, "there is no row {row}");
        // SAFETY: the row is inside the memory, and `fill` has written all of it.
        unsafe {
            std::slice::from_raw_parts(
                self.memory.as_ptr().cast::<T>().add(row * self.stride).cast_const(),
                self.order,
            )
        }
    }

    /// All of the matrix, for kernels that change parts of it.
    pub(crate) fn view(&mut self) -> View<T> {
        View { data: self.memory.as_ptr().cast(), stride: self.stride, rows: self.order, columns: self.order }
    }
}

impl<T> fmt::Debug for Matrix<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Matrix").field("order", &self.order).finish_non_exhaustive()
    }
}

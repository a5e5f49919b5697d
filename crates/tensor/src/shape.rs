//! Shapes: dimension sizes whose product is known to fit.

use std::fmt;

use crate::Error;

/// The dimension sizes of a tensor, row-major. The number of elements is checked when the shape is made.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Shape {
    dims: Vec<usize>,
}

impl Shape {
    /// A shape with these dimension sizes.
    ///
    /// # Errors
    ///
    /// When the number of elements, at 16 bytes each, does not fit `isize`: no tensor of that shape could exist.
    pub fn new(dims: impl Into<Vec<usize>>) -> Result<Self, Error> {
        let dims = dims.into();
        // Zero-sized dimensions do not excuse an overflow of the others: strides multiply those too.
        let product = dims.iter().try_fold(16usize, |product, &dim| product.checked_mul(dim.max(1)));
        match product {
            Some(bytes) if isize::try_from(bytes).is_ok() => Ok(Self { dims }),
            _ => Err(Error::ShapeOverflow(dims)),
        }
    }

    /// The shape of a single element.
    #[must_use]
    pub const fn scalar() -> Self {
        Self { dims: Vec::new() }
    }

    /// Dimension sizes.
    #[must_use]
    pub fn dims(&self) -> &[usize] {
        &self.dims
    }

    /// Number of dimensions.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.dims.len()
    }

    /// Number of elements.
    #[must_use]
    pub fn num_elements(&self) -> usize {
        self.dims.iter().product()
    }

    /// How many elements apart neighbours along each dimension are.
    #[must_use]
    pub fn strides(&self) -> Vec<usize> {
        let mut strides = vec![1; self.dims.len()];
        for axis in (1..self.dims.len()).rev() {
            strides[axis - 1] = strides[axis] * self.dims[axis].max(1);
        }
        strides
    }

    /// The position of the element at `index`, or `None` where the shape has no such element.
    #[must_use]
    pub fn position(&self, index: &[usize]) -> Option<usize> {
        if index.len() != self.dims.len() {
            return None;
        }
        let mut position = 0;
        for (&at, &dim) in index.iter().zip(&self.dims) {
            if at >= dim {
                return None;
            }
            position = position * dim + at;
        }
        Some(position)
    }

    /// The index of the element at `position`.
    #[must_use]
    pub fn index(&self, mut position: usize) -> Vec<usize> {
        let mut index = vec![0; self.dims.len()];
        for (at, &dim) in index.iter_mut().zip(&self.dims).rev() {
            *at = position % dim.max(1);
            position /= dim.max(1);
        }
        index
    }

    /// All indices in row-major order.
    #[must_use]
    pub fn indices(&self) -> Indices<'_> {
        Indices {
            dims: &self.dims,
            next: vec![0; self.dims.len()],
            left: self.num_elements(),
            started: false,
        }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (axis, dim) in self.dims.iter().enumerate() {
            if axis > 0 {
                f.write_str("x")?;
            }
            write!(f, "{dim}")?;
        }
        Ok(())
    }
}

/// Walks the indices of a shape in row-major order without allocating for each.
#[derive(Debug, Clone)]
pub struct Indices<'a> {
    dims: &'a [usize],
    next: Vec<usize>,
    left: usize,
    started: bool,
}

impl Indices<'_> {
    /// The next index, valid until the following call. Not an iterator, because the index is lent.
    pub fn advance(&mut self) -> Option<&[usize]> {
        self.left = self.left.checked_sub(1)?;
        if self.started {
            for (at, &dim) in self.next.iter_mut().zip(self.dims).rev() {
                *at += 1;
                if *at < dim {
                    break;
                }
                *at = 0;
            }
        }
        self.started = true;
        Some(&self.next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_that_overflow_are_refused() {
        assert!(Shape::new([1 << 40, 1 << 40]).is_err());
        assert!(Shape::new([0, usize::MAX, 2]).is_err());
        assert!(Shape::new([usize::MAX / 8]).is_err());
        assert!(Shape::new([1 << 40]).is_ok());
    }

    #[test]
    fn positions_and_indices_are_inverse() {
        let shape = Shape::new([2, 3, 4]).expect("small");
        assert_eq!(shape.strides(), [12, 4, 1]);
        let mut indices = shape.indices();
        for position in 0..24 {
            let index = indices.advance().expect("24 indices").to_vec();
            assert_eq!(shape.position(&index), Some(position));
            assert_eq!(shape.index(position), index);
        }
        assert!(indices.advance().is_none());
        assert_eq!(shape.position(&[0, 3, 0]), None);
        assert_eq!(shape.position(&[0, 0]), None);
    }

    #[test]
    fn a_scalar_has_one_index_and_an_empty_tensor_none() {
        assert_eq!(Shape::scalar().indices().advance(), Some(&[][..]));
        assert!(Shape::new([3, 0]).expect("empty").indices().advance().is_none());
    }
}

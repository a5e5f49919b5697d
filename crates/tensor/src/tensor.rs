//! The host tensor.

use std::fmt;
use std::sync::Arc;

use crate::buffer::Buffer;
use crate::strided::{self, Side};
use crate::{Blob, ElementType, Error, Native, Scalar, Shape};

/// A dense tensor in host memory, row-major, little-endian. Types narrower than a byte take one byte per element.
///
/// Cloning shares the data; writing to a shared tensor copies it first. The data can also be a part of something larger,
/// such as a mapped file ([`Tensor::from_blob`]).
#[derive(Clone)]
pub struct Tensor {
    element: ElementType,
    shape: Shape,
    data: Arc<Buffer>,
}

impl Tensor {
    /// A tensor whose bytes are all zero.
    ///
    /// # Errors
    ///
    /// When there is no memory for it.
    pub fn zeros(element: ElementType, shape: Shape) -> Result<Self, Error> {
        let data = Buffer::zeroed(shape.num_elements() * element.byte_width())?;
        Ok(Self { element, shape, data: Arc::new(data) })
    }

    /// A tensor of `value` everywhere.
    ///
    /// # Errors
    ///
    /// When there is no memory for it.
    pub fn splat(element: ElementType, shape: Shape, value: Scalar) -> Result<Self, Error> {
        let mut tensor = Self::zeros(element, shape)?;
        let width = element.byte_width();
        let mut pattern = [0u8; 16];
        value.encode(element, &mut pattern[..width]);
        let count = tensor.len();
        if count > 0 && pattern != [0; 16] {
            let (to, from) = (Side { start: 0, steps: &[1] }, Side { start: 0, steps: &[0] });
            strided::copy(width, &[count], (tensor.bytes_mut(), to), (&pattern[..width], from));
        }
        Ok(tensor)
    }

    /// A tensor of one element.
    ///
    /// # Errors
    ///
    /// When there is no memory for it.
    pub fn scalar(element: ElementType, value: Scalar) -> Result<Self, Error> {
        Self::splat(element, Shape::scalar(), value)
    }

    /// A tensor of the given elements in row-major order, each rounded or wrapped to the type.
    ///
    /// # Errors
    ///
    /// When there are more or fewer than the shape asks for, or no memory for them.
    pub fn from_scalars(
        element: ElementType,
        shape: Shape,
        values: impl IntoIterator<Item = Scalar>,
    ) -> Result<Self, Error> {
        let mut tensor = Self::zeros(element, shape)?;
        let expected = tensor.len();
        let width = element.byte_width();
        let mut values = values.into_iter();
        let mut found = 0;
        for (chunk, value) in tensor.bytes_mut().chunks_exact_mut(width).zip(values.by_ref()) {
            value.encode(element, chunk);
            found += 1;
        }
        found += values.count();
        if found != expected {
            return Err(Error::SizeMismatch { what: "number of elements", expected, found });
        }
        Ok(tensor)
    }

    /// A tensor whose memory is a copy of `bytes`: little-endian, row-major, whole bytes per element.
    ///
    /// # Errors
    ///
    /// When the bytes are more or fewer than the shape asks for, or there is no memory for them.
    pub fn from_bytes(element: ElementType, shape: Shape, bytes: &[u8]) -> Result<Self, Error> {
        let mut tensor = Self::zeros(element, shape)?;
        let target = tensor.bytes_mut();
        if target.len() != bytes.len() {
            let (expected, found) = (target.len(), bytes.len());
            return Err(Error::SizeMismatch { what: "number of bytes", expected, found });
        }
        target.copy_from_slice(bytes);
        Ok(tensor)
    }

    /// A tensor whose memory is `blob` itself: little-endian, row-major, whole bytes per element. Nothing is copied,
    /// wherever the bytes lie; a typed view ([`Tensor::as_slice`]) copies them once if they are not aligned for it.
    ///
    /// # Errors
    ///
    /// When the bytes are more or fewer than the shape asks for.
    pub fn from_blob(element: ElementType, shape: Shape, blob: Blob) -> Result<Self, Error> {
        let (expected, found) = (shape.num_elements() * element.byte_width(), blob.len());
        if expected != found {
            return Err(Error::SizeMismatch { what: "number of bytes", expected, found });
        }
        Ok(Self { element, shape, data: Arc::new(Buffer::shared(blob)) })
    }

    /// A tensor with a copy of the values of a Rust slice.
    ///
    /// # Errors
    ///
    /// When the values are more or fewer than the shape asks for, or there is no memory for them.
    pub fn from_slice<T: Native>(dims: &[usize], values: &[T]) -> Result<Self, Error> {
        let shape = Shape::new(dims)?;
        if shape.num_elements() != values.len() {
            let (expected, found) = (shape.num_elements(), values.len());
            return Err(Error::SizeMismatch { what: "number of elements", expected, found });
        }
        Self::from_bytes(T::ELEMENT, shape, bytemuck::cast_slice(values))
    }

    /// The type of the elements.
    #[must_use]
    pub fn element_type(&self) -> ElementType {
        self.element
    }

    /// The shape.
    #[must_use]
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Dimension sizes.
    #[must_use]
    pub fn dims(&self) -> &[usize] {
        self.shape.dims()
    }

    /// Number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.data.bytes().len() / self.element.byte_width()
    }

    /// Whether there are no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.data.bytes().is_empty()
    }

    /// The memory as shared bytes that outlive the tensor. Nothing is copied.
    #[must_use]
    pub fn blob(&self) -> Blob {
        struct Bytes(Arc<Buffer>);
        impl AsRef<[u8]> for Bytes {
            fn as_ref(&self) -> &[u8] {
                self.0.bytes()
            }
        }
        match &*self.data {
            Buffer::Shared { blob, .. } => blob.clone(),
            Buffer::Own(_) => Blob::new(Bytes(Arc::clone(&self.data))),
        }
    }

    /// The memory: little-endian, row-major, whole bytes per element.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.data.bytes()
    }

    /// Bytes of memory that were allocated for this tensor and its clones: none where it is a part of something else.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.data.own_bytes()
    }

    /// The memory for writing; copied first where it is shared.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        Arc::make_mut(&mut self.data).bytes_mut()
    }

    /// The elements as a Rust slice.
    ///
    /// # Errors
    ///
    /// When the elements are of another type.
    pub fn as_slice<T: Native>(&self) -> Result<&[T], Error> {
        self.require(T::ELEMENT)?;
        Ok(self.data.typed())
    }

    /// The elements as a Rust slice for writing; copied first where they are shared.
    ///
    /// # Errors
    ///
    /// When the elements are of another type.
    pub fn as_slice_mut<T: Native>(&mut self) -> Result<&mut [T], Error> {
        self.require(T::ELEMENT)?;
        Ok(bytemuck::cast_slice_mut(self.bytes_mut()))
    }

    fn require(&self, expected: ElementType) -> Result<(), Error> {
        if self.element == expected {
            return Ok(());
        }
        Err(Error::TypeMismatch { expected: expected.to_string(), found: self.element.to_string() })
    }

    /// The element at a row-major position.
    ///
    /// # Panics
    ///
    /// When the position is not below [`Tensor::len`], as with a slice.
    #[must_use]
    pub fn get(&self, position: usize) -> Scalar {
        let width = self.element.byte_width();
        Scalar::decode(self.element, &self.data.bytes()[position * width..][..width])
    }

    /// Stores an element, rounded or wrapped to the type.
    ///
    /// # Panics
    ///
    /// When the position is not below [`Tensor::len`], as with a slice.
    pub fn set(&mut self, position: usize, value: Scalar) {
        let (element, width) = (self.element, self.element.byte_width());
        value.encode(element, &mut self.bytes_mut()[position * width..][..width]);
    }

    /// The element at an index, or `None` outside the shape.
    #[must_use]
    pub fn at(&self, index: &[usize]) -> Option<Scalar> {
        self.shape.position(index).map(|position| self.get(position))
    }

    /// The elements in row-major order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Scalar> + ExactSizeIterator + '_ {
        let element = self.element;
        self.data.bytes().chunks_exact(element.byte_width()).map(move |bytes| Scalar::decode(element, bytes))
    }

    /// The same elements in another shape; shares the data.
    ///
    /// # Errors
    ///
    /// When the other shape has another number of elements.
    pub fn reshaped(&self, shape: Shape) -> Result<Self, Error> {
        let (expected, found) = (shape.num_elements(), self.len());
        if expected != found {
            return Err(Error::SizeMismatch { what: "number of elements", expected, found });
        }
        Ok(Self { element: self.element, shape, data: Arc::clone(&self.data) })
    }

    /// A tensor of another shape made of elements of this one: `source` says from which position each comes, in
    /// row-major order of the result. `None` leaves zero bytes.
    ///
    /// # Errors
    ///
    /// When there is no memory for it.
    ///
    /// # Panics
    ///
    /// When a position is not below [`Tensor::len`], as with a slice.
    pub fn gathered(
        &self,
        shape: Shape,
        mut source: impl FnMut(&[usize]) -> Option<usize>,
    ) -> Result<Self, Error> {
        let mut result = Self::zeros(self.element, shape)?;
        let width = self.element.byte_width();
        let from = self.data.bytes();
        let shape = result.shape.clone();
        let mut indices = shape.indices();
        for chunk in result.bytes_mut().chunks_exact_mut(width) {
            if let Some(position) = indices.advance().and_then(&mut source) {
                chunk.copy_from_slice(&from[position * width..][..width]);
            }
        }
        Ok(result)
    }

    /// A tensor of another shape made of elements of this one that lie at regular distances: the element at an index is
    /// the one at position `start + Σ index · step`.
    ///
    /// # Errors
    ///
    /// When a position is outside this tensor, or there is no memory for the result.
    pub fn strided(&self, shape: Shape, start: usize, steps: &[isize]) -> Result<Self, Error> {
        self.require_reach(shape.dims(), start, steps)?;
        let mut result = Self::zeros(self.element, shape)?;
        let dims = result.shape.dims().to_vec();
        let dense: Vec<isize> = result.shape.strides().into_iter().map(|step| step as isize).collect();
        let to = Side { start: 0, steps: &dense };
        let from = Side { start, steps };
        strided::copy(self.element.byte_width(), &dims, (result.bytes_mut(), to), (self.bytes(), from));
        Ok(result)
    }

    /// Stores the elements of another tensor of the same type at regular distances: the one at an index goes to position
    /// `start + Σ index · step`.
    ///
    /// # Errors
    ///
    /// When the types differ or a position is outside this tensor.
    pub fn set_strided(&mut self, start: usize, steps: &[isize], source: &Self) -> Result<(), Error> {
        let dense: Vec<isize> = source.shape.strides().into_iter().map(|step| step as isize).collect();
        self.copy_part(source.dims(), (start, steps), source, (0, &dense))
    }

    /// Copies elements of another tensor of the same type: for all indices of `dims`, the one at position
    /// `start + Σ index · step` of the source (`from`) goes to such a position of this tensor (`to`).
    ///
    /// # Errors
    ///
    /// When the types differ or a position is outside its tensor.
    pub fn copy_part(
        &mut self,
        dims: &[usize],
        to: (usize, &[isize]),
        source: &Self,
        from: (usize, &[isize]),
    ) -> Result<(), Error> {
        self.require(source.element)?;
        self.require_reach(dims, to.0, to.1)?;
        source.require_reach(dims, from.0, from.1)?;
        let to = Side { start: to.0, steps: to.1 };
        let from = Side { start: from.0, steps: from.1 };
        strided::copy(self.element.byte_width(), dims, (self.bytes_mut(), to), (source.bytes(), from));
        Ok(())
    }

    fn require_reach(&self, dims: &[usize], start: usize, steps: &[isize]) -> Result<(), Error> {
        let (expected, found) = (dims.len(), steps.len());
        if expected != found {
            return Err(Error::SizeMismatch { what: "number of steps", expected, found });
        }
        let inside = |(low, high): (i128, i128)| low >= 0 && high < self.len() as i128;
        if dims.contains(&0) || strided::reach(dims, start, steps).is_some_and(inside) {
            return Ok(());
        }
        Err(Error::OutOfBounds { start, steps: steps.to_vec(), dims: dims.to_vec(), len: self.len() })
    }

    /// Whether type, shape and every bit are the same.
    #[must_use]
    pub fn identical(&self, other: &Self) -> bool {
        self.element == other.element && self.shape == other.shape && self.bytes() == other.bytes()
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 16;
        write!(f, "tensor<")?;
        for dim in self.dims() {
            write!(f, "{dim}x")?;
        }
        write!(f, "{}> [", self.element)?;
        for (position, value) in self.iter().take(SHOWN).enumerate() {
            let separator = if position > 0 { ", " } else { "" };
            write!(f, "{separator}{value}")?;
        }
        f.write_str(if self.len() > SHOWN { ", …]" } else { "]" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalars_of_every_type_read_back() {
        for element in ElementType::all() {
            let one = Tensor::scalar(element, Scalar::one(element)).expect("one element");
            assert_eq!(one.get(0), Scalar::one(element), "{element}");
            assert_eq!(one.bytes().len(), element.byte_width());
        }
        let negative = Tensor::scalar(ElementType::I4, Scalar::Int(-3)).expect("one element");
        assert_eq!((negative.bytes(), negative.get(0)), (&[0x0d][..], Scalar::Int(-3)));
    }

    #[test]
    fn counts_are_checked() {
        let shape = Shape::new([2]).expect("small");
        let three = [Scalar::Int(1), Scalar::Int(2), Scalar::Int(3)];
        assert!(Tensor::from_scalars(ElementType::I8, shape.clone(), three).is_err());
        assert!(Tensor::from_scalars(ElementType::I8, shape.clone(), [Scalar::Int(1)]).is_err());
        assert!(Tensor::from_bytes(ElementType::I16, shape, &[0; 3]).is_err());
        assert!(Tensor::from_slice(&[3], &[1.0f32]).is_err());
    }

    #[test]
    fn writing_a_shared_tensor_leaves_the_other_alone() {
        let first = Tensor::from_slice(&[2], &[1.0f32, 2.0]).expect("fits");
        let mut second = first.clone();
        second.set(0, Scalar::Float(5.0));
        assert_eq!(first.as_slice::<f32>().expect("f32"), [1.0, 2.0]);
        assert_eq!(second.as_slice::<f32>().expect("f32"), [5.0, 2.0]);
        assert!(second.as_slice::<i32>().is_err());
    }

    #[test]
    fn shared_bytes_are_read_in_place_and_copied_to_be_written() {
        let values: Vec<u8> = [1.0f32, 2.0, 3.0].iter().flat_map(|value| value.to_le_bytes()).collect();
        for offset in 0..4 {
            let file = Blob::from([vec![0xee; offset], values.clone(), vec![0xee]].concat());
            let part = file.slice(offset..offset + 12).expect("inside");
            let shape = Shape::new([3]).expect("small");
            let tensor = Tensor::from_blob(ElementType::F32, shape.clone(), part.clone()).expect("fits");
            assert_eq!(tensor.bytes().as_ptr(), part.as_ptr(), "nothing is copied");
            assert_eq!(tensor.get(2), Scalar::Float(3.0));
            assert_eq!(tensor.as_slice::<f32>().expect("f32"), [1.0, 2.0, 3.0]);
            let mut changed = tensor.clone();
            changed.as_slice_mut::<f32>().expect("f32")[0] = 9.0;
            assert_eq!(changed.as_slice::<f32>().expect("f32"), [9.0, 2.0, 3.0]);
            assert_eq!(tensor.as_slice::<f32>().expect("f32"), [1.0, 2.0, 3.0]);
            assert_eq!(&*part, &values);
            assert!(Tensor::from_blob(ElementType::F64, shape, part).is_err());
        }
    }

    #[test]
    fn strided_elements_are_read_and_written() {
        let source = Tensor::from_slice(&[2, 3], &[1i32, 2, 3, 4, 5, 6]).expect("fits");
        let shape = Shape::new([3, 2]).expect("small");
        let transposed = source.strided(shape.clone(), 0, &[1, 3]).expect("inside");
        assert_eq!(transposed.as_slice::<i32>().expect("i32"), [1, 4, 2, 5, 3, 6]);
        let mut target = Tensor::zeros(ElementType::I32, Shape::new([7]).expect("small")).expect("small");
        target.set_strided(6, &[-3, -1], &source).expect("inside");
        assert_eq!(target.as_slice::<i32>().expect("i32"), [0, 6, 5, 4, 3, 2, 1]);
        assert!(source.strided(shape.clone(), 1, &[1, 3]).is_err());
        assert!(source.strided(shape.clone(), 1, &[-1, 3]).is_err());
        assert!(source.strided(shape, 0, &[isize::MAX, isize::MAX]).is_err());
        assert!(target.set_strided(0, &[1], &source).is_err());
        target.copy_part(&[2], (0, &[2]), &source, (5, &[-5])).expect("inside");
        assert_eq!(target.as_slice::<i32>().expect("i32")[..3], [6, 6, 1]);
        assert!(target.copy_part(&[2], (0, &[2]), &source, (5, &[1])).is_err());
        let none = Shape::new([0, 9]).expect("empty");
        assert!(source.strided(none, 100, &[5, 5]).is_ok_and(|empty| empty.is_empty()));
    }

    #[test]
    fn gathering_moves_elements() {
        let source = Tensor::from_slice(&[2, 3], &[1i32, 2, 3, 4, 5, 6]).expect("fits");
        let shape = Shape::new([3, 2]).expect("small");
        let transposed = source.gathered(shape, |index| Some(index[1] * 3 + index[0])).expect("fits");
        assert_eq!(transposed.as_slice::<i32>().expect("i32"), [1, 4, 2, 5, 3, 6]);
    }
}

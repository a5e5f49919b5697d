//! Index vectors of gather and scatter.

use warpforge_tensor::{ElementType, IntType};

use super::error::LayoutError;

/// An array of start indices.
#[derive(Debug, Clone)]
pub struct Indices {
    /// The type of the integers: of 8 bits or more, or `index`.
    pub element: ElementType,
    /// Sizes; the array is row-major.
    pub dims: Vec<usize>,
    /// The dimension of the components of a vector; the rank if vectors have one component.
    pub vector_dim: usize,
    /// For each component the dimension of the operand that it is for.
    pub map: Vec<usize>,
    /// Pairs of batching dimensions of the operand and the indices.
    pub batching: Vec<(usize, usize)>,
}

/// Reads integers of one element type.
#[derive(Debug, Clone, Copy)]
pub(crate) struct IndexReader(unsafe fn(*const u8) -> i64);

impl IndexReader {
    pub(crate) fn new(element: ElementType) -> Result<Self, LayoutError> {
        macro_rules! read {
            ($own:ident) => {{
                /// # Safety
                ///
                /// There is such an integer.
                unsafe fn read(from: *const u8) -> i64 {
                    // SAFETY: guaranteed by the caller. Values that overflow i64 stay out of bounds.
                    unsafe { i64::try_from(from.cast::<$own>().read_unaligned()).unwrap_or(i64::MAX) }
                }
                Self(read)
            }};
        }
        Ok(match element {
            ElementType::Int(IntType::I8) => read!(i8),
            ElementType::Int(IntType::I16) => read!(i16),
            ElementType::Int(IntType::I32) => read!(i32),
            ElementType::Int(IntType::I64) | ElementType::Index => read!(i64),
            ElementType::Int(IntType::U8) => read!(u8),
            ElementType::Int(IntType::U16) => read!(u16),
            ElementType::Int(IntType::U32) => read!(u32),
            ElementType::Int(IntType::U64) => read!(u64),
            found => return Err(LayoutError::Element { what: "indices", found }),
        })
    }

    /// # Safety
    ///
    /// There is such an integer at the address.
    #[inline(always)]
    pub(crate) unsafe fn read(self, from: *const u8) -> i64 {
        // SAFETY: guaranteed by the caller.
        unsafe { (self.0)(from) }
    }
}

/// The vectors of an array of indices, in order.
#[derive(Debug, Clone)]
pub(super) struct IndexVectors {
    integers: IndexReader,
    /// The batch sizes, and their strides in bytes.
    pub(super) batch: Vec<usize>,
    steps: Vec<usize>,
    /// The bytes from one component to the next.
    step: usize,
    pub(super) map: Vec<usize>,
    /// Pairs of a dimension of the operand and one of `batch`.
    batching: Vec<(usize, usize)>,
}

impl IndexVectors {
    /// Vectors for an operand of a rank.
    pub(super) fn new(indices: &Indices, rank: usize) -> Result<Self, LayoutError> {
        let Indices { element, dims, vector_dim, map, batching } = indices;
        if *vector_dim > dims.len() {
            return Err(LayoutError::Dimension {
                what: "index_vector_dim",
                found: *vector_dim,
                rank: dims.len(),
            });
        }
        if dims.get(*vector_dim).copied().unwrap_or(1) != map.len() {
            return Err(LayoutError::Sizes("index vectors have another length than their dimensions"));
        }
        let mut seen = vec![false; rank];
        for &found in map.iter().chain(batching.iter().map(|(dim, _)| dim)) {
            match seen.get_mut(found) {
                Some(seen) if !*seen => *seen = true,
                _ => return Err(LayoutError::Dimension { what: "an index vector", found, rank }),
            }
        }
        let bytes = element.byte_width();
        let strides: Vec<usize> = super::row_major(dims)?.into_iter().map(isize::unsigned_abs).collect();
        let last = dims.iter().try_fold(bytes, |all, &size| all.checked_mul(size));
        last.filter(|&all| isize::try_from(all).is_ok()).ok_or(LayoutError::Overflow)?;
        let others: Vec<usize> = (0..dims.len()).filter(|dim| dim != vector_dim).collect();
        let paired = |&(dim, other): &(usize, usize)| {
            let position = others.iter().position(|&kept| kept == other);
            let missing =
                LayoutError::Dimension { what: "a batching dimension", found: other, rank: dims.len() };
            position.map(|position| (dim, position)).ok_or(missing)
        };
        Ok(Self {
            integers: IndexReader::new(*element)?,
            batch: others.iter().map(|&dim| dims[dim]).collect(),
            steps: others.iter().map(|&dim| strides[dim] * bytes).collect(),
            step: strides.get(*vector_dim).copied().unwrap_or(0) * bytes,
            map: map.clone(),
            batching: batching.iter().map(paired).collect::<Result<_, _>>()?,
        })
    }

    /// How many vectors there are.
    pub(super) fn count(&self) -> usize {
        self.batch.iter().product()
    }

    /// The index of the vector at a position.
    pub(super) fn index(&self, mut position: usize) -> Vec<usize> {
        let mut index = vec![0; self.batch.len()];
        for (at, &size) in index.iter_mut().zip(&self.batch).rev() {
            *at = position % size;
            position /= size;
        }
        index
    }

    /// Goes to the next index.
    pub(super) fn advance(&self, index: &mut [usize]) {
        for (at, &size) in index.iter_mut().zip(&self.batch).rev() {
            *at += 1;
            if *at < size {
                return;
            }
            *at = 0;
        }
    }

    /// Calls `each` with each dimension of the operand and its start index, from the vector at `index` and from the
    /// batching dimensions.
    ///
    /// # Safety
    ///
    /// The indices may be read.
    #[inline(always)]
    pub(super) unsafe fn positions(
        &self,
        indices: *const u8,
        index: &[usize],
        mut each: impl FnMut(usize, i64),
    ) {
        let first: usize = index.iter().zip(&self.steps).map(|(at, step)| at * step).sum();
        for (component, &dim) in self.map.iter().enumerate() {
            // SAFETY: guaranteed by the caller; the index is one of the array's.
            each(dim, unsafe { self.integers.read(indices.add(first + component * self.step)) });
        }
        for &(dim, position) in &self.batching {
            each(dim, index[position] as i64);
        }
    }
}

/// The dimensions of `0..rank` that are in none of the lists.
pub(super) fn others(rank: usize, listed: &[&[usize]]) -> Vec<usize> {
    (0..rank).filter(|dim| !listed.iter().any(|list| list.contains(dim))).collect()
}

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
pub(crate) struct IndexReader {
    read: unsafe fn(*const u8, usize, &mut [i64]),
    bytes: usize,
}

impl IndexReader {
    pub(crate) fn new(element: ElementType) -> Result<Self, LayoutError> {
        macro_rules! read {
            ($own:ident) => {{
                /// # Safety
                ///
                /// There are such integers.
                unsafe fn read(from: *const u8, step: usize, to: &mut [i64]) {
                    for (at, to) in to.iter_mut().enumerate() {
                        // SAFETY: guaranteed by the caller.
                        let integer = unsafe { from.add(at * step).cast::<$own>().read_unaligned() };
                        // Values that overflow i64 stay out of bounds.
                        *to = i64::try_from(integer).unwrap_or(i64::MAX);
                    }
                }
                Self { read, bytes: size_of::<$own>() }
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

    /// Reads as many integers as `to` has, `step` bytes apart.
    ///
    /// # Safety
    ///
    /// There are such integers from the address on.
    #[inline(always)]
    unsafe fn read(self, from: *const u8, step: usize, to: &mut [i64]) {
        // SAFETY: guaranteed by the caller.
        unsafe { (self.read)(from, step, to) }
    }

    /// Reads as many integers as `to` has, one after the other.
    ///
    /// # Safety
    ///
    /// There are such integers from the address on.
    pub(crate) unsafe fn read_dense(self, from: *const u8, to: &mut [i64]) {
        // SAFETY: guaranteed by the caller.
        unsafe { self.read(from, self.bytes, to) }
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

    /// The vectors from `index` to the end of its line: those whose indices differ in the last dimension alone.
    pub(super) fn left_in_line(&self, index: &[usize]) -> usize {
        self.batch.last().zip(index.last()).map_or(1, |(size, at)| size - at)
    }

    /// Goes on by so many vectors, no further than to the beginning of the next line.
    pub(super) fn advance(&self, index: &mut [usize], by: usize) {
        let mut carried = by;
        for (at, &size) in index.iter_mut().zip(&self.batch).rev() {
            *at += carried;
            if *at < size {
                return;
            }
            *at = 0;
            carried = 1;
        }
    }

    /// Calls `each` with each dimension of the operand that vectors or batching dimensions move, and its start indices for consecutive vectors
    /// of a line, from the one at `index` on. `starts` is where they are put: as many as there are vectors.
    ///
    /// # Safety
    ///
    /// The indices may be read, and that many vectors are left in the line.
    #[inline(always)]
    pub(super) unsafe fn positions(
        &self,
        indices: *const u8,
        index: &[usize],
        starts: &mut [i64],
        mut each: impl FnMut(usize, &[i64]),
    ) {
        let first: usize = index.iter().zip(&self.steps).map(|(at, step)| at * step).sum();
        let step = self.steps.last().copied().unwrap_or(0);
        for (component, &dim) in self.map.iter().enumerate() {
            // SAFETY: guaranteed by the caller; the indices are some of the array's.
            unsafe { self.integers.read(indices.add(first + component * self.step), step, starts) };
            each(dim, starts);
        }
        for &(dim, position) in &self.batching {
            let along = i64::from(position + 1 == self.batch.len());
            for (at, start) in starts.iter_mut().enumerate() {
                *start = index[position] as i64 + along * at as i64;
            }
            each(dim, starts);
        }
    }
}

/// The dimensions of `0..rank` that are in none of the lists.
pub(super) fn others(rank: usize, listed: &[&[usize]]) -> Vec<usize> {
    (0..rank).filter(|dim| !listed.iter().any(|list| list.contains(dim))).collect()
}

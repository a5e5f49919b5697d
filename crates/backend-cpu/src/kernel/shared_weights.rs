//! Packed weights that several kernels read: the steps of a recurrent layer, a head that a detector runs on several levels.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use warpforge_fusion::NodeId;
use warpforge_kernels::conv::PackedWeights;
use warpforge_kernels::gemm::PackedRhs;

/// What is read of a constant: where it begins, and in which steps. Offsets and strides are in elements.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Reading {
    pub(crate) value: NodeId,
    pub(crate) offset: isize,
    pub(crate) sizes: Vec<usize>,
    pub(crate) strides: Vec<isize>,
}

/// The weights that the kernels of a program have packed so far.
#[derive(Debug, Default)]
pub(crate) struct SharedWeights {
    pub(crate) matrices: PackedOnce<PackedRhs>,
    pub(crate) convolutions: PackedOnce<PackedWeights>,
}

/// Packed weights of one kind, by what they were made of. The same constant may be packed in several layouts.
#[derive(Debug)]
pub(crate) struct PackedOnce<P>(RefCell<HashMap<Reading, Vec<Arc<P>>>>);

impl<P> Default for PackedOnce<P> {
    fn default() -> Self {
        Self(RefCell::default())
    }
}

impl<P> PackedOnce<P> {
    /// The weights that another kernel has packed, if there are some that fit, else what `pack` makes.
    pub(crate) fn get<E>(
        &self,
        reading: Reading,
        fit: impl Fn(&P) -> bool,
        pack: impl FnOnce() -> Result<P, E>,
    ) -> Result<Shared<P>, E> {
        let mut all = self.0.borrow_mut();
        let same = all.entry(reading).or_default();
        if let Some(packed) = same.iter().find(|packed| fit(packed)) {
            return Ok(Shared { packed: Arc::clone(packed), is_own: false });
        }
        let packed = Arc::new(pack()?);
        same.push(Arc::clone(&packed));
        Ok(Shared { packed, is_own: true })
    }
}

/// Packed weights of a kernel, which others may have as well.
#[derive(Debug)]
pub(crate) struct Shared<P> {
    packed: Arc<P>,
    is_own: bool,
}

impl<P> Shared<P> {
    /// Weights that no other kernel reads.
    pub(crate) fn own(packed: P) -> Self {
        Self { packed: Arc::new(packed), is_own: true }
    }

    /// The bytes of the weights, which count for the kernel that packed them.
    pub(crate) fn bytes(&self, of: impl Fn(&P) -> usize) -> usize {
        if self.is_own { of(&self.packed) } else { 0 }
    }
}

impl<P> std::ops::Deref for Shared<P> {
    type Target = P;

    fn deref(&self) -> &P {
        &self.packed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(offset: isize) -> Reading {
        Reading { value: NodeId(3), offset, sizes: vec![4, 8], strides: vec![8, 1] }
    }

    #[test]
    fn weights_are_packed_once_for_each_reading_and_layout() {
        let once = PackedOnce::<u32>::default();
        let get = |offset, layout: u32| {
            let made =
                once.get(reading(offset), |&packed| packed == layout, || Ok::<u32, ()>(layout)).unwrap();
            made.bytes(|_| 128)
        };
        assert_eq!([get(0, 1), get(0, 1), get(0, 2), get(8, 1), get(0, 2)], [128, 0, 128, 128, 0]);
    }
}

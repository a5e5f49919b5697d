//! Running folds along a dimension: cumulative sums, products and extremes.

use warpforge_tensor::ElementType;

use super::axis::bytes_of;
use super::lanes::{Rows, SCANNED, Scan, scan};
use crate::fold::Fold;
use crate::movement::{LayoutError, Shared};
use crate::pool::Pool;

/// A planned running fold: every element becomes the fold of all up to it along a dimension.
#[derive(Debug, Clone)]
pub struct Cumulative {
    scan: Scan,
    init: Vec<u8>,
    element_size: usize,
    /// Elements along the dimension, and inside one step along it.
    length: usize,
    inner: usize,
    outer: usize,
    reverse: bool,
}

impl Cumulative {
    /// Folds along `axis` of a row-major array, each line from `init`, an element; from the last element on if `reverse`.
    ///
    /// # Errors
    ///
    /// When the dimension is not there, sizes get too large, or there is no such fold of such elements.
    pub fn new(
        element: ElementType,
        fold: Fold,
        dims: &[usize],
        axis: usize,
        init: &[u8],
        reverse: bool,
    ) -> Result<Self, LayoutError> {
        let missing = LayoutError::Dimension { what: "a running fold", found: axis, rank: dims.len() };
        let &length = dims.get(axis).ok_or(missing)?;
        let element_size = element.byte_width();
        bytes_of(dims, element_size)?;
        if init.len() != element_size {
            return Err(LayoutError::Sizes("the initial value is not one element"));
        }
        let scan =
            scan(fold, element).ok_or(LayoutError::Element { what: "a running fold", found: element })?;
        let (outer, inner) = (bytes_of(&dims[..axis], 1)?, bytes_of(&dims[axis + 1..], 1)?);
        Ok(Self { scan, init: init.to_vec(), element_size, length, inner, outer, reverse })
    }

    /// Folds.
    ///
    /// # Safety
    ///
    /// The array may be read at `source` and written at `target`; they are the same or have no byte in common.
    pub unsafe fn run(&self, pool: &Pool, source: *const u8, target: *mut u8) {
        if self.length == 0 || self.inner == 0 {
            return;
        }
        let (source, target) = (Shared::new(source), Shared::new(target));
        let groups = self.inner.div_ceil(SCANNED);
        let step = if self.reverse { -(self.inner as isize) } else { self.inner as isize };
        pool.run(self.outer * groups, &|piece, _| {
            let (outer, lane) = (piece / groups, piece % groups * SCANNED);
            let rows = Rows { count: self.length, step, lanes: SCANNED.min(self.inner - lane) };
            let first = if self.reverse { self.length - 1 } else { 0 };
            let at = ((outer * self.length + first) * self.inner + lane) * self.element_size;
            // SAFETY: the lanes are inside the array, and no other piece has them.
            unsafe { (self.scan)(source.get().add(at), target.get().add(at), &rows, self.init.as_ptr()) }
        });
    }
}

//! Cumulative reductions along a dimension (cumsum, cumprod, cummax, …).

use warpforge_tensor::ElementType;

use super::axis::bytes_of;
use crate::data_movement::LayoutError;
use crate::pool::Pool;
use crate::reduce::{MAX_SCAN_LANES, ReduceOp, Scan, ScanRows, scan};

/// A planned cumulative reduction: every element becomes the reduction of all up to it along a dimension.
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
    /// Reduces along `axis` of a row-major array, each line from `init`, an element; from the last element on if
    /// `reverse`.
    ///
    /// # Errors
    ///
    /// When the dimension does not exist, a size overflows, or the reduction does not support the element type.
    pub fn new(
        element: ElementType,
        reduction: ReduceOp,
        dims: &[usize],
        axis: usize,
        init: &[u8],
        reverse: bool,
    ) -> Result<Self, LayoutError> {
        let missing =
            LayoutError::Dimension { what: "a cumulative reduction", found: axis, rank: dims.len() };
        let &length = dims.get(axis).ok_or(missing)?;
        let element_size = element.byte_width();
        bytes_of(dims, element_size)?;
        if init.len() != element_size {
            return Err(LayoutError::Sizes("the initial value is not one element"));
        }
        let scan = scan(reduction, element)
            .ok_or(LayoutError::Element { what: "a cumulative reduction", found: element })?;
        let (outer, inner) = (bytes_of(&dims[..axis], 1)?, bytes_of(&dims[axis + 1..], 1)?);
        Ok(Self { scan, init: init.to_vec(), element_size, length, inner, outer, reverse })
    }

    /// Runs the reduction.
    ///
    /// # Safety
    ///
    /// The array may be read at `source` and written at `target`; they are the same or have no byte in common.
    pub unsafe fn run(&self, pool: &Pool, source: *const u8, target: *mut u8) {
        if self.length == 0 || self.inner == 0 {
            return;
        }
        let (source, target) =
            (crate::shared_ptr::SharedPtr::new(source), crate::shared_ptr::SharedPtr::new(target));
        let groups = self.inner.div_ceil(MAX_SCAN_LANES);
        let step = if self.reverse { -(self.inner as isize) } else { self.inner as isize };
        pool.run(self.outer * groups, &|task, _| {
            let (outer, lane) = (task / groups, task % groups * MAX_SCAN_LANES);
            let rows = ScanRows { count: self.length, step, lanes: MAX_SCAN_LANES.min(self.inner - lane) };
            let first = if self.reverse { self.length - 1 } else { 0 };
            let at = ((outer * self.length + first) * self.inner + lane) * self.element_size;
            // SAFETY: the lanes are inside the array, and no other task has them.
            unsafe { (self.scan)(source.get().add(at), target.get().add(at), &rows, self.init.as_ptr()) }
        });
    }
}

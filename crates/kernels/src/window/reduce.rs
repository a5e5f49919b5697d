//! Folding every window of an array: pooling, and running folds written as windows.

use warpforge_tensor::ElementType;

use super::axis::{Places, WindowAxis, bytes_of};
use super::element::{Element, for_element};
use super::lanes::{FoldLanes, fold_lanes};
use crate::fold::Fold;
use crate::movement::{LayoutError, Shared};
use crate::pool::Pool;

/// Elements that a piece folds, more or less.
const PIECE: usize = 1 << 16;

/// A planned folding of windows of a row-major array into a row-major array.
#[derive(Debug, Clone)]
pub struct ReduceWindow {
    /// Where elements are along each dimension that windows touch, in bytes.
    axes: Vec<Places>,
    dims: Vec<usize>,
    /// Elements of the dimensions behind those.
    lanes: usize,
    fold: FoldLanes,
    /// `lanes` times the initial value.
    init: Vec<u8>,
    /// Whether padding can be left out.
    neutral: bool,
    element_size: usize,
    windows: usize,
    windows_in_piece: usize,
}

impl ReduceWindow {
    /// Folds windows of an array of `dims`, each starting from `init`, an element. Padding takes part with that value.
    ///
    /// # Errors
    ///
    /// When sizes do not fit or get too large, or there is no such fold of such elements.
    pub fn new(
        element: ElementType,
        fold: Fold,
        dims: &[usize],
        axes: &[WindowAxis],
        init: &[u8],
    ) -> Result<Self, LayoutError> {
        crate::movement::check_rank("windows", axes.len(), dims.len())?;
        let element_size = element.byte_width();
        if init.len() != element_size {
            return Err(LayoutError::Sizes("the initial value is not one element"));
        }
        let function = fold_lanes(fold, element)
            .ok_or(LayoutError::Element { what: "what windows fold", found: element })?;
        let strides = crate::movement::row_major(dims)?;
        let touched = dims.len() - axes.iter().rev().take_while(|axis| axis.is_plain()).count();
        let (front, back) = dims.split_at(touched);
        let lanes = bytes_of(back, 1)?;
        bytes_of(dims, element_size)?;
        let places = front.iter().zip(axes).zip(&strides);
        let places: Vec<Places> = places
            .map(|((&size, axis), &stride)| axis.places(size, stride.unsigned_abs() * element_size))
            .collect::<Result<_, _>>()?;
        let counts: Vec<usize> = places.iter().map(Places::windows).chain(back.iter().copied()).collect();
        bytes_of(&counts, element_size)?;
        let windows = bytes_of(&counts[..touched], 1)?;
        let size = axes.iter().fold(lanes, |size, axis| size.saturating_mul(axis.size));
        let neutral = fold.is_idempotent() || is_neutral(fold, element, init);
        Ok(Self {
            axes: places,
            dims: counts,
            lanes,
            fold: function,
            init: init.repeat(lanes),
            neutral,
            element_size,
            windows: if lanes == 0 { 0 } else { windows },
            windows_in_piece: (PIECE / size.max(1)).max(1),
        })
    }

    /// The sizes of the result.
    #[must_use]
    pub fn dims(&self) -> &[usize] {
        &self.dims
    }

    /// Folds.
    ///
    /// # Safety
    ///
    /// The array may be read at `source` and the result written at `target`; they have no byte in common.
    pub unsafe fn run(&self, pool: &Pool, source: *const u8, target: *mut u8) {
        let (source, target) = (Shared::new(source), Shared::new(target));
        pool.run(self.windows.div_ceil(self.windows_in_piece), &|piece, _| {
            let first = piece * self.windows_in_piece;
            let last = (first + self.windows_in_piece).min(self.windows);
            // SAFETY: pieces write different windows; the caller vouches for the buffers.
            unsafe { self.piece(first..last, source.get(), target.get()) }
        });
    }

    /// # Safety
    ///
    /// As for [`Self::run`], with the target's windows written by this thread alone.
    unsafe fn piece(&self, windows: std::ops::Range<usize>, source: *const u8, target: *mut u8) {
        let (along, outer) = match self.axes.split_last() {
            Some((last, outer)) => (last.windows(), outer),
            None => (1, &*self.axes),
        };
        let bytes = self.lanes * self.element_size;
        let (mut rows, mut spare) = (Vec::new(), Vec::new());
        let mut elements: Vec<*const u8> = Vec::new();
        let mut row = None;
        for window in windows {
            if row != Some(window / along) {
                row = Some(window / along);
                self.row(outer, window / along, &mut rows, &mut spare);
            }
            elements.clear();
            elements.push(self.init.as_ptr());
            let columns = self.axes.last().map_or(&[0][..], |last| last.of(window % along));
            for &row in &rows {
                for &column in columns {
                    if row != Places::PADDING && column != Places::PADDING {
                        elements.push(source.wrapping_add(row + column));
                    } else if !self.neutral {
                        elements.push(self.init.as_ptr());
                    }
                }
            }
            // SAFETY: places are inside the array, the window is one of the result's.
            unsafe { (self.fold)(&elements, self.lanes, target.add(window * bytes)) };
        }
    }

    /// The places of a window along all dimensions but the last, in order.
    fn row(&self, outer: &[Places], mut at: usize, rows: &mut Vec<usize>, spare: &mut Vec<usize>) {
        let mut index = vec![0; outer.len()];
        for (place, axis) in index.iter_mut().zip(outer).rev() {
            *place = at % axis.windows();
            at /= axis.windows();
        }
        rows.clear();
        rows.push(0);
        for (axis, at) in outer.iter().zip(index) {
            spare.clear();
            for &row in &*rows {
                let sums = axis.of(at).iter().map(|&place| {
                    if row == Places::PADDING || place == Places::PADDING {
                        Places::PADDING
                    } else {
                        row + place
                    }
                });
                spare.extend(sums.filter(|&place| !self.neutral || place != Places::PADDING));
            }
            std::mem::swap(rows, spare);
        }
    }
}

/// Whether folding the value into a sum or a product that started from it changes nothing.
fn is_neutral(fold: Fold, element: ElementType, init: &[u8]) -> bool {
    fn same<T: Element + bytemuck::Pod>(fold: Fold, init: &[u8]) -> bool {
        let Ok(init) = bytemuck::try_pod_read_unaligned::<T>(init) else { return false };
        let zero: T = bytemuck::Zeroable::zeroed();
        match fold {
            // A negative zero becomes a positive one.
            Fold::Sum => bytemuck::bytes_of(&init) == bytemuck::bytes_of(&zero),
            // Only one and the zeros are their own squares, and one alone leaves all others as they are.
            Fold::Product => init.multiply(init) == init && init != zero && init.add(init) != init,
            _ => false,
        }
    }
    for_element!(element, T => same::<T>(fold, init), else false)
}

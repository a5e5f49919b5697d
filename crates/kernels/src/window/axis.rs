//! Windows along one dimension.

use crate::movement::LayoutError;

/// Most places along one dimension that are noted for windows.
const MAX_PLACES: usize = 1 << 26;

/// How windows lie along one dimension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowAxis {
    /// Elements of a window.
    pub size: usize,
    /// From one window to the next.
    pub stride: usize,
    /// Padding before the first element; negative to leave elements out.
    pub low: i64,
    /// Padding behind the last element; negative to leave elements out.
    pub high: i64,
    /// From one element of a window to the next.
    pub dilation: usize,
    /// From one element of the input to the next: what is between them is padding.
    pub base_dilation: usize,
}

impl Default for WindowAxis {
    /// A window for each element.
    fn default() -> Self {
        Self { size: 1, stride: 1, low: 0, high: 0, dilation: 1, base_dilation: 1 }
    }
}

impl WindowAxis {
    /// How many windows there are over so many elements.
    ///
    /// # Errors
    ///
    /// When a size, stride or dilation is zero, or numbers get too large.
    pub fn count(&self, elements: usize) -> Result<usize, LayoutError> {
        if [self.size, self.stride, self.dilation, self.base_dilation].contains(&0) {
            return Err(LayoutError::Sizes("window sizes, strides and dilations are positive"));
        }
        let span = |count: usize, step: usize| -> Option<i64> {
            let last = count.checked_sub(1)?.checked_mul(step)?;
            i64::try_from(last.checked_add(1)?).ok()
        };
        let all = if elements == 0 { Some(0) } else { span(elements, self.base_dilation) };
        let padded = all.and_then(|all| all.checked_add(self.low)).and_then(|all| all.checked_add(self.high));
        let (Some(padded), Some(window)) = (padded, span(self.size, self.dilation)) else {
            return Err(LayoutError::Overflow);
        };
        Ok(usize::try_from(padded - window).map_or(0, |left| left / self.stride + 1))
    }

    /// Whether there is a window for each element that has that element alone.
    pub(super) fn is_plain(&self) -> bool {
        *self == Self { dilation: self.dilation, base_dilation: self.base_dilation, ..Self::default() }
            && self.base_dilation == 1
    }

    /// The place of an element of a window; `None` in the padding and between dilated elements.
    pub(super) fn place(&self, elements: usize, window: usize, element: usize) -> Option<usize> {
        let at = (window * self.stride + element * self.dilation) as i64 - self.low;
        let at = usize::try_from(at).ok().filter(|at| at % self.base_dilation == 0)?;
        Some(at / self.base_dilation).filter(|&at| at < elements)
    }

    /// The places of all elements of all windows, times `step`.
    pub(super) fn places(&self, elements: usize, step: usize) -> Result<Places, LayoutError> {
        let windows = self.count(elements)?;
        if windows.checked_mul(self.size).is_none_or(|all| all > MAX_PLACES) {
            return Err(LayoutError::Overflow);
        }
        let mut places = Places { size: self.size, places: Vec::with_capacity(windows * self.size) };
        for window in 0..windows {
            let all = (0..self.size).map(|element| self.place(elements, window, element));
            places.places.extend(all.map(|place| place.map_or(Places::PADDING, |place| place * step)));
        }
        Ok(places)
    }
}

/// Where the elements of windows along one dimension are.
#[derive(Debug, Clone)]
pub(super) struct Places {
    size: usize,
    places: Vec<usize>,
}

impl Places {
    /// The place of what is not there.
    pub(super) const PADDING: usize = usize::MAX;

    /// Elements of a window.
    pub(super) fn size(&self) -> usize {
        self.size
    }

    pub(super) fn windows(&self) -> usize {
        self.places.len() / self.size
    }

    /// The places of a window.
    pub(super) fn of(&self, window: usize) -> &[usize] {
        &self.places[window * self.size..][..self.size]
    }
}

/// The bytes of an array; they can be counted as the offsets of a pointer.
pub(super) fn bytes_of(dims: &[usize], element_size: usize) -> Result<usize, LayoutError> {
    let bytes = dims.iter().try_fold(element_size, |all, &size| all.checked_mul(size));
    bytes.filter(|&bytes| isize::try_from(bytes).is_ok()).ok_or(LayoutError::Overflow)
}

//! Windows along one dimension.

use crate::data_movement::LayoutError;

/// Maximum number of tabulated offsets per dimension.
const MAX_OFFSETS: usize = 1 << 26;

/// The windows along one dimension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowAxis {
    /// Elements of a window.
    pub size: usize,
    /// The window stride.
    pub stride: usize,
    /// Padding before the first element; negative crops.
    pub low: i64,
    /// Padding after the last element; negative crops.
    pub high: i64,
    /// The window dilation.
    pub dilation: usize,
    /// The base dilation: elements in between are padding.
    pub base_dilation: usize,
}

impl Default for WindowAxis {
    /// A window of size 1 at each element.
    fn default() -> Self {
        Self { size: 1, stride: 1, low: 0, high: 0, dilation: 1, base_dilation: 1 }
    }
}

impl WindowAxis {
    /// The number of windows over `elements` elements.
    ///
    /// # Errors
    ///
    /// When a size, stride or dilation is zero, or values get too large.
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

    /// Whether windows are single elements, one for each element.
    pub(super) fn is_plain(&self) -> bool {
        *self == Self { dilation: self.dilation, base_dilation: self.base_dilation, ..Self::default() }
            && self.base_dilation == 1
    }

    /// The input index of an element of a window; `None` in the padding.
    pub(super) fn input_index(&self, elements: usize, window: usize, element: usize) -> Option<usize> {
        let at = (window * self.stride + element * self.dilation) as i64 - self.low;
        let at = usize::try_from(at).ok().filter(|at| at % self.base_dilation == 0)?;
        Some(at / self.base_dilation).filter(|&at| at < elements)
    }

    /// The offsets of all elements of all windows: input indices times `step`.
    pub(super) fn offsets(&self, elements: usize, step: usize) -> Result<WindowOffsets, LayoutError> {
        let windows = self.count(elements)?;
        if windows.checked_mul(self.size).is_none_or(|all| all > MAX_OFFSETS) {
            return Err(LayoutError::Overflow);
        }
        let mut offsets = WindowOffsets { size: self.size, offsets: Vec::with_capacity(windows * self.size) };
        for window in 0..windows {
            let all = (0..self.size).map(|element| self.input_index(elements, window, element));
            offsets.offsets.extend(all.map(|input_index| {
                input_index.map_or(WindowOffsets::PADDING, |input_index| input_index * step)
            }));
        }
        Ok(offsets)
    }
}

/// The input offsets of the elements of windows along one dimension.
#[derive(Debug, Clone)]
pub(super) struct WindowOffsets {
    size: usize,
    offsets: Vec<usize>,
}

impl WindowOffsets {
    /// The offset of padding.
    pub(super) const PADDING: usize = usize::MAX;

    /// Elements of a window.
    pub(super) fn size(&self) -> usize {
        self.size
    }

    pub(super) fn windows(&self) -> usize {
        self.offsets.len() / self.size
    }

    /// The offsets of a window.
    pub(super) fn of(&self, window: usize) -> &[usize] {
        &self.offsets[window * self.size..][..self.size]
    }
}

/// The bytes of an array, which fit into `isize`.
pub(super) fn bytes_of(dims: &[usize], element_size: usize) -> Result<usize, LayoutError> {
    let bytes = dims.iter().try_fold(element_size, |all, &size| all.checked_mul(size));
    bytes.filter(|&bytes| isize::try_from(bytes).is_ok()).ok_or(LayoutError::Overflow)
}

//! The sizes of a convolution, and where along each dimension its taps lie.

use super::ConvError;

/// One spatial dimension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dimension {
    /// Elements of the input.
    pub input: usize,
    /// Elements of the window.
    pub window: usize,
    /// From one position of the window to the next.
    pub stride: usize,
    /// Zeros before and after the (dilated) input; negative numbers take elements away.
    pub padding: (i64, i64),
    /// From one element of the window to the next.
    pub window_dilation: usize,
    /// From one element of the input to the next, with zeros between them: more than 1 in transposed convolutions.
    pub base_dilation: usize,
}

impl Dimension {
    /// A dimension of neither padding nor dilation, with a stride of 1.
    #[must_use]
    pub fn new(input: usize, window: usize) -> Self {
        Self { input, window, stride: 1, padding: (0, 0), window_dilation: 1, base_dilation: 1 }
    }

    /// The element of the input at a place of the padded and dilated input, if it is not padding.
    pub(super) fn element(&self, place: usize) -> Option<u32> {
        let (at, by) = (place as i64 - self.padding.0, self.base_dilation as i64);
        let inside = at >= 0 && at % by == 0 && at / by < self.input as i64;
        inside.then(|| (at / by) as u32)
    }
}

/// The sizes of a convolution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Geometry {
    /// Images.
    pub batch: usize,
    /// Channels of the input, of all groups.
    pub channels: usize,
    /// Channels of the output, of all groups.
    pub outputs: usize,
    /// Groups of channels that have nothing to do with each other.
    pub groups: usize,
    /// The spatial dimensions, the outermost first. There may be none.
    pub dimensions: Vec<Dimension>,
}

/// Where the taps of one dimension lie: for each position of the window and each of its elements the element of the
/// input, if it is not padding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    /// Positions of the window.
    pub(super) outputs: usize,
    /// Elements of the window.
    pub(super) window: usize,
    places: Vec<Option<u32>>,
}

impl Line {
    pub(super) fn new(dimension: &Dimension, number: usize) -> Result<Self, ConvError> {
        let too_large = ConvError::TooLarge { dimension: number };
        let Dimension { input, window, stride, padding, window_dilation, base_dilation } = *dimension;
        if stride == 0 || window_dilation == 0 || base_dilation == 0 {
            return Err(ConvError::Step { dimension: number });
        }
        // 32 bits for each size keep all sums and products below within 64.
        let small = |size: usize| u32::try_from(size).map(i64::from).map_err(|_| too_large.clone());
        let (input, extent, stride) = (small(input)?, small(window)?, small(stride)?);
        let (window_dilation, base_dilation) = (small(window_dilation)?, small(base_dilation)?);
        if padding.0.unsigned_abs() > u64::from(u32::MAX) || padding.1.unsigned_abs() > u64::from(u32::MAX) {
            return Err(too_large);
        }
        let dilated = |size: i64, by: i64| {
            if size == 0 { Some(0) } else { ((size - 1).checked_mul(by))?.checked_add(1) }
        };
        let base = dilated(input, base_dilation).and_then(|base| base.checked_add(padding.0 + padding.1));
        let reach = dilated(extent, window_dilation);
        let (base, reach) = base.zip(reach).ok_or_else(|| too_large.clone())?;
        let outputs = if extent == 0 || base < reach { 0 } else { (base - reach) / stride + 1 };
        let outputs = usize::try_from(outputs).map_err(|_| too_large.clone())?;
        let count = outputs.checked_mul(window).filter(|&count| count < 1 << 31).ok_or(too_large)?;
        let mut places = Vec::with_capacity(count);
        for output in 0..outputs as i64 {
            for element in 0..extent {
                let at = output * stride - padding.0 + element * window_dilation;
                let inside = at >= 0 && at % base_dilation == 0 && at / base_dilation < input;
                places.push(inside.then(|| (at / base_dilation) as u32));
            }
        }
        Ok(Self { outputs, window, places })
    }

    /// A table made by hand: `place` has the element for a position and an element of the window.
    pub(super) fn from_fn(
        outputs: usize,
        window: usize,
        place: impl Fn(usize, usize) -> Option<u32>,
    ) -> Self {
        let places = (0..outputs).flat_map(|output| (0..window).map(move |element| (output, element)));
        Self { outputs, window, places: places.map(|(output, element)| place(output, element)).collect() }
    }

    /// The elements of the input that the window covers at a position.
    pub(super) fn at(&self, output: usize) -> &[Option<u32>] {
        &self.places[output * self.window..][..self.window]
    }
}

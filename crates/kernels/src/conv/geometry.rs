//! The sizes of a convolution, and the input elements of its taps.

use super::ConvError;

/// One spatial dimension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dimension {
    /// Elements of the input.
    pub input: usize,
    /// Elements of the window.
    pub window: usize,
    /// The window stride.
    pub stride: usize,
    /// Padding before and after the (dilated) input; negative padding crops.
    pub padding: (i64, i64),
    /// The window (rhs) dilation.
    pub window_dilation: usize,
    /// The base (lhs) dilation: more than 1 in transposed convolutions.
    pub base_dilation: usize,
}

impl Dimension {
    /// A dimension without padding or dilation, with a stride of 1.
    #[must_use]
    pub fn new(input: usize, window: usize) -> Self {
        Self { input, window, stride: 1, padding: (0, 0), window_dilation: 1, base_dilation: 1 }
    }

    /// The input element at an index of the padded and dilated input, if it is not padding.
    pub(super) fn element(&self, input_index: usize) -> Option<u32> {
        let (at, by) = (input_index as i64 - self.padding.0, self.base_dilation as i64);
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
    /// Channel groups.
    pub groups: usize,
    /// The spatial dimensions, the outermost first. There may be none.
    pub dimensions: Vec<Dimension>,
}

/// The taps of one dimension: the input element for each window position and each element of the window, if it is not
/// padding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AxisTaps {
    /// Positions of the window.
    pub(super) outputs: usize,
    /// Elements of the window.
    pub(super) window: usize,
    inputs: Vec<Option<u32>>,
}

impl AxisTaps {
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
        let mut inputs = Vec::with_capacity(count);
        for output in 0..outputs as i64 {
            for element in 0..extent {
                let at = output * stride - padding.0 + element * window_dilation;
                let inside = at >= 0 && at % base_dilation == 0 && at / base_dilation < input;
                inputs.push(inside.then(|| (at / base_dilation) as u32));
            }
        }
        Ok(Self { outputs, window, inputs })
    }

    /// A table from a function of the window position and the element of the window.
    pub(super) fn from_fn(
        outputs: usize,
        window: usize,
        input_index: impl Fn(usize, usize) -> Option<u32>,
    ) -> Self {
        let inputs = (0..outputs).flat_map(|output| (0..window).map(move |element| (output, element)));
        Self {
            outputs,
            window,
            inputs: inputs.map(|(output, element)| input_index(output, element)).collect(),
        }
    }

    /// The elements of the input that the window covers at a position.
    pub(super) fn at(&self, output: usize) -> &[Option<u32>] {
        &self.inputs[output * self.window..][..self.window]
    }
}

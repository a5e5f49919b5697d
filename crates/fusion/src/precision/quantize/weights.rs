//! Weights rounded to few bits.

use half::bf16;
use thiserror::Error;
use warpforge_tensor::FloatType;

use super::{hqq, least_squares};

/// Why weights cannot be quantized.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum QuantizeError {
    /// Nothing to quantize.
    #[error(
        "no matrix product has constant weights in f32, bf16 or f16, so there is nothing to quantize; \
         bind the weights, or take a precision of floats"
    )]
    NoWeights,
    /// A weight that is no number.
    #[error("a weight of {layer} is NaN or infinite: it has no scale")]
    NotFinite {
        /// Which product: its weight and sizes.
        layer: String,
    },
    /// Groups that do not fill a row.
    #[error("the group size {group} does not divide the depth of {layers}")]
    Group {
        /// The group size.
        group: usize,
        /// Which products: their weights and sizes.
        layers: String,
    },
    /// A tensor could not be made.
    #[error("{0}")]
    Tensor(String),
}

impl QuantizeError {
    /// Groups that do not fill the rows of some layers.
    pub(super) fn groups(group: usize, layers: &[String]) -> Self {
        /// Layers that are named.
        const NAMED: usize = 12;
        let mut text = layers.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
        if layers.len() > NAMED {
            text += &format!(" and {} more", layers.len() - NAMED);
        }
        Self::Group { group, layers: text }
    }
}

/// The weights of a product: one row of `k` for each output.
#[derive(Debug, Clone, Copy)]
pub struct WeightMatrix<'a> {
    /// Row by row.
    pub values: &'a [f32],
    /// The length of a row.
    pub k: usize,
}

/// Weights with a scale for each row.
#[derive(Debug, Clone, PartialEq)]
pub struct RowWeights {
    /// One byte for each weight: an integer, or the bits of an f8E4M3FN.
    pub codes: Vec<u8>,
    /// What a code of each row is multiplied by.
    pub scales: Vec<f32>,
}

/// Weights of 4 bits: `code · scale + offset` for each group.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupedWeights {
    /// Integers from -8 to 7.
    pub codes: Vec<i8>,
    /// What a code of each group is multiplied by.
    pub scales: Vec<bf16>,
    /// What is added to a code of each group.
    pub offsets: Vec<bf16>,
}

/// The largest number of f8E4M3FN.
pub(super) const F8_MAX: f32 = 448.0;
/// The largest magnitude of a code of 8 bits.
pub(super) const I8_MAX: f32 = 127.0;
/// The smallest scale: rows and groups of zeros have it.
pub(super) const LEAST_SCALE: f32 = f32::EPSILON;

impl WeightMatrix<'_> {
    fn rows(&self) -> impl ExactSizeIterator<Item = &[f32]> {
        self.values.chunks_exact(self.k.max(1))
    }

    /// Checks that all weights are numbers.
    ///
    /// # Errors
    ///
    /// When one is NaN or infinite.
    pub fn check(&self) -> Result<(), QuantizeError> {
        let sizes = || format!("the matrix product {}x{}", self.k, self.values.len() / self.k.max(1));
        self.check_layer(sizes)
    }

    /// As [`WeightMatrix::check`], for the weights of a layer.
    pub(super) fn check_layer(&self, layer: impl FnOnce() -> String) -> Result<(), QuantizeError> {
        match self.values.iter().all(|value| value.is_finite()) {
            true => Ok(()),
            false => Err(QuantizeError::NotFinite { layer: layer() }),
        }
    }

    /// In 8 bits, symmetric.
    #[must_use]
    pub fn int8(&self) -> RowWeights {
        let scales: Vec<f32> = self.rows().map(|row| scale(row, I8_MAX)).collect();
        self.coded(scales, |scaled| (scaled.round_ties_even().clamp(-I8_MAX, I8_MAX) as i8).cast_unsigned())
    }

    /// In f8E4M3FN, with a scale for each row, or one for all.
    #[must_use]
    pub fn float8(&self, one_scale: bool) -> RowWeights {
        let rows = self.rows().len();
        let scales: Vec<f32> = match one_scale {
            true => vec![scale(self.values, F8_MAX); rows],
            false => self.rows().map(|row| scale(row, F8_MAX)).collect(),
        };
        let format = FloatType::F8E4M3Fn.format();
        self.coded(scales, |scaled| format.encode(f64::from(scaled.clamp(-F8_MAX, F8_MAX))) as u8)
    }

    /// Each weight over the scale of its row, as a code.
    fn coded(&self, scales: Vec<f32>, code: impl Fn(f32) -> u8) -> RowWeights {
        let mut codes = Vec::with_capacity(self.values.len());
        for (row, &scale) in self.rows().zip(&scales) {
            codes.extend(row.iter().map(|&value| code(value / scale)));
        }
        RowWeights { codes, scales }
    }

    /// In 4 bits, with a scale and an offset for each group of a row. The group divides the rows.
    #[must_use]
    pub fn int4(&self, group: usize, by_hqq: bool) -> GroupedWeights {
        let groups = self.values.len() / group.max(1);
        let mut result = GroupedWeights {
            codes: Vec::with_capacity(self.values.len()),
            scales: Vec::with_capacity(groups),
            offsets: Vec::with_capacity(groups),
        };
        for weights in self.values.chunks_exact(group.max(1)) {
            let (scale, offset) = four_bits(weights, by_hqq);
            let (step, from) = (scale.to_f32(), offset.to_f32());
            let code = |&value: &f32| ((value - from) / step).round_ties_even().clamp(-8.0, 7.0) as i8;
            result.codes.extend(weights.iter().map(code));
            result.scales.push(scale);
            result.offsets.push(offset);
        }
        result
    }
}

/// The scale and the offset of a group, rounded to bf16 before its codes are made.
fn four_bits(weights: &[f32], by_hqq: bool) -> (bf16, bf16) {
    let (low, high) = weights
        .iter()
        .fold((f32::INFINITY, f32::NEG_INFINITY), |(low, high), &value| (low.min(value), high.max(value)));
    let scale = bf16::from_f32(((high - low) / 15.0).max(LEAST_SCALE));
    let step = scale.to_f32();
    let (scale, offset) = least_squares::fitted(weights, scale, bf16::from_f32(low + 8.0 * step));
    if !by_hqq {
        return (scale, offset);
    }
    let step = scale.to_f32();
    let zero = hqq::zero_point(weights, step, 8.0 - offset.to_f32() / step, 15.0);
    (scale, bf16::from_f32((8.0 - zero) * step))
}

fn scale(weights: &[f32], most: f32) -> f32 {
    let largest = weights.iter().fold(0.0f32, |largest, value| largest.max(value.abs()));
    (largest / most).max(LEAST_SCALE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(count: usize) -> Vec<f32> {
        let mut random = fastrand::Rng::with_seed(7);
        let one = |random: &mut fastrand::Rng| -> f32 { (0..6).map(|_| random.f32() - 0.5).sum() };
        (0..count).map(|at| one(&mut random) * if at % 97 == 0 { 8.0 } else { 1.0 }).collect()
    }

    fn sqnr(values: &[f32], other: &[f32]) -> f64 {
        let power = |all: &mut dyn Iterator<Item = f64>| all.map(|value| value * value).sum::<f64>();
        let signal = power(&mut values.iter().map(|&value| f64::from(value)));
        let noise = power(&mut values.iter().zip(other).map(|(&a, &b)| f64::from(a) - f64::from(b)));
        10.0 * (signal / noise).log10()
    }

    fn restored(weights: &GroupedWeights, group: usize) -> Vec<f32> {
        let of = |(at, &code): (usize, &i8)| {
            f32::from(code) * weights.scales[at / group].to_f32() + weights.offsets[at / group].to_f32()
        };
        weights.codes.iter().enumerate().map(of).collect()
    }

    #[test]
    fn eight_bits_are_within_half_a_step() {
        let values = noise(512);
        let quantized = WeightMatrix { values: &values, k: 64 }.int8();
        assert_eq!(quantized.scales.len(), 8);
        for (at, &value) in values.iter().enumerate() {
            let scale = quantized.scales[at / 64];
            let restored = f32::from(quantized.codes[at].cast_signed()) * scale;
            assert!((restored - value).abs() <= 0.5001 * scale, "{restored} is not {value}");
        }
    }

    #[test]
    fn four_bits_reach_their_signal_and_hqq_is_no_worse_by_its_norm() {
        let values = noise(128 * 64);
        let matrix = WeightMatrix { values: &values, k: 128 };
        let distance = |other: &[f32]| -> f64 {
            values.iter().zip(other).map(|(&a, &b)| f64::from((a - b).abs())).sum()
        };
        for group in [32, 128] {
            let plain = restored(&matrix.int4(group, false), group);
            let fitted = restored(&matrix.int4(group, true), group);
            assert!(sqnr(&values, &plain) > 15.0, "{}", sqnr(&values, &plain));
            assert!(distance(&fitted) < distance(&plain), "{} {}", distance(&fitted), distance(&plain));
        }
    }

    #[test]
    fn zeros_constants_and_float8_extremes_are_kept() {
        let zeros = WeightMatrix { values: &[0.0; 16], k: 8 };
        assert!(zeros.int8().codes.iter().all(|&code| code == 0));
        assert_eq!(restored(&zeros.int4(8, false), 8), [0.0; 16]);
        let same = [0.75; 8];
        let four = WeightMatrix { values: &same, k: 8 }.int4(8, false);
        assert!(restored(&four, 8).iter().all(|value| (value - 0.75).abs() < 1e-2));
        let eight = WeightMatrix { values: &[-3.5, 1.75, 0.0, 3.5], k: 4 }.float8(false);
        let format = FloatType::F8E4M3Fn.format();
        let back: Vec<f64> =
            eight.codes.iter().map(|&code| format.decode(code.into()) * f64::from(eight.scales[0])).collect();
        assert_eq!(back, [-3.5, 1.75, 0.0, 3.5]);
        assert!(WeightMatrix { values: &[1.0, f32::NAN], k: 2 }.check().is_err());
    }
}

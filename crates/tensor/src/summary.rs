//! What a tensor's values look like at a glance.

use serde::Serialize;

use crate::{Scalar, Tensor};

/// Statistics of the values of one tensor. Complex numbers count by magnitude, truth values as 0 and 1.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// Number of elements.
    pub count: usize,
    /// Smallest finite value; none without finite values.
    pub min: Option<f64>,
    /// Largest finite value.
    pub max: Option<f64>,
    /// Mean of the finite values.
    pub mean: Option<f64>,
    /// Number of NaNs.
    pub nan: usize,
    /// Number of infinities.
    pub infinite: usize,
    /// Hash of type, shape and bytes: the same for the same tensor on every machine.
    pub hash: String,
}

/// Describes a tensor.
#[must_use]
pub fn summarise(tensor: &Tensor) -> Summary {
    let (mut nan, mut infinite, mut finite) = (0, 0, 0usize);
    let (mut min, mut max) = (f64::INFINITY, f64::NEG_INFINITY);
    // Running mean: the sum of large values could overflow.
    let mut mean = 0.0;
    for scalar in tensor.iter() {
        let value = match scalar {
            Scalar::Complex(re, im) => re.hypot(im),
            other => other.to_f64(),
        };
        if value.is_nan() {
            nan += 1;
        } else if value.is_infinite() {
            infinite += 1;
        } else {
            finite += 1;
            min = min.min(value);
            max = max.max(value);
            mean += (value - mean) / finite as f64;
        }
    }
    let known = |value: f64| (finite > 0).then_some(value);
    Summary {
        count: tensor.len(),
        min: known(min),
        max: known(max),
        mean: known(mean),
        nan,
        infinite,
        hash: format!("{:016x}", hash(tensor)),
    }
}

/// FNV-1a over type, shape and bytes.
fn hash(tensor: &Tensor) -> u64 {
    let header = format!("{}:{};", tensor.shape(), tensor.element_type());
    let mix = |state: u64, &byte: &u8| (state ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    header.as_bytes().iter().chain(tensor.bytes()).fold(0xcbf2_9ce4_8422_2325, mix)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_values_are_counted_apart() {
        let values = [1.0f32, f32::NAN, -3.0, f32::INFINITY, 5.0];
        let summary = summarise(&Tensor::from_slice(&[5], &values).expect("fits"));
        assert_eq!((summary.count, summary.nan, summary.infinite), (5, 1, 1));
        assert_eq!((summary.min, summary.max, summary.mean), (Some(-3.0), Some(5.0), Some(1.0)));
    }

    #[test]
    fn nothing_finite_means_nothing_known() {
        let summary = summarise(&Tensor::from_slice(&[1], &[f64::NAN]).expect("fits"));
        assert_eq!((summary.min, summary.max, summary.mean), (None, None, None));
    }

    #[test]
    fn the_hash_sees_shape_and_bits() {
        let flat = Tensor::from_slice(&[4], &[0i32; 4]).expect("fits");
        let square = Tensor::from_slice(&[2, 2], &[0i32; 4]).expect("fits");
        let other = Tensor::from_slice(&[4], &[0, 0, 0, 1i32]).expect("fits");
        let hash = |tensor: &Tensor| summarise(tensor).hash;
        assert_ne!(hash(&flat), hash(&square));
        assert_ne!(hash(&flat), hash(&other));
        assert_eq!(hash(&flat), hash(&flat.clone()));
    }
}

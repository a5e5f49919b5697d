//! Quantized types: integers that express real numbers through scales and zero points.

use super::{FloatType, IntType};
use crate::Error;

/// Which elements share a scale and a zero point.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Granularity {
    /// All of them.
    PerTensor,
    /// Those with the same index along this dimension.
    PerAxis(usize),
    /// Those of the same block: block size per listed dimension, the others whole.
    SubChannel(Vec<(usize, usize)>),
}

/// A uniform quantized element type: `real = (stored - zero_point) * scale`.
#[derive(Debug, Clone, PartialEq)]
pub struct QuantizedType {
    /// Type of the stored integers.
    pub storage: IntType,
    /// Type of the numbers they express.
    pub expressed: FloatType,
    /// Smallest stored value.
    pub storage_min: i64,
    /// Largest stored value.
    pub storage_max: i64,
    /// Which elements share parameters.
    pub granularity: Granularity,
    /// One entry per group, in row-major order of the groups.
    pub parameters: Vec<QuantParameters>,
}

/// Scale and zero point of one group of elements.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QuantParameters {
    /// What one step of the stored integer is worth.
    pub scale: f64,
    /// The stored integer that expresses zero.
    pub zero_point: i64,
}

impl QuantizedType {
    /// A type with one scale and zero point for the whole tensor and the storage type's full range.
    #[must_use]
    pub fn per_tensor(storage: IntType, expressed: FloatType, scale: f64, zero_point: i64) -> Self {
        Self {
            storage,
            expressed,
            storage_min: storage.min() as i64,
            storage_max: storage.max() as i64,
            granularity: Granularity::PerTensor,
            parameters: vec![QuantParameters { scale, zero_point }],
        }
    }

    /// Checks what the type promises on its own, without a shape.
    ///
    /// # Errors
    ///
    /// When the range is empty or outside the storage type, a scale is not finite and positive, a zero point is outside
    /// the range, or the parameters do not fit the granularity.
    pub fn validate(&self) -> Result<(), Error> {
        let reject = |what: String| Err(Error::Quantization(what));
        let (min, max) = (i128::from(self.storage_min), i128::from(self.storage_max));
        if min >= max || min < self.storage.min() || max > self.storage.max() {
            return reject(format!("storage range {min}:{max} does not fit {}", self.storage.name()));
        }
        if self.parameters.is_empty() {
            return reject("no scale is given".to_owned());
        }
        if self.granularity == Granularity::PerTensor && self.parameters.len() != 1 {
            return reject(format!("{} scales for a per-tensor type", self.parameters.len()));
        }
        let format = self.expressed.format();
        for QuantParameters { scale, zero_point } in &self.parameters {
            // The scale is a number of the expressed type: one that is rounded to zero there is none.
            let rounded = format.round(*scale);
            if !(rounded > 0.0 && rounded.is_finite() && *scale <= format.max_finite()) {
                return reject(format!("scale {scale} is not a positive finite {}", self.expressed.name()));
            }
            if *zero_point < self.storage_min || *zero_point > self.storage_max {
                return reject(format!("zero point {zero_point} is outside the storage range {min}:{max}"));
            }
        }
        Ok(())
    }

    /// The parameters of the element at `index` of a tensor of shape `dims`, or `None` where they do not cover it.
    #[must_use]
    pub fn parameters_at(&self, dims: &[usize], index: &[usize]) -> Option<QuantParameters> {
        let group = match &self.granularity {
            Granularity::PerTensor => 0,
            Granularity::PerAxis(axis) => *index.get(*axis)?,
            Granularity::SubChannel(blocks) => {
                let mut group = 0;
                for (axis, (&dim, &at)) in dims.iter().zip(index).enumerate() {
                    let size = blocks.iter().find(|(listed, _)| *listed == axis).map_or(dim, |block| block.1);
                    group = group * dim.checked_div(size)? + at.checked_div(size)?;
                }
                group
            }
        };
        self.parameters.get(group).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(granularity: Granularity, count: i64) -> QuantizedType {
        let parameters =
            (0..count).map(|i| QuantParameters { scale: 0.5 + i as f64, zero_point: i }).collect();
        let base = QuantizedType::per_tensor(IntType::I8, FloatType::F32, 1.0, 0);
        QuantizedType { granularity, parameters, ..base }
    }

    #[test]
    fn parameters_follow_the_granularity() {
        let at = |ty: &QuantizedType, index: &[usize]| ty.parameters_at(&[2, 4], index).map(|p| p.zero_point);
        assert_eq!(at(&sample(Granularity::PerTensor, 1), &[1, 3]), Some(0));
        assert_eq!(at(&sample(Granularity::PerAxis(1), 4), &[1, 3]), Some(3));
        assert_eq!(at(&sample(Granularity::PerAxis(1), 3), &[1, 3]), None);
        assert_eq!(at(&sample(Granularity::SubChannel(vec![(1, 2)]), 2), &[1, 3]), Some(1));
        assert_eq!(at(&sample(Granularity::SubChannel(vec![(0, 1), (1, 2)]), 4), &[1, 3]), Some(3));
    }

    #[test]
    fn bad_parameters_are_refused() {
        let good = QuantizedType::per_tensor(IntType::I8, FloatType::F16, 0.1, 3);
        assert!(good.validate().is_ok());
        assert!(QuantizedType { storage_max: 200, ..good.clone() }.validate().is_err());
        assert!(QuantizedType::per_tensor(IntType::I8, FloatType::F16, 1e9, 0).validate().is_err());
        assert!(QuantizedType::per_tensor(IntType::I8, FloatType::F16, -1.0, 0).validate().is_err());
        assert!(QuantizedType::per_tensor(IntType::I8, FloatType::F16, 1e-30, 0).validate().is_err());
        assert!(QuantizedType::per_tensor(IntType::I8, FloatType::F16, 1.0, 128).validate().is_err());
        assert!(sample(Granularity::PerTensor, 2).validate().is_err());
    }
}

//! What quantized operands stand for, in f32: what references multiply.

use warpforge_tensor::FloatType;

use super::recipe::Recipe;
use super::weights::{F8_MAX, I8_MAX, LEAST_SCALE, QuantizeError, RowWeights, WeightMatrix};

impl Recipe {
    /// Weights after they are quantized: rows of `k`, one for each output.
    ///
    /// # Errors
    ///
    /// When a weight is no number, or groups do not fill a row.
    pub fn restored_weights(self, values: &[f32], k: usize) -> Result<Vec<f32>, QuantizeError> {
        let matrix = WeightMatrix { values, k };
        matrix.check()?;
        let rows = |weights: &RowWeights, value: &dyn Fn(u8) -> f32| -> Vec<f32> {
            let rows = weights.codes.chunks_exact(k.max(1)).zip(&weights.scales);
            rows.flat_map(|(row, scale)| row.iter().map(|&code| value(code) * scale).collect::<Vec<_>>())
                .collect()
        };
        Ok(match self {
            Self::Int8WeightOnly | Self::Int8Dynamic => {
                rows(&matrix.int8(), &|code| f32::from(code.cast_signed()))
            }
            Self::Float8WeightOnly | Self::Float8DynamicTensor | Self::Float8DynamicRow => {
                let format = FloatType::F8E4M3Fn.format();
                let weights = matrix.float8(self == Self::Float8DynamicTensor);
                rows(&weights, &|code| format.decode(code.into()) as f32)
            }
            Self::Int4WeightOnly { group, hqq } => {
                let group = group as usize;
                if !k.is_multiple_of(group) {
                    let layers = format!("the matrix product {k}x{}", values.len() / k.max(1));
                    return Err(QuantizeError::Group { group, layers });
                }
                let weights = matrix.int4(group, hqq);
                let groups =
                    weights.codes.chunks_exact(group).zip(weights.scales.iter().zip(&weights.offsets));
                let value = |&code: &i8, scale: f32, offset: f32| f32::from(code) * scale + offset;
                groups
                    .flat_map(|(codes, (scale, offset))| {
                        let (scale, offset) = (scale.to_f32(), offset.to_f32());
                        codes.iter().map(move |code| value(code, scale, offset))
                    })
                    .collect()
            }
        })
    }

    /// A row of activations after it is quantized; as it is where the recipe leaves activations alone.
    #[must_use]
    pub fn restored_activations(self, row: &[f32]) -> Vec<f32> {
        let most = match self {
            Self::Int8Dynamic => I8_MAX,
            Self::Float8DynamicTensor | Self::Float8DynamicRow => F8_MAX,
            _ => return row.to_vec(),
        };
        let largest = row.iter().fold(0.0f32, |largest, value| largest.max(value.abs()));
        let scale = (largest * (1.0 / most)).max(LEAST_SCALE);
        let inverse = 1.0 / scale;
        let format = FloatType::F8E4M3Fn.format();
        let rounded = |value: f32| match self {
            Self::Int8Dynamic => value.round_ties_even(),
            _ => format.decode(format.encode(f64::from(value.clamp(-most, most)))) as f32,
        };
        row.iter().map(|&value| rounded(value * inverse) * scale).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_recipe_restores_about_what_it_was_given() {
        let values: Vec<f32> = (0..64).map(|at| ((at * 37 % 64) as f32 - 31.5) / 8.0).collect();
        for recipe in Recipe::ALL {
            let recipe = match recipe {
                Recipe::Int4WeightOnly { hqq, .. } => Recipe::Int4WeightOnly { group: 16, hqq },
                other => other,
            };
            let (weights, row) =
                (recipe.restored_weights(&values, 32).unwrap(), recipe.restored_activations(&values));
            for (at, &value) in values.iter().enumerate() {
                assert!((weights[at] - value).abs() < 0.3, "{recipe}: {} is not {value}", weights[at]);
                assert!((row[at] - value).abs() < 0.13, "{recipe}: {} is not {value}", row[at]);
            }
        }
        assert_eq!(Recipe::Int8WeightOnly.restored_activations(&[0.1]), [0.1]);
        let group = Recipe::Int4WeightOnly { group: 24, hqq: false };
        assert!(matches!(group.restored_weights(&values, 32), Err(QuantizeError::Group { group: 24, .. })));
        assert!(Recipe::Int8Dynamic.restored_weights(&[f32::NAN], 1).is_err());
    }
}

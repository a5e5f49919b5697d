//! Half-quadratic quantization of a group of weights: the zero point that leaves the least error by a norm that forgives outliers.
//!
//! Badri and Shaji, "Half-Quadratic Quantization of Large Machine Learning Models", 2023.

/// The norm of the error.
const NORM: f32 = 0.7;
/// The first weight of the quadratic term, and its growth.
const BETA: (f32, f32) = (10.0, 1.01);
/// The most rounds.
const ROUNDS: usize = 20;

/// The zero point, in steps, that codes `0..=most` of a group have, from one to begin with; `scale` is the step.
pub(super) fn zero_point(weights: &[f32], scale: f32, zero: f32, most: f32) -> f32 {
    let code = |weight: f32, zero: f32| (weight / scale + zero).round_ties_even().clamp(0.0, most);
    let error = |zero: f32| -> f64 {
        weights.iter().map(|&weight| f64::from((weight - (code(weight, zero) - zero) * scale).abs())).sum()
    };
    let (mut best, mut least) = (zero, error(zero));
    let (mut zero, mut beta) = (zero, BETA.0);
    for _ in 0..ROUNDS {
        let sum: f32 = weights
            .iter()
            .map(|&weight| {
                let code = code(weight, zero);
                let residual = shrunk(weight - (code - zero) * scale, beta);
                code - (weight - residual) / scale
            })
            .sum();
        zero = sum / weights.len() as f32;
        beta *= BETA.1;
        let now = error(zero);
        if !now.is_finite() || now >= least {
            break;
        }
        (best, least) = (zero, now);
    }
    best
}

/// The proximal operator of the norm.
fn shrunk(value: f32, beta: f32) -> f32 {
    let size = value.abs();
    if size == 0.0 {
        return 0.0;
    }
    value.signum() * (size - size.powf(NORM - 1.0) / beta).max(0.0)
}

//! The scale and the offset of a group of 4 bits that leave the least squared error, from those of its smallest and largest weight.

use half::bf16;

/// The most rounds: codes for a scale, then the scale for the codes.
const ROUNDS: usize = 3;

/// The best scale and offset that are found; the given ones where no others are better.
pub(super) fn fitted(weights: &[f32], scale: bf16, offset: bf16) -> (bf16, bf16) {
    let mut best = (scale, offset);
    let (mut least, mut fit) = judged(weights, best);
    for _ in 0..ROUNDS {
        let Some(next) = fit.line() else { break };
        let (error, sums) = judged(weights, next);
        if !error.is_finite() || error >= least {
            break;
        }
        (best, least, fit) = (next, error, sums);
    }
    best
}

/// Sums over the codes and the weights of a group.
#[derive(Default)]
struct Sums {
    count: f32,
    codes: f32,
    weights: f32,
    squares: f32,
    products: f32,
}

impl Sums {
    /// The line through codes and weights with the least squared error; none where all codes are the same.
    fn line(&self) -> Option<(bf16, bf16)> {
        let spread = self.squares - self.codes * self.codes / self.count;
        let slope = (self.products - self.codes * self.weights / self.count) / spread;
        let scale = bf16::from_f32(slope);
        let offset = bf16::from_f32((self.weights - scale.to_f32() * self.codes) / self.count);
        (spread > 0.0 && scale.to_f32() > 0.0 && offset.is_finite()).then_some((scale, offset))
    }
}

/// The squared error of a scale and an offset, and the sums for the next ones.
fn judged(weights: &[f32], (scale, offset): (bf16, bf16)) -> (f32, Sums) {
    let (step, from) = (scale.to_f32(), offset.to_f32());
    let inverse = 1.0 / step;
    let mut sums = Sums { count: weights.len() as f32, ..Sums::default() };
    let mut error = 0.0;
    for &weight in weights {
        let code = ((weight - from) * inverse).round_ties_even().clamp(-8.0, 7.0);
        let apart = weight - (code * step + from);
        error += apart * apart;
        sums.codes += code;
        sums.weights += weight;
        sums.squares += code * code;
        sums.products += code * weight;
    }
    (error, sums)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(weights: &[f32], pair: (bf16, bf16)) -> f32 {
        judged(weights, pair).0
    }

    #[test]
    fn the_error_is_never_larger_and_mostly_smaller() {
        let mut random = fastrand::Rng::with_seed(11);
        let (mut before, mut after) = (0.0, 0.0);
        for _ in 0..200 {
            let weights: Vec<f32> = (0..128).map(|_| (0..4).map(|_| random.f32() - 0.5).sum()).collect();
            let low = weights.iter().copied().fold(f32::INFINITY, f32::min);
            let high = weights.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let scale = bf16::from_f32((high - low) / 15.0);
            let start = (scale, bf16::from_f32(low + 8.0 * scale.to_f32()));
            let found = fitted(&weights, start.0, start.1);
            let [old, new] = [start, found].map(|pair| error(&weights, pair));
            assert!(new <= old, "{new} {old}");
            (before, after) = (before + old, after + new);
        }
        assert!(after < 0.97 * before, "{after} {before}");
    }

    #[test]
    fn groups_of_one_value_keep_what_they_are_given() {
        for value in [0.0, 0.75, -1e30, 1e-40] {
            let given = (bf16::from_f32(f32::EPSILON), bf16::from_f32(value));
            assert_eq!(fitted(&[value; 8], given.0, given.1), given, "{value}");
        }
    }
}

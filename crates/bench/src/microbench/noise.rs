//! How far results are from exact ones.

use warpforge::Tensor;

use super::model::BLOCK;

/// Rows, or sequences of a block, that are compared with f64.
pub(super) fn compared_rows(model_type: &str, m: usize) -> usize {
    m.min(if model_type == BLOCK { 2 } else { 32 })
}

/// The noise of some results.
#[derive(Default)]
pub(super) struct Noise {
    signal: f64,
    noise: f64,
    worst: f64,
}

impl Noise {
    /// Adds the first elements of a result, of which so many are known exactly. Each result counts as much as another.
    pub(super) fn add(&mut self, exact: &Tensor, ours: &Tensor) {
        let (mut signal, mut noise, mut largest, mut worst) = (0.0f64, 0.0f64, 0.0f64, 0.0f64);
        for (exact, ours) in exact.iter().zip(ours.iter()) {
            let (exact, ours) = (exact.to_f64(), ours.to_f64());
            signal += exact * exact;
            noise += (exact - ours) * (exact - ours);
            largest = largest.max(exact.abs());
            worst = worst.max((exact - ours).abs());
        }
        self.signal += 1.0;
        self.noise += noise / signal;
        self.worst = self.worst.max(worst / largest);
    }

    /// In dB.
    pub(super) fn sqnr_db(&self) -> f64 {
        10.0 * (self.signal / self.noise).log10()
    }

    /// The largest error, relative to the largest result.
    pub(super) fn max_rel_error(&self) -> f64 {
        self.worst
    }
}

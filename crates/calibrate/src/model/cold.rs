//! What reading weights adds to arithmetic: the part of its time that is not hidden, by type and rows.

use std::collections::HashMap;

use super::limits::Limits;
use crate::profile::Profile;

/// The most of its own time that reading may add: it may disturb what the arithmetic has in caches.
const MOST: f64 = 2.0;

/// Parts that were measured.
#[derive(Debug, Clone, Default)]
pub(super) struct Stalls {
    /// By type: rows in octaves and the part, in the order of rows.
    parts: HashMap<String, Vec<(f64, f64)>>,
}

impl Stalls {
    pub(super) fn new(profile: &Profile, device: &str, threads: usize, limits: &Limits) -> Self {
        let mut parts: HashMap<String, Vec<(f64, f64)>> = HashMap::new();
        let own = profile.cold_weights.iter().filter(|cold| cold.device == device && cold.threads == threads);
        for cold in own {
            let bytes = cold.weight_bytes as f64;
            let [far, near] =
                [cold.working_set_bytes, cold.weight_bytes].map(|all| bytes / limits.read_bandwidth(all));
            let more = (cold.cold_ms - cold.warm_ms) / 1e3;
            let part = if far > near { (more / (far - near)).clamp(0.0, MOST) } else { 0.0 };
            let rows = (cold.shape[0].max(1) as f64).log2();
            parts.entry(cold.dtype.clone()).or_default().push((rows, part));
        }
        for points in parts.values_mut() {
            points.sort_by(|one, other| one.0.total_cmp(&other.0));
        }
        Self { parts }
    }

    /// The part for a contraction of so many rows; `None` where its type was not measured.
    pub(super) fn part(&self, dtype: &str, rows: usize) -> Option<f64> {
        let points = self.parts.get(dtype)?;
        let rows = (rows.max(1) as f64).log2();
        let after = points.iter().position(|&(at, _)| at >= rows);
        Some(match after {
            Some(0) => points[0].1,
            Some(after) => {
                let ((low, from), (high, to)) = (points[after - 1], points[after]);
                from + (to - from) * (rows - low) / (high - low)
            }
            None => points.last()?.1,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::ColdWeights;
    use crate::profile::testing::profile;

    #[test]
    fn the_part_that_is_not_hidden_is_that_of_the_rows() {
        let mut profile = profile();
        // 1.2 MB take 0.1 ms at 12 GB/s, and 0.012 ms from the cache that one layer fits in.
        let cold = |m: usize, part: f64| ColdWeights {
            dtype: "f32".to_owned(),
            device: "cpu".to_owned(),
            threads: 2,
            shape: [m, 1024, 1024],
            weight_bytes: 1_200_000,
            working_set_bytes: 1 << 40,
            warm_ms: 2.0,
            cold_ms: 2.0 + part * (0.1 - 0.012),
        };
        profile.cold_weights = vec![cold(64, 0.25), cold(1, 0.75), cold(512, -0.1)];
        let stalls = Stalls::new(&profile, "cpu", 2, &Limits::new(&profile, "cpu", 2));
        let part = |rows| (stalls.part("f32", rows).unwrap() * 1e6).round() / 1e6;
        assert_eq!([part(1), part(8), part(64), part(4096)], [0.75, 0.5, 0.25, 0.0]);
        assert_eq!(stalls.part("bf16", 1), None);
    }
}

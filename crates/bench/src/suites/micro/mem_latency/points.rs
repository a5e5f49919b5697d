//! The sizes at which latency is measured.

use warpforge_probes::memory::levels::Hierarchy;

use super::super::memory_levels::DRAM;
use crate::benchmark::BenchmarkError;

/// The first point of the curve.
pub(super) const FIRST_BYTES: u64 = 4096;

pub(super) const MOST_PER_OCTAVE: i64 = 8;

/// A size to measure at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Point {
    pub(super) bytes: usize,
    /// The level whose figure this is; a point of the curve is none's.
    pub(super) level: Option<String>,
}

/// The points of the curve from 4 KiB to `most` bytes and one for each level, by size, since a chase only grows.
///
/// # Errors
/// If there are too few or too many points an octave.
pub(super) fn points(
    hierarchy: &Hierarchy,
    per_octave: i64,
    most: u64,
) -> Result<Vec<Point>, BenchmarkError> {
    if !(1..=MOST_PER_OCTAVE).contains(&per_octave) {
        let reason = format!("points_per_octave={per_octave}: give 1 to {MOST_PER_OCTAVE}");
        return Err(BenchmarkError::BadInput(reason));
    }
    let curve = (0..)
        .map(|step| (FIRST_BYTES as f64 * (f64::from(step) / per_octave as f64).exp2()) as u64)
        .map(|bytes| bytes / 64 * 64)
        .take_while(|&bytes| bytes <= most)
        .map(|bytes| (bytes, None));
    let caches = hierarchy.levels().iter().enumerate().filter_map(|(position, cache)| {
        let bytes = hierarchy.bytes_per_thread(position)?;
        (bytes < most).then(|| (bytes, Some(format!("L{}", cache.level))))
    });
    let mut points: Vec<_> = curve.chain(caches).chain([(most, Some(DRAM.to_owned()))]).collect();
    points.sort();
    let point = |(bytes, level)| usize::try_from(bytes).ok().map(|bytes| Point { bytes, level });
    Ok(points.into_iter().filter_map(point).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_curve_and_the_levels_are_in_order_of_size() {
        let points = points(&Hierarchy::assumed(1), 2, 256 << 20).unwrap();
        assert!(points.is_sorted_by_key(|point| point.bytes));
        let levels: Vec<_> =
            points.iter().filter_map(|point| Some((point.level.as_deref()?, point.bytes))).collect();
        assert_eq!(levels, [("L1", 16 << 10), ("L2", 80 << 10), ("L3", 5 << 19), ("DRAM", 256 << 20)]);
        let curve: Vec<_> =
            points.iter().filter(|point| point.level.is_none()).map(|point| point.bytes).collect();
        assert_eq!(curve[..4], [4096, 5760, 8192, 11584]);
        assert_eq!((curve.len(), curve.last()), (33, Some(&(256 << 20))));
    }

    #[test]
    fn a_small_limit_leaves_out_what_is_larger() {
        let points = points(&Hierarchy::assumed(1), 1, 20 << 10).unwrap();
        let levels: Vec<_> = points.iter().filter_map(|point| point.level.as_deref()).collect();
        assert_eq!(levels, ["L1", "DRAM"]);
        assert!(points.iter().all(|point| point.bytes <= 20 << 10));
    }

    #[test]
    fn the_number_of_points_has_bounds() {
        for wrong in [-1, 0, 9] {
            assert!(points(&Hierarchy::assumed(1), wrong, 1 << 20).is_err());
        }
    }
}

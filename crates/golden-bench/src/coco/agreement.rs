//! How far detections of two runs are apart.

use std::collections::BTreeMap;

use serde::Serialize;
use warpforge_detection::coco::Detection;

/// Two boxes of one category are of the same object where they are this near, in pixels.
const NEAR: f64 = 1.0;

/// Detections of two runs, paired one to one by image, category and place.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Agreement {
    /// Those of the golden run.
    pub golden: usize,
    /// Those of this run.
    pub own: usize,
    /// Pairs.
    pub paired: usize,
    /// The largest distance of two paired boxes, in pixels.
    pub largest_box: f64,
    /// The largest difference of two paired scores.
    pub largest_score: f64,
}

impl Agreement {
    /// Pairs each golden detection with the nearest of ours.
    pub(super) fn of(golden: &[Detection], own: &[Detection]) -> Self {
        let mut left: BTreeMap<(i64, i64), Vec<&Detection>> = BTreeMap::new();
        for detection in own {
            left.entry((detection.image_id, detection.category_id)).or_default().push(detection);
        }
        let mut agreement = Self { golden: golden.len(), own: own.len(), ..Self::default() };
        for detection in golden {
            let Some(others) = left.get_mut(&(detection.image_id, detection.category_id)) else { continue };
            let distances = others.iter().map(|other| distance(detection, other)).enumerate();
            let nearest = distances.min_by(|a, b| a.1.total_cmp(&b.1)).filter(|(_, apart)| *apart <= NEAR);
            if let Some((at, apart)) = nearest {
                let other = others.swap_remove(at);
                agreement.paired += 1;
                agreement.largest_box = agreement.largest_box.max(apart);
                agreement.largest_score = agreement.largest_score.max((detection.score - other.score).abs());
            }
        }
        agreement
    }
}

/// The largest difference of two boxes' numbers.
fn distance(a: &Detection, b: &Detection) -> f64 {
    a.bbox.iter().zip(b.bbox).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(x: f64, score: f64) -> Detection {
        Detection { image_id: 1, category_id: 2, bbox: [x, 5.0, 10.0, 10.0], score }
    }

    #[test]
    fn each_detection_is_paired_once_with_the_nearest() {
        let golden = [at(0.0, 0.9), at(0.5, 0.8), at(40.0, 0.7)];
        let own = [at(0.5, 0.8), at(0.125, 0.8), at(42.0, 0.7), at(90.0, 0.1)];
        let found = Agreement::of(&golden, &own);
        assert_eq!((found.golden, found.own, found.paired), (3, 4, 2));
        assert_eq!(found.largest_box, 0.125);
        assert!((found.largest_score - 0.1).abs() < 1e-12);
        assert_eq!(Agreement::of(&[], &[]), Agreement::default());
    }

    #[test]
    fn other_categories_and_images_are_no_pairs() {
        let other = Detection { category_id: 3, ..at(0.0, 0.9) };
        assert_eq!(Agreement::of(&[at(0.0, 0.9)], &[other]).paired, 0);
        let other = Detection { image_id: 3, ..at(0.0, 0.9) };
        assert_eq!(Agreement::of(&[at(0.0, 0.9)], &[other]).paired, 0);
    }
}

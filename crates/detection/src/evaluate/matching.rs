//! Which detection of an image and category finds which annotation.

use super::overlap::intersection_over_union;
use super::{Cell, MAX_DETECTIONS, THRESHOLDS, descending, thresholds};
use crate::coco::{Annotation, Detection};

/// One category of one image: its annotations, its detections from the highest score down, and how they overlap.
pub(super) struct Image<'a> {
    truth: &'a [&'a Annotation],
    found: Vec<&'a Detection>,
    /// Of each detection with each annotation.
    overlaps: Vec<Vec<f64>>,
}

/// What became of a detection at one threshold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It found an annotation that counts.
    True,
    /// It found none.
    False,
    /// It found one that does not count, or none and is itself out of the range of areas.
    Ignored,
}

/// The outcomes in one range of areas.
pub(super) struct Matches {
    /// The scores, highest first.
    pub(super) scores: Vec<f64>,
    /// Of each threshold, those of the detections.
    pub(super) outcomes: [Vec<Outcome>; THRESHOLDS],
    /// How many annotations count.
    pub(super) relevant: usize,
}

impl<'a> Image<'a> {
    pub(super) fn new(cell: &'a Cell<'a>) -> Self {
        let mut found = cell.found.clone();
        // A stable sort: of equal scores the first in the file goes first.
        found.sort_by(|a, b| descending(a.score, b.score));
        found.truncate(MAX_DETECTIONS[MAX_DETECTIONS.len() - 1]);
        let overlaps = |detection: &&Detection| {
            let with = |annotation: &&Annotation| {
                intersection_over_union(detection.bbox, annotation.bbox, annotation.crowd)
            };
            cell.truth.iter().map(with).collect()
        };
        Self { truth: &cell.truth, overlaps: found.iter().map(overlaps).collect(), found }
    }

    /// The outcomes for objects of a range of areas.
    pub(super) fn matches(&self, (low, high): (f64, f64)) -> Matches {
        let outside = |area: f64| area < low || area > high;
        let ignored: Vec<bool> =
            self.truth.iter().map(|annotation| annotation.crowd || outside(annotation.area)).collect();
        // Those that count go first, each group in the order of the file.
        let mut order: Vec<usize> = (0..self.truth.len()).collect();
        order.sort_by_key(|&index| ignored[index]);
        let outcomes = thresholds().map(|threshold| {
            let mut taken = vec![false; self.truth.len()];
            let outcome = |(place, detection): (usize, &&Detection)| match self
                .best(place, threshold, &order, &ignored, &taken)
            {
                Some(index) => {
                    taken[index] = true;
                    if ignored[index] { Outcome::Ignored } else { Outcome::True }
                }
                None if outside(detection.bbox[2] * detection.bbox[3]) => Outcome::Ignored,
                None => Outcome::False,
            };
            self.found.iter().enumerate().map(outcome).collect()
        });
        Matches {
            scores: self.found.iter().map(|detection| detection.score).collect(),
            outcomes,
            relevant: ignored.iter().filter(|&&ignored| !ignored).count(),
        }
    }

    /// The annotation that a detection finds: of those that are free and overlap enough the one that overlaps most, the
    /// last of equals; one that counts before one that does not. A crowd is always free.
    fn best(
        &self,
        detection: usize,
        threshold: f64,
        order: &[usize],
        ignored: &[bool],
        taken: &[bool],
    ) -> Option<usize> {
        let (mut best, mut least) = (None, threshold.min(1.0 - 1e-10));
        for &index in order {
            if taken[index] && !self.truth[index].crowd {
                continue;
            }
            if ignored[index] && best.is_some_and(|best: usize| !ignored[best]) {
                break;
            }
            let overlap = self.overlaps[detection][index];
            if overlap >= least {
                (best, least) = (Some(index), overlap);
            }
        }
        best
    }
}

//! Precision and recall of one category over all images.

use super::matching::{Matches, Outcome};
use super::{THRESHOLDS, descending};

/// The number of recalls at which precision is read.
pub(super) const RECALLS: usize = 101;

/// Precision at 101 recalls from 0 to 1, and the highest recall, at each threshold.
pub(super) struct Curve {
    pub(super) precision: [f64; RECALLS],
    pub(super) recall: f64,
}

/// The curves of the thresholds, of the best `count` detections of each image; none without an annotation that counts.
pub(super) fn curves(images: &[Matches], count: usize) -> Option<[Curve; THRESHOLDS]> {
    let relevant: usize = images.iter().map(|image| image.relevant).sum();
    if relevant == 0 {
        return None;
    }
    let mut order: Vec<(usize, usize, f64)> = Vec::new();
    for (image, matches) in images.iter().enumerate() {
        let scores = matches.scores.iter().take(count).enumerate();
        order.extend(scores.map(|(place, score)| (image, place, *score)));
    }
    order.sort_by(|a, b| descending(a.2, b.2));
    Some(std::array::from_fn(|threshold| {
        let outcomes = order.iter().map(|&(image, place, _)| images[image].outcomes[threshold][place]);
        curve(outcomes, relevant)
    }))
}

/// The curve of outcomes, surest detection first.
fn curve(outcomes: impl Iterator<Item = Outcome>, relevant: usize) -> Curve {
    let (mut hits, mut misses) = (0.0, 0.0);
    let (mut recalls, mut precisions) = (Vec::new(), Vec::new());
    for outcome in outcomes {
        match outcome {
            Outcome::True => hits += 1.0,
            Outcome::False => misses += 1.0,
            Outcome::Ignored => {}
        }
        recalls.push(hits / relevant as f64);
        precisions.push(hits / (misses + hits + f64::EPSILON));
    }
    // The precision at a recall is the best at that recall or a higher one.
    for index in (1..precisions.len()).rev() {
        precisions[index - 1] = f64::max(precisions[index - 1], precisions[index]);
    }
    let precision = std::array::from_fn(|index| {
        let recall = if index + 1 == RECALLS { 1.0 } else { index as f64 * 0.01 };
        let place = recalls.partition_point(|&reached| reached < recall);
        precisions.get(place).copied().unwrap_or(0.0)
    });
    Curve { precision, recall: recalls.last().copied().unwrap_or(0.0) }
}

//! Which boxes are to find which objects, and which of them are sampled for the losses.

use super::boxes::overlap;

/// What a box is to find.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Match {
    /// An object, by its place.
    Object(usize),
    /// Nothing.
    Background,
    /// Neither: it takes no part.
    Between,
}

/// Matches boxes to objects by their overlap.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Matcher {
    /// From this overlap on a box is to find the object.
    pub high: f32,
    /// Below this it is to find nothing.
    pub low: f32,
    /// Whether the best boxes of an object are to find it at any overlap.
    pub keep_best: bool,
}

impl Matcher {
    /// That of anchors.
    pub const ANCHORS: Self = Self { high: 0.7, low: 0.3, keep_best: true };
    /// That of proposals.
    pub const PROPOSALS: Self = Self { high: 0.5, low: 0.5, keep_best: false };

    /// What each box is to find. Without objects it is nothing.
    #[must_use]
    pub fn matches(&self, objects: &[[f32; 4]], boxes: &[[f32; 4]]) -> Vec<Match> {
        if objects.is_empty() {
            return vec![Match::Background; boxes.len()];
        }
        let mut best = vec![f32::NEG_INFINITY; objects.len()];
        let mut nearest = Vec::with_capacity(boxes.len());
        for &of in boxes {
            let mut most = (0, f32::NEG_INFINITY);
            for (at, &object) in objects.iter().enumerate() {
                let shared = overlap(object, of);
                best[at] = best[at].max(shared);
                // The first of equals.
                if shared > most.1 {
                    most = (at, shared);
                }
            }
            nearest.push(most);
        }
        let is_best =
            |of: [f32; 4]| objects.iter().zip(&best).any(|(&object, &best)| overlap(object, of) == best);
        let matched = |(&(at, shared), &of): (&(usize, f32), &[f32; 4])| {
            if shared >= self.high || self.keep_best && is_best(of) {
                Match::Object(at)
            } else if shared < self.low {
                Match::Background
            } else {
                Match::Between
            }
        };
        nearest.iter().zip(boxes).map(matched).collect()
    }
}

/// Samples a number of boxes, a part of them at most with an object.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sampler {
    /// How many of an image.
    pub count: usize,
    /// The largest part with an object.
    pub positive: f64,
}

impl Sampler {
    /// The places of the sampled boxes in ascending order, those with an object and those without. `permutation` gives so many
    /// numbers in a random order.
    pub fn sample(
        &self,
        matches: &[Match],
        mut permutation: impl FnMut(usize) -> Vec<usize>,
    ) -> (Vec<usize>, Vec<usize>) {
        let places = |wanted: fn(&Match) -> bool| -> Vec<usize> {
            (0..matches.len()).filter(|&place| wanted(&matches[place])).collect()
        };
        let positive = places(|found| matches!(found, Match::Object(_)));
        let negative = places(|found| *found == Match::Background);
        let most = (self.count as f64 * self.positive) as usize;
        let first = positive.len().min(most);
        let second = negative.len().min(self.count - first);
        let mut chosen = |places: &[usize], count: usize| {
            let order = permutation(places.len()).into_iter();
            let mut chosen: Vec<usize> = order.take(count).filter_map(|at| places.get(at).copied()).collect();
            chosen.sort_unstable();
            chosen
        };
        (chosen(&positive, first), chosen(&negative, second))
    }
}

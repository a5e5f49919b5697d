//! Proposals: the best boxes that the first stage gives.

use super::boxes::{BoxCoder, clip, has_sides};
use super::suppress::suppress_in_groups;

/// How many proposals are kept.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Proposals {
    /// The best of each level before suppression.
    pub before: usize,
    /// The best of an image after it.
    pub after: usize,
    /// The greatest overlap.
    pub threshold: f64,
}

impl Proposals {
    /// Those of training.
    pub const TRAINING: Self = Self { before: 2000, after: 2000, threshold: 0.7 };
    /// Those of inference.
    pub const INFERENCE: Self = Self { before: 1000, after: 1000, threshold: 0.7 };
    /// The shortest side of a proposal, in pixels.
    const SHORTEST: f32 = 1e-3;

    /// The proposals of an image of a height and width.
    #[must_use]
    pub fn of_image(&self, candidates: &Candidates<'_>, size: (usize, usize)) -> Vec<[f32; 4]> {
        let (mut boxes, mut scores, mut levels) = (Vec::new(), Vec::new(), Vec::new());
        let mut offset = 0;
        for (level, anchors) in candidates.anchors.iter().enumerate() {
            let objectness = candidates.objectness.get(offset..offset + anchors.len()).unwrap_or_default();
            let mut best: Vec<usize> = (0..objectness.len()).collect();
            best.sort_by(|&a, &b| objectness[b].total_cmp(&objectness[a]));
            best.truncate(self.before);
            for at in best {
                let Some(&code) = candidates.deltas.get(offset + at) else { continue };
                let proposal = clip(BoxCoder::PROPOSALS.decode(code, anchors[at]), size);
                if has_sides(proposal, Self::SHORTEST) {
                    boxes.push(proposal);
                    scores.push(1.0 / (1.0 + (-objectness[at]).exp()));
                    levels.push(level);
                }
            }
            offset += anchors.len();
        }
        let mut kept = suppress_in_groups(&boxes, &scores, &levels, self.threshold);
        kept.truncate(self.after);
        kept.into_iter().map(|place| boxes[place]).collect()
    }
}

/// What the first stage gives for an image, level after level.
#[derive(Debug, Clone, Copy)]
pub struct Candidates<'a> {
    /// The anchors of each level.
    pub anchors: &'a [Vec<[f32; 4]>],
    /// How sure it is that an object is there, before the sigmoid.
    pub objectness: &'a [f32],
    /// The box relative to each anchor.
    pub deltas: &'a [[f32; 4]],
}

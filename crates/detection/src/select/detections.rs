//! Detections: what the second stage makes of its proposals.

use super::boxes::{BoxCoder, clip, has_sides};
use super::suppress::suppress_in_groups;

/// An object that was found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Found {
    /// Left, top, right and bottom.
    pub bbox: [f32; 4],
    /// The category.
    pub label: usize,
    /// The probability of the category.
    pub score: f32,
}

/// Which detections are kept.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Detections {
    /// Scores must be above it.
    pub score: f32,
    /// The greatest overlap within a category.
    pub threshold: f64,
    /// The most of an image.
    pub most: usize,
}

impl Default for Detections {
    fn default() -> Self {
        Self { score: 0.05, threshold: 0.5, most: 100 }
    }
}

impl Detections {
    /// The shortest side of a box, in pixels.
    const SHORTEST: f32 = 1e-2;

    /// The detections in an image of a height and width, highest score first. Of each proposal there are as many logits and
    /// boxes relative to it as categories; the first is the background.
    #[must_use]
    pub fn of_image(
        &self,
        proposals: &[[f32; 4]],
        logits: &[f32],
        codes: &[[f32; 4]],
        size: (usize, usize),
    ) -> Vec<Found> {
        let categories = logits.len().checked_div(proposals.len()).unwrap_or(0);
        if categories == 0 || codes.len() != logits.len() {
            return Vec::new();
        }
        let mut found: Vec<Found> = Vec::new();
        let rows = logits.chunks_exact(categories).zip(codes.chunks_exact(categories));
        for (&proposal, (logits, codes)) in proposals.iter().zip(rows) {
            let scores = softmax(logits);
            for (label, (&score, &code)) in scores.iter().zip(codes).enumerate().skip(1) {
                if score > self.score {
                    let bbox = clip(BoxCoder::DETECTIONS.decode(code, proposal), size);
                    found.push(Found { bbox, label, score });
                }
            }
        }
        found.retain(|found| has_sides(found.bbox, Self::SHORTEST));
        let boxes: Vec<[f32; 4]> = found.iter().map(|found| found.bbox).collect();
        let scores: Vec<f32> = found.iter().map(|found| found.score).collect();
        let labels: Vec<usize> = found.iter().map(|found| found.label).collect();
        let mut kept = suppress_in_groups(&boxes, &scores, &labels, self.threshold);
        kept.truncate(self.most);
        kept.into_iter().map(|place| found[place]).collect()
    }
}

fn softmax(logits: &[f32]) -> Vec<f32> {
    let most = logits.iter().fold(f32::NEG_INFINITY, |most, &value| most.max(value));
    let parts: Vec<f32> = logits.iter().map(|value| (value - most).exp()).collect();
    let sum: f32 = parts.iter().sum();
    parts.into_iter().map(|part| part / sum).collect()
}

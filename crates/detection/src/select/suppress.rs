//! Non-maximum suppression among boxes of the same group: a level, or a category.

use std::collections::BTreeMap;

use warpforge_kernels::regions::Nms;

/// From this number of coordinates on torchvision goes through the groups one by one.
const COORDINATES: usize = 4000;

/// The places of the boxes that are kept, highest score first. As in torchvision, few boxes are moved apart by their groups and
/// suppressed together, which rounds them; many are suppressed group by group.
#[must_use]
pub fn suppress_in_groups(
    boxes: &[[f32; 4]],
    scores: &[f32],
    groups: &[usize],
    threshold: f64,
) -> Vec<usize> {
    if boxes.len() * 4 <= COORDINATES {
        let most = boxes.iter().flatten().fold(f32::NEG_INFINITY, |most, &value| most.max(value));
        let moved = |(of, &group): (&[f32; 4], &usize)| {
            let offset = group as f32 * (most + 1.0);
            of.map(|value| value + offset)
        };
        let moved: Vec<[f32; 4]> = boxes.iter().zip(groups).map(moved).collect();
        return Nms::kept_of(&moved, scores, threshold);
    }
    let mut members: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (place, &group) in groups.iter().enumerate().take(boxes.len()) {
        members.entry(group).or_default().push(place);
    }
    let mut kept: Vec<usize> = Vec::new();
    for places in members.values() {
        let own: Vec<[f32; 4]> = places.iter().map(|&place| boxes[place]).collect();
        let scores: Vec<f32> = places.iter().map(|&place| scores[place]).collect();
        kept.extend(Nms::kept_of(&own, &scores, threshold).into_iter().map(|at| places[at]));
    }
    kept.sort_unstable();
    kept.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
    kept
}

//! How much two boxes overlap.

/// The intersection over the union of a detection's box and an annotation's, both x, y, width and height. For a crowd,
/// over the area of the detection.
pub fn intersection_over_union(found: [f64; 4], truth: [f64; 4], crowd: bool) -> f64 {
    let width = (found[2] + found[0]).min(truth[2] + truth[0]) - found[0].max(truth[0]);
    let height = (found[3] + found[1]).min(truth[3] + truth[1]) - found[1].max(truth[1]);
    if width <= 0.0 || height <= 0.0 {
        return 0.0;
    }
    let (intersection, area) = (width * height, found[2] * found[3]);
    let union = if crowd { area } else { area + truth[2] * truth[3] - intersection };
    intersection / union
}

//! COCO's metrics of boxes, by the rules of `pycocotools`.
//!
//! Detections of an image and category are matched to annotations in the order of their scores, at ten thresholds of the
//! intersection over union and in four ranges of areas (`matching`). Over all images that gives a curve of precision and
//! recall for each category (`curve`); the [`Summary`] has the means of these.

mod curve;
mod matching;
mod overlap;
mod summary;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashSet};

use crate::coco::{Annotation, Dataset, Detection};
use crate::{Error, Result};

pub use overlap::intersection_over_union;
pub use summary::Summary;

/// The numbers of detections of an image and category that count, the best ones.
pub(crate) const MAX_DETECTIONS: [usize; 3] = [1, 10, 100];

/// Ranges of areas in square pixels: all, small, medium, large. Both ends are inside.
pub(crate) const AREAS: [(f64, f64); 4] =
    [(0.0, 1e10), (0.0, 32.0 * 32.0), (32.0 * 32.0, 96.0 * 96.0), (96.0 * 96.0, 1e10)];

/// The number of thresholds of the intersection over union.
pub(crate) const THRESHOLDS: usize = 10;

/// The thresholds: 0.50, 0.55, ..., 0.95, with the roundings of numpy's `linspace`.
pub(crate) fn thresholds() -> [f64; THRESHOLDS] {
    let step = (0.95 - 0.5) / 9.0;
    let mut thresholds = std::array::from_fn(|index| index as f64 * step + 0.5);
    thresholds[THRESHOLDS - 1] = 0.95;
    thresholds
}

/// The order of finite scores, highest first; both zeros are equal.
pub(crate) fn descending(a: f64, b: f64) -> Ordering {
    b.partial_cmp(&a).unwrap_or(Ordering::Equal)
}

/// The annotations and detections of one category in one image.
#[derive(Default)]
struct Cell<'a> {
    truth: Vec<&'a Annotation>,
    found: Vec<&'a Detection>,
}

/// The metrics of detections on a dataset. Detections of categories that the dataset does not have are left out.
///
/// # Errors
///
/// Where a detection is of an image that the dataset does not have, or its numbers are not finite.
pub fn evaluate(dataset: &Dataset, detections: &[Detection]) -> Result<Summary> {
    let images: HashSet<i64> = dataset.images().iter().map(|image| image.id).collect();
    let mut categories: BTreeMap<i64, BTreeMap<i64, Cell<'_>>> =
        dataset.categories().iter().map(|category| (category.id, BTreeMap::new())).collect();
    for annotation in dataset.annotations() {
        if let Some(cells) = categories.get_mut(&annotation.category_id) {
            cells.entry(annotation.image_id).or_default().truth.push(annotation);
        }
    }
    for (index, detection) in detections.iter().enumerate() {
        detection.check(index)?;
        if !images.contains(&detection.image_id) {
            let reason = format!("there is no image {}", detection.image_id);
            return Err(Error::Detection { index, reason });
        }
        if let Some(cells) = categories.get_mut(&detection.category_id) {
            cells.entry(detection.image_id).or_default().found.push(detection);
        }
    }
    let mut summary = summary::Means::default();
    for cells in categories.values() {
        let images: Vec<matching::Image> = cells.values().map(matching::Image::new).collect();
        for (area, range) in AREAS.iter().enumerate() {
            let matches: Vec<matching::Matches> = images.iter().map(|image| image.matches(*range)).collect();
            for (limit, count) in MAX_DETECTIONS.iter().enumerate() {
                if let Some(curves) = curve::curves(&matches, *count) {
                    summary.add(area, limit, &curves);
                }
            }
        }
    }
    Ok(summary.finish())
}

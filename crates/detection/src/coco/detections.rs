//! Results of a detector, in COCO's form.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::Result;
use crate::error::of_file;

/// An object that a detector found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Detection {
    /// The image.
    pub image_id: i64,
    /// The category.
    pub category_id: i64,
    /// x, y, width and height in pixels.
    pub bbox: [f64; 4],
    /// How sure the detector is: the greater, the surer.
    pub score: f64,
}

/// Reads a file of results: a JSON list of detections.
///
/// # Errors
///
/// Where the file cannot be read or has another form.
pub fn read_detections(path: &Path) -> Result<Vec<Detection>> {
    of_file(path, |bytes| Ok(serde_json::from_slice(bytes)?))
}

/// The JSON text of results, as `pycocotools` loads it.
///
/// # Errors
///
/// Where a number is not finite, which JSON has no form for.
pub fn write_detections(detections: &[Detection]) -> Result<String> {
    for (index, detection) in detections.iter().enumerate() {
        detection.check(index)?;
    }
    Ok(serde_json::to_string(detections)?)
}

impl Detection {
    /// Checks that the numbers are finite.
    pub(crate) fn check(&self, index: usize) -> Result<()> {
        let refuse = |reason: String| Err(crate::Error::Detection { index, reason });
        if !self.score.is_finite() {
            return refuse(format!("the score is {}", self.score));
        }
        if !self.bbox.iter().all(|value| value.is_finite()) {
            return refuse(format!("the box is {:?}", self.bbox));
        }
        Ok(())
    }
}

//! Images and annotations: nothing that a file has may panic.

use warpforge_detection::coco::{Dataset, Detection};
use warpforge_detection::evaluate::evaluate;
use warpforge_detection::jpeg;
use warpforge_detection::transform::Transform;

/// Decodes the input as a JPEG and prepares it for a detector.
pub fn image(data: &[u8]) {
    let Ok(picture) = jpeg::decode(data) else { return };
    assert_eq!(picture.pixels.len(), picture.width * picture.height * 3);
    let transform = Transform { min_size: 8, max_size: 16, ..Transform::default() };
    let Ok(image) = transform.image(&picture) else { return };
    assert!(image.values.iter().all(|value| value.is_finite()));
}

/// Reads the input as annotations of COCO, and evaluates the annotations themselves as detections.
pub fn annotations(data: &[u8]) {
    let Ok(dataset) = Dataset::parse(data) else { return };
    assert_eq!(dataset.targets().len(), dataset.images().len());
    let found = dataset.annotations().iter().map(|annotation| Detection {
        image_id: annotation.image_id,
        category_id: annotation.category_id,
        bbox: annotation.bbox,
        score: annotation.area,
    });
    let found: Vec<Detection> = found.collect();
    let summary = evaluate(&dataset, &found).expect("annotations can be evaluated");
    assert!(summary.stats().iter().all(|value| (-1.0..=1.0 + 1e-9).contains(value)));
}

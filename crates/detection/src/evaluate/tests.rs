//! Cases whose numbers follow by hand.

use super::*;
use crate::coco::{Category, Image};

/// An annotation of category 1 whose object fills its box.
fn object(id: i64, image_id: i64, bbox: [f64; 4]) -> Annotation {
    Annotation { id, image_id, category_id: 1, bbox, area: bbox[2] * bbox[3], crowd: false }
}

fn found(image_id: i64, bbox: [f64; 4], score: f64) -> Detection {
    Detection { image_id, category_id: 1, bbox, score }
}

/// Three images and two categories.
fn summary(annotations: Vec<Annotation>, detections: &[Detection]) -> Summary {
    let image = |id| Image { id, file_name: String::new(), width: 640, height: 480 };
    let category = |id| Category { id, name: format!("category {id}") };
    let dataset =
        Dataset::new(vec![image(1), image(2), image(3)], vec![category(1), category(2)], annotations)
            .unwrap();
    evaluate(&dataset, detections).unwrap()
}

#[track_caller]
fn near(value: Option<f64>, expected: f64) {
    let value = value.expect("an annotation counts");
    assert!((value - expected).abs() < 1e-12, "{value} is not {expected}");
}

const SMALL: [f64; 4] = [10.0, 10.0, 10.0, 10.0];
const LARGE: [f64; 4] = [100.0, 100.0, 100.0, 100.0];

#[test]
fn the_truth_has_precision_and_recall_one() {
    let summary = summary(vec![object(1, 1, SMALL)], &[found(1, SMALL, 0.5)]);
    near(summary.precision, 1.0);
    near(summary.precision_small, 1.0);
    near(summary.recall_1, 1.0);
    assert_eq!((summary.precision_medium, summary.recall_large), (None, None));
    assert_eq!(summary.stats()[4], -1.0);
}

#[test]
fn nothing_found_is_zero_and_nothing_to_find_is_none() {
    near(summary(vec![object(1, 1, SMALL)], &[]).precision, 0.0);
    near(summary(vec![object(1, 1, SMALL)], &[]).recall_100, 0.0);
    assert_eq!(summary(vec![], &[found(1, SMALL, 0.5)]), Summary::default());
    assert_eq!(summary(vec![], &[]), Summary::default());
}

#[test]
fn a_surer_miss_halves_precision() {
    let summary = summary(vec![object(1, 1, SMALL)], &[found(1, SMALL, 0.5), found(2, SMALL, 0.9)]);
    near(summary.precision, 0.5);
    near(summary.recall_1, 1.0);
}

#[test]
fn half_of_the_objects_fill_half_of_the_curve() {
    let truth = vec![object(1, 1, SMALL), object(2, 2, SMALL)];
    let summary = summary(truth, &[found(1, SMALL, 0.5)]);
    near(summary.precision, 51.0 / 101.0);
    near(summary.recall_100, 0.5);
}

#[test]
fn thresholds_up_to_the_overlap_are_reached() {
    // The boxes share 8.2 of 10: 82 / 118 = 0.695 is enough for 0.50, 0.55, 0.60 and 0.65.
    let summary = summary(vec![object(1, 1, SMALL)], &[found(1, [11.8, 10.0, 10.0, 10.0], 0.5)]);
    near(summary.precision, 0.4);
    near(summary.precision_50, 1.0);
    near(summary.precision_75, 0.0);
}

#[test]
fn an_overlap_of_exactly_the_threshold_is_enough() {
    let summary = summary(vec![object(1, 1, [0.0, 0.0, 2.0, 1.0])], &[found(1, [0.0, 0.0, 1.0, 1.0], 0.5)]);
    near(summary.precision_50, 1.0);
    near(summary.precision, 0.1);
}

#[test]
fn an_object_is_found_once() {
    let detections = [found(1, SMALL, 0.9), found(1, SMALL, 0.8)];
    let truth = vec![object(1, 1, SMALL), object(2, 2, SMALL)];
    let once = summary(truth.clone(), &detections);
    near(once.precision, 51.0 / 101.0);
    // A third detection finds the second object after a miss: precision 2/3 from recall 0.51 on.
    let more = summary(truth, &[&detections[..], &[found(2, SMALL, 0.1)]].concat());
    near(more.precision, (51.0 + 50.0 * 2.0 / 3.0) / 101.0);
}

#[test]
fn crowds_take_any_number_of_detections_and_count_for_nothing() {
    let crowd = Annotation { crowd: true, ..object(2, 1, LARGE) };
    let inside = [120.0, 120.0, 20.0, 20.0];
    let detections = [found(1, inside, 0.9), found(1, inside, 0.8), found(1, SMALL, 0.1)];
    let with = summary(vec![object(1, 1, SMALL), crowd], &detections);
    near(with.precision, 1.0);
    near(with.recall_100, 1.0);
    let without = summary(vec![object(1, 1, SMALL)], &detections);
    near(without.precision, 1.0 / 3.0);
}

#[test]
fn a_detection_prefers_an_object_that_counts_to_a_better_crowd() {
    let crowd = Annotation { crowd: true, ..object(1, 1, [10.0, 10.0, 10.0, 10.0]) };
    let summary = summary(vec![crowd, object(2, 1, [10.0, 10.0, 10.0, 7.0])], &[found(1, SMALL, 0.5)]);
    near(summary.precision_50, 1.0);
    near(summary.precision_75, 0.0);
}

#[test]
fn misses_of_another_size_are_left_out_of_a_size() {
    let detections = [found(1, LARGE, 0.9), found(1, SMALL, 0.5)];
    let summary = summary(vec![object(1, 1, SMALL)], &detections);
    near(summary.precision, 0.5);
    near(summary.precision_small, 1.0);
    assert_eq!(summary.precision_large, None);
}

#[test]
fn the_limits_of_sizes_are_in_both() {
    let medium = [0.0, 0.0, 32.0, 32.0];
    let summary = summary(vec![object(1, 1, medium)], &[found(1, medium, 0.5)]);
    near(summary.precision_small, 1.0);
    near(summary.precision_medium, 1.0);
}

#[test]
fn the_number_of_detections_is_of_an_image_and_category() {
    let boxes: Vec<[f64; 4]> = (0..20).map(|at| [20.0 * f64::from(at), 0.0, 10.0, 10.0]).collect();
    let truth = boxes.iter().zip(1..).map(|(bbox, id)| object(id, 1, *bbox)).collect();
    let detections: Vec<Detection> = boxes.iter().map(|bbox| found(1, *bbox, 0.5)).collect();
    let summary = summary(truth, &detections);
    near(summary.recall_1, 0.05);
    near(summary.recall_10, 0.5);
    near(summary.recall_100, 1.0);
}

#[test]
fn ties_keep_the_order_of_images_and_of_the_file() {
    let truth = vec![object(1, 1, SMALL)];
    // Image 1 goes before image 2, though its detection stands later in the file.
    let first = summary(truth.clone(), &[found(2, SMALL, 0.0), found(1, SMALL, -0.0)]);
    near(first.precision, 1.0);
    let (hit, miss) = (found(1, SMALL, 0.5), found(1, LARGE, 0.5));
    near(summary(truth.clone(), &[hit.clone(), miss.clone()]).precision, 1.0);
    near(summary(truth, &[miss, hit]).precision, 0.5);
}

#[test]
fn categories_are_averaged_and_unknown_ones_left_out() {
    let other = Annotation { category_id: 2, ..object(2, 1, LARGE) };
    let unknown = Detection { category_id: 77, ..found(1, SMALL, 1.0) };
    let summary = summary(vec![object(1, 1, SMALL), other], &[found(1, SMALL, 0.5), unknown]);
    near(summary.precision, 0.5);
    near(summary.precision_small, 1.0);
}

#[test]
fn detections_that_cannot_be_ranked_or_placed_are_refused() {
    let dataset = Dataset::parse(br#"{"images": [], "categories": [], "annotations": []}"#).unwrap();
    let error = |detection| evaluate(&dataset, &[detection]).unwrap_err().to_string();
    assert_eq!(error(found(7, SMALL, 0.5)), "detection 0: there is no image 7");
    assert_eq!(error(found(7, SMALL, f64::NAN)), "detection 0: the score is NaN");
    assert!(error(found(7, [0.0, f64::INFINITY, 1.0, 1.0], 0.5)).contains("the box"));
}

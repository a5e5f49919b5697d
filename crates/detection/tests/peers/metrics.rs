//! mAP and recall beside those of `pycocotools`.

use fastrand::Rng;
use libtest_mimic::Failed;
use serde_json::{Value, json};
use warpforge_detection::coco::{Dataset, Detection};
use warpforge_detection::evaluate::evaluate;

use crate::{Outcome, data, python};

/// How many cases; `DETECTION_CASES` says otherwise. 10,000 take minutes, nearly all of them in pycocotools.
const CASES: u64 = 1_000;
const TOLERANCE: f64 = 1e-6;

/// Datasets of few images, objects and categories, with crowds, equal scores, equal boxes, images without objects and
/// objects without detections.
pub(crate) fn random_cases() -> Outcome {
    let count = std::env::var("DETECTION_CASES").ok().map_or(Ok(CASES), |count| count.parse())?;
    let cases: Vec<Value> = (0..count).map(|seed| case(&mut Rng::with_seed(seed))).collect();
    compare(&cases)
}

/// The annotations of COCO itself, found as they are, moved, with objects left out and others made up.
pub(crate) fn real_annotations() -> Outcome {
    let mut cases = Vec::new();
    for split in ["train2017", "val2017"] {
        let text = std::fs::read(data::folder()?.join(format!("annotations/instances_{split}.json")))?;
        let dataset: Value = serde_json::from_slice(&text)?;
        for seed in 0..3 {
            let detections = imitate(&dataset, seed, &mut Rng::with_seed(seed));
            cases.push(json!({"dataset": dataset, "detections": detections}));
        }
    }
    compare(&cases)
}

/// What a detector might find: the truth with seed 0, with others something near it.
fn imitate(dataset: &Value, seed: u64, rng: &mut Rng) -> Vec<Value> {
    let mut detections = Vec::new();
    for annotation in dataset["annotations"].as_array().into_iter().flatten() {
        let boxed: Vec<f64> =
            annotation["bbox"].as_array().into_iter().flatten().filter_map(Value::as_f64).collect();
        for _ in 0..if seed == 0 { 1 } else { rng.u8(0..4) } {
            let mut moved = || if seed == 0 { 1.0 } else { 0.9 + 0.2 * rng.f64() };
            let bbox: Vec<f64> = boxed.iter().map(|value| value * moved()).collect();
            let score = if seed == 0 { 1.0 } else { (rng.f64() * 50.0).round() / 50.0 };
            let category = if seed < 2 || rng.u8(0..5) > 0 { &annotation["category_id"] } else { &json!(1) };
            let image = &annotation["image_id"];
            detections
                .push(json!({"image_id": image, "category_id": category, "bbox": bbox, "score": score}));
        }
    }
    detections
}

/// Fails with the first case whose numbers differ.
fn compare(cases: &[Value]) -> Outcome {
    let lines: Vec<String> = cases.iter().map(Value::to_string).collect();
    let answers = python::run(include_str!("metrics.py"), &[], lines.join("\n").as_bytes())?;
    let answers: Vec<[f64; 12]> = serde_json::Deserializer::from_slice(&answers)
        .into_iter()
        .collect::<Result<_, serde_json::Error>>()?;
    assert_eq!(answers.len(), cases.len(), "pycocotools evaluates every case");
    let mut furthest: f64 = 0.0;
    for (line, answer) in lines.iter().zip(answers) {
        let ours = ours(line)?;
        for (ours, theirs) in ours.iter().zip(answer) {
            furthest = furthest.max((ours - theirs).abs());
        }
        if furthest.is_nan() || furthest > TOLERANCE {
            let case = line.get(..10_000).unwrap_or(line);
            return Err(format!("ours: {ours:?}\npycocotools: {answer:?}\n{case}").into());
        }
    }
    eprintln!("{} cases, at most {furthest:e} from pycocotools", cases.len());
    Ok(())
}

fn ours(line: &str) -> Result<[f64; 12], Failed> {
    let case: Value = serde_json::from_str(line)?;
    let dataset = Dataset::parse(case["dataset"].to_string().as_bytes())?;
    let detections: Vec<Detection> = serde_json::from_value(case["detections"].clone())?;
    Ok(evaluate(&dataset, &detections)?.stats())
}

fn case(rng: &mut Rng) -> Value {
    let (images, categories) = (rng.i64(1..=4), rng.i64(1..=3));
    let dimension = if rng.u8(0..4) == 0 { 300.0 } else { 60.0 };
    let objects = if rng.u8(0..10) == 0 { 0 } else { rng.i64(0..=8) };
    let annotations: Vec<Value> = (1..=objects)
        .map(|id| {
            let bbox = random_box(rng, dimension);
            // The area of the object itself is at most that of its box.
            let area = bbox[2] * bbox[3] * if rng.bool() { 1.0 } else { rng.f64() };
            json!({"id": id * 3, "image_id": rng.i64(1..=images) * 10, "category_id": rng.i64(1..=categories),
                "bbox": bbox, "area": area, "iscrowd": i64::from(rng.u8(0..5) == 0)})
        })
        .collect();
    let mut detections: Vec<Value> = Vec::new();
    // One case in a hundred has more detections of an image and category than count.
    let extra = if rng.u8(0..100) == 0 { 300 } else { rng.i64(0..=8) };
    for annotation in &annotations {
        for _ in 0..rng.u8(0..=2) {
            let mut detection = annotation.clone();
            if rng.bool() {
                let values = annotation["bbox"].as_array().expect("a list").iter().filter_map(Value::as_f64);
                let moved: Vec<f64> = values.map(|value| value * (0.85 + 0.3 * rng.f64())).collect();
                detection["bbox"] = json!(moved);
            }
            detections.push(detection);
        }
    }
    for _ in 0..extra {
        detections
            .push(json!({"image_id": rng.i64(1..=images) * 10, "category_id": rng.i64(1..=categories + 1),
            "bbox": random_box(rng, dimension)}));
    }
    if rng.u8(0..10) == 0 {
        detections.clear();
    }
    rng.shuffle(&mut detections);
    let ties = rng.bool();
    let detections: Vec<Value> = detections
        .into_iter()
        .map(|detection| {
            let score = if ties { f64::from(rng.u8(0..4)) / 4.0 } else { rng.f64() };
            json!({"image_id": detection["image_id"], "category_id": detection["category_id"],
                "bbox": detection["bbox"], "score": score})
        })
        .collect();
    let image = |id: i64| json!({"id": id * 10, "file_name": "", "width": 640, "height": 480});
    let category = |id: i64| json!({"id": id, "name": id.to_string()});
    json!({"dataset": {"images": (1..=images).map(image).collect::<Vec<_>>(),
        "categories": (1..=categories).map(category).collect::<Vec<_>>(), "annotations": annotations},
        "detections": detections})
}

/// Half of the boxes have whole numbers, so that overlaps are often equal to a threshold or to each other.
fn random_box(rng: &mut Rng, dimension: f64) -> [f64; 4] {
    let whole = rng.bool();
    std::array::from_fn(|_| {
        let value = rng.f64() * dimension;
        if whole { (value / 5.0).round() * 5.0 } else { value }
    })
}

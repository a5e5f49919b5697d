//! Proposals, matches and detections beside those of torchvision.

use serde::Deserialize;
use warpforge_detection::select::{
    Anchors, BoxCoder, Candidates, Detections, Match, Matcher, Proposals, level_of,
};

use crate::{Outcome, python};

/// What torchvision decided.
#[derive(Deserialize)]
struct Case {
    size: (usize, usize),
    grids: Vec<(usize, usize)>,
    anchors: Vec<[f32; 4]>,
    objectness: Vec<f32>,
    deltas: Vec<[f32; 4]>,
    before: usize,
    proposals: Vec<[f32; 4]>,
    levels: Vec<usize>,
    objects: Vec<[f32; 4]>,
    matched: Matched,
    targets: Vec<[f32; 4]>,
    logits: Vec<f32>,
    codes: Vec<[f32; 4]>,
    found: Found,
}

/// The place of an object, -1 for the background, -2 for what takes no part.
#[derive(Deserialize)]
struct Matched {
    anchors: Vec<i64>,
    proposals: Vec<i64>,
}

#[derive(Deserialize)]
struct Found {
    boxes: Vec<[f32; 4]>,
    scores: Vec<f32>,
    labels: Vec<usize>,
}

fn number(found: &Match) -> i64 {
    match found {
        Match::Object(place) => *place as i64,
        Match::Background => -1,
        Match::Between => -2,
    }
}

/// The greatest difference of two lists of equal length.
fn apart(ours: &[[f32; 4]], theirs: &[[f32; 4]]) -> f32 {
    assert_eq!(ours.len(), theirs.len());
    let pairs = ours.iter().flatten().zip(theirs.iter().flatten());
    pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

/// The same anchors, proposals, matches and detections; boxes within a thousandth of a pixel.
pub(crate) fn cases() -> Outcome {
    let lines = python::run(include_str!("selection.py"), &[], &[])?;
    let cases: Vec<Case> =
        serde_json::Deserializer::from_slice(&lines).into_iter().collect::<Result<_, _>>()?;
    let (mut furthest, mut proposed, mut detected) = (0_f32, 0, 0);
    for case in &cases {
        let anchors = Anchors::default().levels(case.size, &case.grids);
        assert_eq!(anchors.concat(), case.anchors);
        let settings = Proposals { before: case.before, after: 80, threshold: 0.7 };
        let candidates = Candidates { anchors: &anchors, objectness: &case.objectness, deltas: &case.deltas };
        let proposals = settings.of_image(&candidates, (case.size.0 - 5, case.size.1 - 9));
        furthest = furthest.max(apart(&proposals, &case.proposals));
        let levels: Vec<usize> = case.proposals.iter().map(|&of| level_of(of)).collect();
        assert_eq!(levels, case.levels);
        let matches = |matcher: Matcher, boxes: &[[f32; 4]]| -> Vec<i64> {
            matcher.matches(&case.objects, boxes).iter().map(number).collect()
        };
        assert_eq!(matches(Matcher::ANCHORS, &case.anchors), case.matched.anchors);
        assert_eq!(matches(Matcher::PROPOSALS, &case.proposals), case.matched.proposals);
        let encoded = case.proposals.iter().map(|&of| BoxCoder::DETECTIONS.encode(case.objects[0], of));
        let encoded: Vec<[f32; 4]> = encoded.collect();
        let scale = case.targets.iter().flatten().fold(1.0, |most: f32, value| most.max(value.abs()));
        assert!(apart(&encoded, &case.targets) <= 1e-6 * scale, "what a box is to learn");
        let settings = Detections { most: 30, ..Detections::default() };
        let found = settings.of_image(&case.proposals, &case.logits, &case.codes, case.size);
        let labels: Vec<usize> = found.iter().map(|found| found.label).collect();
        assert_eq!(labels, case.found.labels);
        let boxes: Vec<[f32; 4]> = found.iter().map(|found| found.bbox).collect();
        furthest = furthest.max(apart(&boxes, &case.found.boxes));
        let scores = found.iter().zip(&case.found.scores).map(|(ours, theirs)| (ours.score - theirs).abs());
        assert!(scores.fold(0.0, f32::max) < 1e-6, "scores");
        (proposed, detected) = (proposed + proposals.len(), detected + found.len());
    }
    eprintln!("{proposed} proposals and {detected} detections, boxes within {furthest:e} pixels");
    if cases.is_empty() || furthest > 1e-3 {
        return Err("too far from torchvision".into());
    }
    Ok(())
}

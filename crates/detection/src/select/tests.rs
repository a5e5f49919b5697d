use super::*;

#[test]
fn anchors_are_around_the_elements_of_each_level() {
    let anchors = Anchors { sizes: vec![32.0, 64.0], ratios: vec![1.0, 2.0] };
    let levels = anchors.levels((64, 96), &[(2, 3), (1, 1)]);
    assert_eq!((levels[0].len(), levels[1].len()), (12, 2));
    assert_eq!(levels[0][0], [-16.0, -16.0, 16.0, 16.0]);
    // Twice as high as wide: 11.3 and 22.6 from the centre, rounded.
    assert_eq!(levels[0][1], [-11.0, -23.0, 11.0, 23.0]);
    assert_eq!(levels[0][8], [16.0, 16.0, 48.0, 48.0]);
    assert_eq!(Anchors::default().levels((64, 64), &[(0, 3)])[0].len(), 0);
}

#[test]
fn boxes_are_decoded_as_they_were_encoded() {
    let (of, to) = ([10.0, 20.0, 40.0, 60.0], [12.0, 18.0, 36.0, 66.0]);
    for coder in [BoxCoder::PROPOSALS, BoxCoder::DETECTIONS] {
        let back = coder.decode(coder.encode(of, to), to);
        assert!(back.iter().zip(of).all(|(a, b)| (a - b).abs() < 1e-4), "{back:?}");
    }
    // Growth has a limit: 1000 / 16 of 24 pixels.
    let grown = BoxCoder::PROPOSALS.decode([0.0, 0.0, 99.0, 0.0], to);
    assert!((grown[2] - grown[0] - 1500.0).abs() < 0.1, "{grown:?}");
}

#[test]
fn levels_double_with_the_size_of_a_box() {
    let square = |size: f32| level_of([0.0, 0.0, size, size]);
    assert_eq!([20.0, 111.0, 112.0, 223.0, 224.0, 448.0, 5000.0].map(square), [0, 0, 1, 1, 2, 3, 3]);
    assert_eq!(level_of([5.0, 5.0, 5.0, 5.0]), 0);
}

#[test]
fn anchors_match_objects_by_overlap_or_as_their_best() {
    let objects = [[0.0, 0.0, 10.0, 10.0], [100.0, 100.0, 110.0, 110.0]];
    // Overlaps with the first: 0.8, 0.5, 0; the last is the best of the second object at 0.25.
    let boxes = [
        [0.0, 0.0, 10.0, 8.0],
        [0.0, 0.0, 10.0, 5.0],
        [50.0, 50.0, 60.0, 60.0],
        [100.0, 100.0, 105.0, 105.0],
    ];
    let expected = [Match::Object(0), Match::Between, Match::Background, Match::Object(1)];
    assert_eq!(Matcher::ANCHORS.matches(&objects, &boxes), expected);
    let expected = [Match::Object(0), Match::Object(0), Match::Background, Match::Background];
    assert_eq!(Matcher::PROPOSALS.matches(&objects, &boxes), expected);
    assert_eq!(Matcher::ANCHORS.matches(&[], &boxes), [Match::Background; 4]);
}

#[test]
fn samples_are_filled_up_with_background() {
    let matches = [Match::Object(0), Match::Background, Match::Between, Match::Object(0), Match::Background];
    let backwards = |count: usize| (0..count).rev().collect();
    let sampler = Sampler { count: 4, positive: 0.25 };
    assert_eq!(sampler.sample(&matches, backwards), (vec![3], vec![1, 4]));
    let sampler = Sampler { count: 2, positive: 0.5 };
    assert_eq!(sampler.sample(&matches, backwards), (vec![3], vec![4]));
}

#[test]
fn groups_do_not_suppress_each_other() {
    let boxes = [[0.0, 0.0, 10.0, 10.0], [0.0, 0.0, 10.0, 10.0], [0.0, 0.0, 10.0, 9.0]];
    assert_eq!(suppress_in_groups(&boxes, &[0.3, 0.2, 0.9], &[0, 1, 0], 0.5), [2, 1]);
    assert!(suppress_in_groups(&[], &[], &[], 0.5).is_empty());
    // Group by group, where there are many.
    let many: Vec<[f32; 4]> = (0..1200)
        .map(|at| if at < 2 { boxes[0] } else { [at as f32 * 20.0, 0.0, at as f32 * 20.0 + 9.0, 9.0] })
        .collect();
    let (scores, groups): (Vec<f32>, Vec<usize>) =
        (0..1200).map(|at| (1.0 - at as f32 / 2000.0, at % 2)).unzip();
    assert_eq!(suppress_in_groups(&many, &scores, &groups, 0.5), (0..1200).collect::<Vec<_>>());
    assert_eq!(suppress_in_groups(&many, &scores, &vec![0; 1200], 0.5).len(), 1199);
}

#[test]
fn detections_are_the_best_of_each_category() {
    let proposals = [[0.0, 0.0, 10.0, 10.0], [0.0, 0.0, 10.0, 10.0], [20.0, 20.0, 30.0, 30.0]];
    // Background, then two categories.
    let logits = [0.0, 9.0, 0.0, 0.0, 8.0, 0.0, 9.0, 0.0, 0.0];
    let found = Detections::default().of_image(&proposals, &logits, &[[0.0; 4]; 9], (25, 25));
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].bbox, found[0].label), ([0.0, 0.0, 10.0, 10.0], 1));
    assert!((found[0].score - 0.99975).abs() < 1e-4);
    assert!(Detections::default().of_image(&[], &[], &[], (25, 25)).is_empty());
}

//! Every aligner against plain dynamic programming, on random and adversarial pairs.

use super::batch::scores_with;
use super::edit::edit_distances_with;
use super::simd::InstructionSet;
use super::*;
use crate::protein::{ALPHABET, blosum62};
use crate::simulate::{Random, mutate};

/// Pairs of every kind that an aligner may get wrong.
pub(super) fn pairs(count: usize, seed: u64) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut random = Random::new(seed);
    (0..count)
        .map(|index| {
            let length = match index % 7 {
                0 => random.below(4),
                1 => 62 + random.below(5),
                2 => 126 + random.below(5),
                _ => random.below(300),
            };
            let letters = if index % 11 == 0 { 5 } else { 4 };
            let a: Vec<u8> = match index % 5 {
                // One letter, or a short unit: every gap has many places.
                0 => vec![random.base(); length],
                1 => {
                    let unit: Vec<u8> = (0..=random.below(4)).map(|_| random.base()).collect();
                    unit.iter().copied().cycle().take(length).collect()
                }
                _ => (0..length).map(|_| random.below(letters) as u8).collect(),
            };
            let b = match index % 6 {
                0 => (0..random.below(300)).map(|_| random.below(letters) as u8).collect(),
                1 => a.iter().rev().copied().collect(),
                2 => {
                    let (from, to) = (random.below(length + 1), random.below(length + 1));
                    a[from.min(to)..from.max(to)].to_vec()
                }
                3 => a.clone(),
                4 => [&a[length / 2..], &a[..length / 2]].concat(),
                _ => mutate(&a, random.unit() * 0.4, &mut random),
            };
            if index % 2 == 0 { (a, b) } else { (b, a) }
        })
        .collect()
}

fn borrowed(pairs: &[(Vec<u8>, Vec<u8>)]) -> Vec<Pair<'_>> {
    pairs.iter().map(|(a, b)| (a.as_slice(), b.as_slice())).collect()
}

const SCORINGS: [Scoring; 7] = [
    Scoring::READS,
    Scoring { matching: 1, mismatch: -4, gap_open: 6, gap_extend: 1 },
    Scoring { matching: 5, mismatch: -4, gap_open: 0, gap_extend: 8 },
    Scoring { matching: 1, mismatch: -1, gap_open: 0, gap_extend: 1 },
    Scoring { matching: 100, mismatch: -100, gap_open: 120, gap_extend: 20 },
    // A mismatch is worse than a gap on both sides; nothing is gained by a match.
    Scoring { matching: 1, mismatch: -20, gap_open: 6, gap_extend: 1 },
    Scoring { matching: 0, mismatch: -1, gap_open: 2, gap_extend: 1 },
];

/// Random and adversarial pairs that each mode is held to.
const PAIRS: usize = 10_000;

/// Checks a mode with every scoring, each on its part of all pairs, with every instruction set.
fn hold_to_plain(mode: Mode, seed: u64, plain: fn(&[u8], &[u8], &Scoring) -> i32) {
    let pairs = pairs(PAIRS, seed);
    let pairs = borrowed(&pairs);
    for (index, scoring) in SCORINGS.iter().enumerate() {
        let part: Vec<Pair<'_>> = pairs.iter().copied().skip(index).step_by(SCORINGS.len()).collect();
        let right: Vec<i32> = part.iter().map(|(a, b)| plain(a, b, scoring)).collect();
        for set in InstructionSet::all() {
            let found = scores_with(set, &part, mode, scoring, 2);
            for (((a, b), found), right) in part.iter().zip(found).zip(&right) {
                assert_eq!(found, *right, "{set:?} {scoring:?} {a:?} {b:?}");
            }
        }
    }
}

#[test]
fn global_scores_are_those_of_plain_dynamic_programming() {
    hold_to_plain(Mode::Global, 11, plain::global);
}

#[test]
fn local_scores_are_those_of_plain_dynamic_programming() {
    hold_to_plain(Mode::Local, 13, plain::local);
}

#[test]
fn edit_distances_are_those_of_plain_dynamic_programming() {
    let pairs = pairs(PAIRS, 12);
    let pairs = borrowed(&pairs);
    let right: Vec<u32> = pairs.iter().map(|(a, b)| plain::edit(a, b)).collect();
    for set in InstructionSet::all() {
        for (((a, b), distance), right) in pairs.iter().zip(edit_distances_with(set, &pairs, 2)).zip(&right) {
            assert_eq!(distance, *right, "{set:?} {a:?} {b:?}");
        }
    }
}

/// Pairs whose best path leaves the narrow band of the first pass: a long gap that a second one makes up for.
#[test]
fn paths_far_from_the_diagonal_are_found() {
    let mut random = Random::new(8);
    let mut owned = Vec::new();
    for gap in [5, 30, 60, 120, 300] {
        for _ in 0..20 {
            let a: Vec<u8> = (0..1_200).map(|_| random.base()).collect();
            let start = random.below(500);
            let mut b = [&a[..start], &a[start + gap..]].concat();
            let end = b.len() - 300;
            b.splice(end..end, (0..gap).map(|_| random.base()));
            owned.push((a, mutate(&b, 0.03, &mut random)));
        }
    }
    let pairs = borrowed(&owned);
    for set in InstructionSet::all() {
        let global = scores_with(set, &pairs, Mode::Global, &Scoring::READS, 2);
        let local = scores_with(set, &pairs, Mode::Local, &Scoring::READS, 2);
        let edit = edit_distances_with(set, &pairs, 2);
        for (index, (a, b)) in pairs.iter().enumerate() {
            assert_eq!(global[index], plain::global(a, b, &Scoring::READS), "{set:?} {index}");
            assert_eq!(local[index], plain::local(a, b, &Scoring::READS), "{set:?} {index}");
            assert_eq!(edit[index], plain::edit(a, b), "{set:?} {index}");
        }
    }
}

/// Pairs so long and unlike that the band of the second pass is wide, and narrows on the way: unrelated ends, swapped
/// parts, repeats, unknown bases, lengths that differ.
#[test]
fn bands_narrow_around_the_best_path() {
    let mut random = Random::new(21);
    let mut owned = Vec::new();
    for index in 0..140 {
        let length = 300 + random.below(900);
        let unit: Vec<u8> = (0..1 + random.below(60)).map(|_| random.base()).collect();
        let mut a: Vec<u8> = match index % 4 {
            0 => unit.iter().copied().cycle().take(length).collect(),
            _ => (0..length).map(|_| random.base()).collect(),
        };
        if index % 5 == 0 {
            let place = random.below(length);
            a[place] = crate::seq::OTHER;
        }
        let mut b = mutate(&a, random.unit() * 0.4, &mut random);
        let middle = b.len() / 2;
        match index % 6 {
            0 => b.rotate_left(random.below(middle + 1)),
            1 => b.truncate(middle + random.below(middle)),
            2 => b.extend((0..random.below(300)).map(|_| random.base())),
            3 => b[..middle].reverse(),
            _ => {}
        }
        owned.push(if index % 2 == 0 { (a, b) } else { (b, a) });
    }
    let pairs = borrowed(&owned);
    for scoring in [SCORINGS[0], SCORINGS[1], SCORINGS[2], SCORINGS[6]] {
        let right: Vec<i32> = pairs.iter().map(|(a, b)| plain::global(a, b, &scoring)).collect();
        for set in InstructionSet::all() {
            let found = scores_with(set, &pairs, Mode::Global, &scoring, 2);
            for (index, (found, right)) in found.iter().zip(&right).enumerate() {
                assert_eq!(found, right, "{set:?} {scoring:?} {index}");
            }
        }
    }
}

#[test]
fn long_pairs_score_the_same() {
    let mut random = Random::new(5);
    let a: Vec<u8> = (0..3_000).map(|_| random.base()).collect();
    let near = mutate(&a, 0.02, &mut random);
    let far = mutate(&a, 0.3, &mut random);
    let pairs: Vec<Pair<'_>> = vec![(&a, &near), (&a, &far), (&near, &far), (&a, &[])];
    let global = scores(&pairs, Mode::Global, &Scoring::READS, 1);
    let local = scores(&pairs, Mode::Local, &Scoring::READS, 1);
    let edit = edit_distances(&pairs, 1);
    for (index, (a, b)) in pairs.iter().enumerate() {
        assert_eq!(global[index], plain::global(a, b, &Scoring::READS));
        assert_eq!(local[index], plain::local(a, b, &Scoring::READS));
        assert_eq!(edit[index], plain::edit(a, b));
    }
}

#[test]
fn profile_scores_are_those_of_plain_dynamic_programming() {
    let mut random = Random::new(6);
    let query: Vec<u8> = (0..300).map(|_| random.below(ALPHABET.len()) as u8).collect();
    let score = |q: u8, code: usize| if code < 24 { blosum62(q, code as u8) } else { -20 };
    let rows: Vec<[i8; 32]> = query.iter().map(|&q| std::array::from_fn(|code| score(q, code))).collect();
    let mut targets: Vec<Vec<u8>> =
        (0..150).map(|_| (0..random.below(200)).map(|_| random.below(20) as u8).collect()).collect();
    // Scores beyond a byte.
    targets.push(query.clone());
    targets.push(query[20..260].to_vec());
    let borrowed: Vec<&[u8]> = targets.iter().map(Vec::as_slice).collect();
    let profile = Profile { rows: &rows, gap_open: 11, gap_extend: 1 };
    for (target, score) in targets.iter().zip(local_against_profile(&profile, &borrowed)) {
        let plain = plain::local_with(&query, target, 11, 1, |a, b| i32::from(blosum62(a, b)));
        assert_eq!(score, plain);
    }
}

//! Textbook dynamic programming: slow and obvious. Every other aligner must give its scores.

use super::Scoring;
use crate::seq::OTHER;

/// Far below any score, and far from overflow.
const LOWEST: i32 = i32::MIN / 2;

/// The best score of an alignment of all of `a` with all of `b` (Needleman–Wunsch–Gotoh).
#[must_use]
pub fn global(a: &[u8], b: &[u8], scoring: &Scoring) -> i32 {
    let extend = i32::from(scoring.gap_extend);
    let open = i32::from(scoring.gap_open) + extend;
    // A row for each base of `a`: h ends anywhere, e ends in a gap in `b`.
    let mut h: Vec<i32> = (0..=b.len()).map(|j| -scoring.gap(j)).collect();
    let mut e = vec![LOWEST; b.len() + 1];
    for (i, &base) in a.iter().enumerate() {
        let mut diagonal = h[0];
        h[0] = -scoring.gap(i + 1);
        let mut f = LOWEST;
        for (j, &other) in b.iter().enumerate() {
            e[j + 1] = (e[j + 1] - extend).max(h[j + 1] - open);
            f = (f - extend).max(h[j] - open);
            let best = (diagonal + scoring.of(base, other)).max(e[j + 1]).max(f);
            diagonal = h[j + 1];
            h[j + 1] = best;
        }
    }
    h[b.len()]
}

/// The best score of an alignment of a part of `a` with a part of `b` (Smith–Waterman–Gotoh), with any substitution score.
#[must_use]
pub fn local_with(a: &[u8], b: &[u8], gap_open: u8, gap_extend: u8, score: impl Fn(u8, u8) -> i32) -> i32 {
    let extend = i32::from(gap_extend);
    let open = i32::from(gap_open) + extend;
    let mut h = vec![0; b.len() + 1];
    let mut e = vec![LOWEST; b.len() + 1];
    let mut best = 0;
    for &base in a {
        let mut diagonal = 0;
        let mut f = LOWEST;
        for (j, &other) in b.iter().enumerate() {
            e[j + 1] = (e[j + 1] - extend).max(h[j + 1] - open);
            f = (f - extend).max(h[j] - open);
            let here = (diagonal + score(base, other)).max(e[j + 1]).max(f).max(0);
            diagonal = h[j + 1];
            h[j + 1] = here;
            best = best.max(here);
        }
    }
    best
}

/// The best local score of two nucleotide sequences.
#[must_use]
pub fn local(a: &[u8], b: &[u8], scoring: &Scoring) -> i32 {
    local_with(a, b, scoring.gap_open, scoring.gap_extend, |x, y| scoring.of(x, y))
}

/// The fewest substitutions, insertions and deletions that turn `a` into `b` (Levenshtein).
#[must_use]
pub fn edit(a: &[u8], b: &[u8]) -> u32 {
    let mut row: Vec<u32> = (0..=b.len() as u32).collect();
    for (i, &base) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i as u32 + 1;
        for (j, &other) in b.iter().enumerate() {
            let substitution = u32::from(base != other || base >= OTHER);
            let here = (diagonal + substitution).min(row[j] + 1).min(row[j + 1] + 1);
            diagonal = row[j + 1];
            row[j + 1] = here;
        }
    }
    row[b.len()]
}

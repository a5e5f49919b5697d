//! From seeds to an alignment: what lies between and beyond the seeds is aligned base by base.

use super::chain::{Chain, Cluster};
use super::{Mapping, Reference};
use crate::align::Scoring;
use crate::align::banded::{BandedAligner, Cigar, Op};

/// What it is worth to align a read to its end rather than to clip it.
const END_BONUS: i32 = 10;

/// Diagonals on either side that a short read may stray to.
const SHORT_MARGIN: usize = 24;

/// A short read on one diagonal with at most so many mismatches needs no dynamic programming.
const PLAIN_MISMATCHES: usize = 3;

/// Aligns a short read at a cluster of its seeds.
pub(super) fn short(
    aligner: &mut BandedAligner,
    reference: &Reference,
    read: &[u8],
    cluster: &Cluster,
    k: usize,
) -> Option<Mapping> {
    let contig = reference.contig_of(cluster.anchor.target as usize);
    let span = reference.span(contig);
    let bases = &reference.bases()[span.clone()];
    let start = cluster.diagonal - span.start as i64;
    let make = |position: usize, score: i32, cigar: Cigar| Mapping {
        contig,
        position,
        reverse: cluster.reverse,
        quality: 0,
        score,
        cigar,
    };
    let scoring = Scoring::READS;
    let straight = usize::try_from(start).ok().and_then(|start| {
        let target = bases.get(start..start + read.len())?;
        Some((start, target, read.iter().zip(target).filter(|(a, b)| a != b || **a >= 4).count()))
    });
    if let Some((start, target, mismatches)) = straight
        && cluster.straight
        && mismatches <= PLAIN_MISMATCHES
    {
        let clipped = clip_ends(read, target);
        let matched = read.len() - clipped.0 - clipped.1;
        let mut cigar = Cigar::default();
        cigar.push(clipped.0, Op::Clip);
        cigar.push(matched, Op::Match);
        cigar.push(clipped.1, Op::Clip);
        let wrong = read[clipped.0..read.len() - clipped.1]
            .iter()
            .zip(&target[clipped.0..])
            .filter(|(a, b)| a != b)
            .count() as i32;
        let score =
            i32::from(scoring.matching) * (matched as i32 - wrong) + i32::from(scoring.mismatch) * wrong;
        return Some(make(start + clipped.0, score, cigar));
    }
    let seed = cluster.anchor.query as usize;
    let place = cluster.anchor.target as usize - span.start;
    let (position, score, cigar) =
        from_seed(aligner, read, bases, (seed, place, k), SHORT_MARGIN, END_BONUS, 60);
    Some(make(position, score, cigar))
}

/// Bases at either end that are not aligned because they are unknown.
fn clip_ends(read: &[u8], target: &[u8]) -> (usize, usize) {
    let unknown = |(a, b): &(&u8, &u8)| **a >= 4 || **b >= 4;
    let first = read.iter().zip(target).take_while(unknown).count();
    let last = read.iter().rev().zip(target.iter().rev()).take_while(unknown).count();
    if first + last >= read.len() { (0, 0) } else { (first, last) }
}

/// Extends a seed to both sides: position, score and path.
fn from_seed(
    aligner: &mut BandedAligner,
    read: &[u8],
    bases: &[u8],
    (seed, place, k): (usize, usize, usize),
    margin: usize,
    bonus: i32,
    drop: i32,
) -> (usize, i32, Cigar) {
    let scoring = Scoring::READS;
    let reversed = |part: &[u8]| part.iter().rev().copied().collect::<Vec<u8>>();
    let from = place.saturating_sub(seed + margin);
    let left = aligner.extend(
        &reversed(&read[..seed]),
        &reversed(&bases[from..place]),
        &scoring,
        margin,
        bonus,
        drop,
    );
    let (seed_end, place_end) = (seed + k, place + k);
    let to = (place_end + read.len() - seed_end + margin).min(bases.len());
    let right = aligner.extend(&read[seed_end..], &bases[place_end..to], &scoring, margin, bonus, drop);
    let mut cigar = Cigar::default();
    cigar.push(seed - left.query, Op::Clip);
    cigar.append(&left.cigar.reversed());
    cigar.push(k, Op::Match);
    cigar.append(&right.cigar);
    cigar.push(read.len() - seed_end - right.query, Op::Clip);
    let score = left.score + right.score + i32::from(scoring.matching) * k as i32;
    (place - left.target, score, cigar)
}

/// How sure the place of a short read is, from the scores of the best and the second best place.
pub(super) fn short_quality(best: i32, second: i32, length: usize) -> u8 {
    if second >= best {
        return 0;
    }
    let identity = f64::from(best) / (2.0 * length as f64);
    let gap = f64::from(best - second);
    (gap * 3.0 * identity.clamp(0.0, 1.0)).clamp(1.0, 60.0) as u8
}

/// How sure the place of a long read is, from the scores of the best and the second best chain.
pub(super) fn long_quality(chain: &Chain, second: f32) -> u8 {
    let few = (chain.anchors.len() as f32 / 10.0).min(1.0);
    let share = 1.0 - (second / chain.score).clamp(0.0, 1.0);
    (40.0 * share * few * chain.score.max(1.0).ln()).clamp(0.0, 60.0) as u8
}

/// Diagonals on either side of a gap between two seeds that its alignment may stray to.
const GAP_MARGIN: usize = 16;

/// Diagonals on either side that the end of a long read may stray to.
const END_MARGIN: usize = 60;

/// The most bases beyond the outermost seeds that are tried.
const LONGEST_END: usize = 2_000;

/// Aligns a long read along a chain of its seeds.
pub(super) fn long(
    aligner: &mut BandedAligner,
    reference: &Reference,
    read: &[u8],
    chain: &Chain,
    k: usize,
) -> Option<Mapping> {
    let scoring = Scoring::READS;
    let first = chain.anchors.first()?;
    let contig = reference.contig_of(first.target as usize);
    let span = reference.span(contig);
    let bases = &reference.bases()[span.clone()];
    let reversed = |part: &[u8]| part.iter().rev().copied().collect::<Vec<u8>>();

    let (seed, place) = (first.query as usize, first.target as usize - span.start);
    let end = seed.min(LONGEST_END);
    let left = aligner.extend(
        &reversed(&read[seed - end..seed]),
        &reversed(&bases[place.saturating_sub(end + END_MARGIN)..place]),
        &scoring,
        END_MARGIN,
        END_BONUS,
        200,
    );
    let mut cigar = Cigar::default();
    cigar.push(seed - left.query, Op::Clip);
    cigar.append(&left.cigar.reversed());
    let mut score = left.score;
    // Everything before these is aligned.
    let (mut q, mut t) = (seed, place);
    for anchor in &chain.anchors {
        let (seed, place) = (anchor.query as usize, anchor.target as usize - span.start);
        let (seed_end, place_end) = (seed + k, place + k);
        if seed < q || place < t {
            // Seeds that overlap on one diagonal add only what is new; on others they are left to the next gap.
            if seed_end > q && seed_end - q == place_end.saturating_sub(t) {
                let fresh = seed_end - q;
                cigar.push(fresh, Op::Match);
                score += i32::from(scoring.matching) * fresh as i32;
                (q, t) = (seed_end, place_end);
            }
            continue;
        }
        let (gap_q, gap_t) = (&read[q..seed], &bases[t..place]);
        let margin = GAP_MARGIN + gap_q.len().min(gap_t.len()) / 16;
        let gap = fill(aligner, gap_q, gap_t, margin);
        score += gap.0;
        cigar.append(&gap.1);
        cigar.push(k, Op::Match);
        score += i32::from(scoring.matching) * k as i32;
        (q, t) = (seed_end, place_end);
    }
    let end = (read.len() - q).min(LONGEST_END);
    let to = (t + end + END_MARGIN).min(bases.len());
    let right = aligner.extend(&read[q..q + end], &bases[t..to], &scoring, END_MARGIN, END_BONUS, 200);
    cigar.append(&right.cigar);
    score += right.score;
    cigar.push(read.len() - q - right.query, Op::Clip);
    Some(Mapping { contig, position: place - left.target, reverse: chain.reverse, quality: 0, score, cigar })
}

/// Aligns what lies between two seeds.
fn fill(aligner: &mut BandedAligner, query: &[u8], target: &[u8], margin: usize) -> (i32, Cigar) {
    let scoring = Scoring::READS;
    let mut cigar = Cigar::default();
    if query.is_empty() {
        cigar.push(target.len(), Op::Delete);
        return (-scoring.gap(target.len()), cigar);
    }
    if target.is_empty() {
        cigar.push(query.len(), Op::Insert);
        return (-scoring.gap(query.len()), cigar);
    }
    if query.len() == target.len() {
        let score: i32 = query.iter().zip(target).map(|(&a, &b)| scoring.of(a, b)).sum();
        // No path with a gap on both sides can be better than this.
        if score >= i32::from(scoring.matching) * (query.len() as i32 - 1) - 2 * scoring.gap(1) {
            cigar.push(query.len(), Op::Match);
            return (score, cigar);
        }
    }
    let found = aligner.global(query, target, &scoring, margin);
    (found.score, found.cigar)
}

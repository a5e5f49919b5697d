//! One protein against many: the query's scores against every residue, a target in each lane.

use super::kernels::store_local;
use super::simd::{self, Element as _, InstructionSet, Lanes};

/// A protein query with its scores against every residue.
pub(crate) struct Profile<'a> {
    /// For each position of the query, the scores of the 32 codes; the last one pads targets and must be negative.
    pub(crate) rows: &'a [[i8; 32]],
    /// What a gap costs before its first residue.
    pub(crate) gap_open: u8,
    /// What each residue of a gap costs.
    pub(crate) gap_extend: u8,
}

/// The best local score of the query against each target: in bytes, and again in 16 bits where bytes saturated. A score
/// beyond 16 bits is given as the highest that fits.
pub(crate) fn local_against_profile(query: &Profile<'_>, targets: &[&[u8]]) -> Vec<i32> {
    let set = InstructionSet::detect();
    let mut order: Vec<usize> = (0..targets.len()).collect();
    order.sort_by_key(|&index| targets[index].len());
    let sorted: Vec<&[u8]> = order.iter().map(|&index| targets[index]).collect();
    let mut scores = vec![None; targets.len()];
    simd::profile_bytes(set, query, &sorted, &mut scores);
    let again: Vec<usize> = (0..sorted.len()).filter(|&index| scores[index].is_none()).collect();
    let longer: Vec<&[u8]> = again.iter().map(|&index| sorted[index]).collect();
    let mut rescored = vec![None; again.len()];
    simd::profile_shorts(set, query, &longer, &mut rescored);
    for (index, score) in again.into_iter().zip(rescored) {
        scores[index] = Some(score.unwrap_or(i32::from(u16::MAX)));
    }
    let mut results = vec![0; targets.len()];
    for (index, score) in order.into_iter().zip(scores) {
        results[index] = score.unwrap_or(0);
    }
    results
}

/// The code that pads targets of a profile; its scores are all low.
const PAD_TARGET: u8 = 31;

/// Smith–Waterman–Gotoh of one query against a target in each lane.
#[inline(always)]
pub(super) fn profile_kernel<V: Lanes>(query: &Profile<'_>, targets: &[&[u8]], scores: &mut [Option<i32>]) {
    let constant = |value: i32| V::splat(V::Element::saturated(value));
    let open = constant(i32::from(query.gap_open) + i32::from(query.gap_extend));
    let extend = constant(i32::from(query.gap_extend));
    let zero = V::splat(V::Element::LOWEST);
    let tables: Vec<V::Table> = query.rows.iter().map(|row| V::table(row)).collect();
    for (targets, scores) in targets.chunks(V::COUNT).zip(scores.chunks_mut(V::COUNT)) {
        let length = targets.iter().map(|target| target.len()).max().unwrap_or(0);
        let mut column = vec![(zero, zero); tables.len()];
        let mut best = zero;
        for position in 0..length {
            let mut codes = V::zeros();
            for (code, target) in codes.as_mut().iter_mut().zip(targets) {
                let residue = target.get(position).copied().unwrap_or(PAD_TARGET) & 31;
                *code = V::Element::saturated(i32::from(residue));
            }
            let codes = V::from_array(codes);
            let (mut diagonal, mut f) = (zero, zero);
            for (&table, cell) in tables.iter().zip(&mut column) {
                let (above, e) = *cell;
                let h = diagonal.add(V::lookup(table, codes)).max(e).max(f);
                best = best.max(h);
                diagonal = above;
                let opened = h.sub(open);
                f = f.sub(extend).max(opened);
                *cell = (h, e.sub(extend).max(opened));
            }
        }
        store_local::<V>(best, scores);
    }
}

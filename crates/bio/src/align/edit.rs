//! Edit distances of many pairs: wavefronts for similar pairs, Myers's bit vectors for the others.

use super::band::{Band, in_two_passes};
use super::simd::{self, InstructionSet, Words};
use super::{Pair, plain};
use crate::parallel::map_chunks;
use crate::seq::OTHER;

/// Pairs that a thread takes at a time.
const CHUNK: usize = 64;

/// The edit distance of each pair, exactly as [`plain::edit`] has it.
#[must_use]
pub fn edit_distances(pairs: &[Pair<'_>], threads: usize) -> Vec<u32> {
    edit_distances_with(InstructionSet::detect(), pairs, threads)
}

pub(super) fn edit_distances_with(set: InstructionSet, pairs: &[Pair<'_>], threads: usize) -> Vec<u32> {
    let mut order: Vec<usize> = (0..pairs.len()).collect();
    order.sort_by_key(|&index| (pairs[index].0.len(), pairs[index].1.len()));
    let chunks = map_chunks(&order, CHUNK, threads, |chunk| {
        let mut wavefront = Wavefront::default();
        let mut distances: Vec<Option<u32>> =
            chunk.iter().map(|&index| wavefront.distance(pairs[index], limit(pairs[index]))).collect();
        let rest: Vec<Pair<'_>> = chunk
            .iter()
            .zip(&distances)
            .filter(|(_, distance)| distance.is_none())
            .map(|(&index, _)| pairs[index])
            .collect();
        let lanes = simd::word_lanes(set);
        let mut found = in_two_passes(&rest, lanes, Band::of_distance, |pairs, band, distances| {
            simd::myers(set, pairs, band, distances);
        })
        .into_iter();
        for distance in distances.iter_mut().filter(|distance| distance.is_none()) {
            *distance = found.next().flatten();
        }
        distances
    });
    let mut results = vec![0; pairs.len()];
    for (&index, distance) in order.iter().zip(chunks.into_iter().flatten()) {
        results[index] = distance.unwrap_or_else(|| plain::edit(pairs[index].0, pairs[index].1));
    }
    results
}

/// The distance up to which wavefronts cost less than bit vectors: wavefronts visit the square of the distance in
/// diagonals, bit vectors a few words in each column.
fn limit((a, b): Pair<'_>) -> usize {
    (a.len().max(b.len()) as f64 / 2.0).sqrt() as usize + 3
}

/// The furthest position reached on each diagonal for a given distance (Ukkonen 1985, Myers 1986).
#[derive(Debug, Default)]
struct Wavefront {
    now: Vec<i32>,
    next: Vec<i32>,
}

impl Wavefront {
    /// The distance of a pair if it is at most `limit`.
    fn distance(&mut self, (a, b): Pair<'_>, limit: usize) -> Option<u32> {
        let (n, m) = (a.len() as i32, b.len() as i32);
        if (n - m).unsigned_abs() as usize > limit {
            return None;
        }
        // Diagonal k = i − j is at index k + offset; two places on either side are never reached.
        let offset = limit as i32 + 2;
        let size = 2 * offset as usize + 1;
        for front in [&mut self.now, &mut self.next] {
            front.clear();
            front.resize(size, i32::MIN / 2);
        }
        self.now[offset as usize] = run(a, b, 0, 0) as i32;
        let end = (n - m + offset) as usize;
        for distance in 0..=limit as i32 {
            if self.now[end] >= n {
                return Some(distance as u32);
            }
            let (least, most) = ((-distance - 1).max(-m), (distance + 1).min(n));
            if distance == limit as i32 {
                break;
            }
            for k in least..=most {
                let place = (k + offset) as usize;
                // i grows by a substitution or a deletion from `a`, and stays by an insertion.
                let reached = (self.now[place] + 1).max(self.now[place - 1] + 1).max(self.now[place + 1]);
                let mut i = reached.min(n).min(m + k);
                if i >= 0 && i - k >= 0 && i < n && i - k < m {
                    i += run(a, b, i as usize, (i - k) as usize) as i32;
                }
                self.next[place] = i;
            }
            std::mem::swap(&mut self.now, &mut self.next);
        }
        None
    }
}

/// How many bases match from here on.
#[inline]
fn run(a: &[u8], b: &[u8], i: usize, j: usize) -> usize {
    let (a, b) = (&a[i..], &b[j..]);
    let length = a.len().min(b.len());
    let mut matched = 0;
    while matched + 8 <= length {
        let word = |s: &[u8]| u64::from_le_bytes(s[matched..matched + 8].try_into().unwrap_or_default());
        let (x, y) = (word(a), word(b));
        // A code that is not a base has bit 2 set and matches nothing.
        let differing = (x ^ y) | (x & 0x0404_0404_0404_0404);
        if differing != 0 {
            return matched + differing.trailing_zeros() as usize / 8;
        }
        matched += 8;
    }
    while matched < length && a[matched] == b[matched] && a[matched] < OTHER {
        matched += 1;
    }
    matched
}

/// Myers's algorithm in Hyyrö's block form, a pair in each word: `pv` and `mv` are the cells that are one more and one less
/// than the cell above, 64 rows to a word. Only words with rows of the band are computed: above them every step to the right
/// is an edit, and below them every step down, which are paths that exist.
#[inline(always)]
pub(super) fn myers_kernel<W: Words>(pairs: &[Pair<'_>], band: Band, distances: &mut [Option<u32>]) {
    for (pairs, distances) in pairs.chunks(W::COUNT).zip(distances.chunks_mut(W::COUNT)) {
        let rows = pairs.iter().map(|pair| pair.0.len()).max().unwrap_or(0);
        let blocks = rows.div_ceil(64);
        let columns = pairs.iter().map(|pair| pair.1.len()).max().unwrap_or(0);
        let equal = equal_rows::<W>(pairs, blocks);
        let mut state = vec![(W::splat(u64::MAX), W::splat(0)); blocks];
        let letters: [W; 4] = [0, 1, 2, 3].map(|code| W::splat(code));
        let none = W::splat(0);
        // The first word of the band, and the distances above it.
        let (mut first, mut above) = (0, W::zeros());
        for (distance, pair) in distances.iter_mut().zip(pairs).filter(|(_, pair)| pair.1.is_empty()) {
            *distance = Some(pair.0.len() as u32);
        }
        for column in 0..columns {
            let rows = band.rows(column, rows);
            while first < rows.start / 64 {
                let (pv, mv) = (state[first].0.to_array(), state[first].1.to_array());
                for (above, (pv, mv)) in above.as_mut().iter_mut().zip(pv.as_ref().iter().zip(mv.as_ref())) {
                    *above += u64::from(pv.count_ones());
                    *above -= u64::from(mv.count_ones());
                }
                first += 1;
            }
            above.as_mut().iter_mut().for_each(|above| *above += 1);
            let words = first..rows.end.div_ceil(64).max(first);
            let mut codes = W::zeros();
            for (code, pair) in codes.as_mut().iter_mut().zip(pairs) {
                *code = u64::from(pair.1.get(column).copied().unwrap_or(OTHER));
            }
            let code = W::from_array(codes);
            let mut plus = W::splat(1);
            let mut minus = none;
            for (rows, (pv, mv)) in equal[words.clone()].iter().zip(&mut state[words]) {
                let mut eq = W::if_equal(code, letters[0], rows[0], none);
                for letter in 1..4 {
                    eq = W::if_equal(code, letters[letter], rows[letter], eq);
                }
                let xv = eq.or(*mv);
                let eq = eq.or(minus);
                let xh = eq.and(*pv).add(*pv).xor(*pv).or(eq);
                let ph = mv.or(xh.or(*pv).not());
                let mh = pv.and(xh);
                let (out_plus, out_minus) = (ph.top_bit(), mh.top_bit());
                let ph = ph.shift_up().or(plus);
                let mh = mh.shift_up().or(minus);
                (plus, minus) = (out_plus, out_minus);
                *pv = mh.or(xv.or(ph).not());
                *mv = ph.and(xv);
            }
            let ends = |(_, pair): &(usize, &Pair<'_>)| pair.1.len() == column + 1;
            for (lane, pair) in pairs.iter().enumerate().filter(ends) {
                let rows = pair.0.len().saturating_sub(64 * first);
                let down = steps_down::<W>(&state[first..], lane, rows);
                distances[lane] = u32::try_from(above.as_ref()[lane] as i64 + down).ok();
            }
        }
    }
}

/// For each block of rows and each base, the rows that have it.
#[inline(always)]
fn equal_rows<W: Words>(pairs: &[Pair<'_>], blocks: usize) -> Vec<[W; 4]> {
    (0..blocks)
        .map(|block| {
            let mut rows: [W::Array; 4] = std::array::from_fn(|_| W::zeros());
            for (lane, pair) in pairs.iter().enumerate() {
                for (row, &code) in pair.0.iter().skip(64 * block).take(64).enumerate() {
                    if code < OTHER {
                        rows[code as usize].as_mut()[lane] |= 1 << row;
                    }
                }
            }
            rows.map(W::from_array)
        })
        .collect()
}

/// The difference between the last of so many rows of a lane and the cell above the first.
#[inline(always)]
fn steps_down<W: Words>(state: &[(W, W)], lane: usize, rows: usize) -> i64 {
    let mut sum = 0;
    for (block, (pv, mv)) in state.iter().enumerate().take(rows.div_ceil(64)) {
        let mask = u64::MAX >> (64 - (rows - 64 * block).min(64));
        sum += i64::from((pv.to_array().as_ref()[lane] & mask).count_ones());
        sum -= i64::from((mv.to_array().as_ref()[lane] & mask).count_ones());
    }
    sum
}

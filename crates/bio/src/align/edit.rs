//! Edit distances of many pairs: wavefronts for similar pairs, Myers's bit vectors for the others.

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
        let mut found = vec![0; rest.len()];
        simd::myers(set, &rest, &mut found);
        let mut found = found.into_iter();
        for distance in &mut distances {
            if distance.is_none() {
                *distance = found.next();
            }
        }
        distances
    });
    let mut results = vec![0; pairs.len()];
    for (&index, distance) in order.iter().zip(chunks.into_iter().flatten()) {
        results[index] = distance.unwrap_or_else(|| plain::edit(pairs[index].0, pairs[index].1));
    }
    results
}

/// The distance up to which wavefronts cost less than bit vectors: a wavefront step visits as many diagonals as the distance
/// so far, a bit vector visits every cell at about a hundredth of the cost.
fn limit((a, b): Pair<'_>) -> usize {
    let cells = a.len() as f64 * b.len() as f64;
    ((cells / 150.0).sqrt() as usize).max(2)
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
/// than the cell above, 64 rows to a word.
#[inline(always)]
pub(super) fn myers_kernel<W: Words>(pairs: &[Pair<'_>], distances: &mut [u32]) {
    for (pairs, distances) in pairs.chunks(W::COUNT).zip(distances.chunks_mut(W::COUNT)) {
        let blocks = pairs.iter().map(|pair| pair.0.len()).max().unwrap_or(0).div_ceil(64);
        let columns = pairs.iter().map(|pair| pair.1.len()).max().unwrap_or(0);
        let equal = equal_rows::<W>(pairs, blocks);
        let mut state = vec![(W::splat(u64::MAX), W::splat(0)); blocks];
        let letters: [W; 4] = [0, 1, 2, 3].map(|code| W::splat(code));
        let none = W::splat(0);
        store_distances::<W>(&state, 0, pairs, distances);
        for column in 0..columns {
            let mut codes = W::zeros();
            for (code, pair) in codes.as_mut().iter_mut().zip(pairs) {
                *code = u64::from(pair.1.get(column).copied().unwrap_or(OTHER));
            }
            let code = W::from_array(codes);
            let mut plus = W::splat(1);
            let mut minus = none;
            for (rows, (pv, mv)) in equal.iter().zip(&mut state) {
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
            store_distances::<W>(&state, column + 1, pairs, distances);
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

/// Counts the steps down the last column of the pairs whose second sequence ends here.
#[inline(always)]
fn store_distances<W: Words>(state: &[(W, W)], length: usize, pairs: &[Pair<'_>], distances: &mut [u32]) {
    for (lane, (pair, distance)) in pairs.iter().zip(distances.iter_mut()).enumerate() {
        if pair.1.len() != length {
            continue;
        }
        let mut value = length as i64;
        for (block, (pv, mv)) in state.iter().enumerate() {
            let rows = pair.0.len().saturating_sub(64 * block).min(64);
            if rows == 0 {
                break;
            }
            let mask = u64::MAX >> (64 - rows);
            value += i64::from((pv.to_array().as_ref()[lane] & mask).count_ones());
            value -= i64::from((mv.to_array().as_ref()[lane] & mask).count_ones());
        }
        *distance = value as u32;
    }
}

//! What every path of a pair is certain to lose: seeds without a match.
//!
//! A sequence is cut into seeds of a few bases. Where the other sequence has no equal part within the band, a path has a
//! mismatch or a gap in the seed (the seed heuristic of Ivanov, Bichsel and Vechev 2022).

use super::Pair;
use super::band::Band;
use crate::seq::OTHER;

/// The longest seed: its table of parts stays in a core's cache.
const LONGEST: usize = 8;
/// Narrower bands are not worth the search for seeds.
const WIDTH: i64 = 256;

/// For each place of both sequences of some pairs, what the seeds ahead are certain to lose.
#[derive(Debug)]
pub(super) struct Losses {
    /// Bases of a seed.
    length: usize,
    /// What a seed without a match loses.
    weight: i32,
    rows: Table,
    columns: Table,
}

impl Losses {
    /// Of pairs whose paths stay within a band, if a mismatch or gap loses at least `weight`.
    pub(super) fn of(pairs: &[Pair<'_>], band: Band, weight: i32) -> Self {
        let longest = |sequence: fn(&Pair<'_>) -> usize| pairs.iter().map(sequence).max().unwrap_or(0);
        if weight == 0 || band.width() < WIDTH {
            let none = || Table { lanes: pairs.len(), sums: vec![0; pairs.len()] };
            return Self { length: LONGEST, weight: 0, rows: none(), columns: none() };
        }
        // So long that a match by chance is rare.
        let length = (1..LONGEST).find(|&length| 1 << (2 * length) >= 16 * band.width()).unwrap_or(LONGEST);
        let mut rows = Table::new(longest(|pair| pair.0.len()) / length, pairs.len());
        let mut columns = Table::new(longest(|pair| pair.1.len()) / length, pairs.len());
        let mut search = Search::new(length);
        for (lane, &(a, b)) in pairs.iter().enumerate() {
            let parts = [search.parts(a), search.parts(b)];
            search.find(&parts[0], &parts[1], band, |seed| rows.lose(seed, lane, weight));
            search.find(&parts[1], &parts[0], band.transposed(), |seed| columns.lose(seed, lane, weight));
        }
        rows.add_up();
        columns.add_up();
        Self { length, weight, rows, columns }
    }

    pub(super) fn length(&self) -> usize {
        self.length
    }

    pub(super) fn weight(&self) -> i32 {
        self.weight
    }

    /// What the seeds of the first sequences after so many bases lose, for each pair.
    #[inline]
    pub(super) fn after_rows(&self, bases: usize) -> &[i32] {
        self.rows.after(bases.div_ceil(self.length))
    }

    /// What the seeds of the second sequences after so many bases lose, for each pair.
    #[inline]
    pub(super) fn after_columns(&self, bases: usize) -> &[i32] {
        self.columns.after(bases.div_ceil(self.length))
    }
}

/// What seeds lose, for each pair.
#[derive(Debug)]
struct Table {
    lanes: usize,
    sums: Vec<i32>,
}

impl Table {
    /// So many seeds that lose nothing, and the place after the last.
    fn new(seeds: usize, lanes: usize) -> Self {
        Self { lanes, sums: vec![0; (seeds + 1) * lanes] }
    }

    fn lose(&mut self, seed: usize, lane: usize, weight: i32) {
        self.sums[seed * self.lanes + lane] = weight;
    }

    /// Replaces what each seed loses by the sum of it and all later ones.
    fn add_up(&mut self) {
        for index in (0..self.sums.len().saturating_sub(self.lanes)).rev() {
            self.sums[index] += self.sums[index + self.lanes];
        }
    }

    /// The sums from this seed on; nothing after the last.
    #[inline]
    fn after(&self, seed: usize) -> &[i32] {
        let last = self.sums.len() - self.lanes;
        let from = (seed * self.lanes).min(last);
        &self.sums[from..from + self.lanes]
    }
}

/// A part with a letter that is no base.
const NO_PART: u32 = u32::MAX;

/// Finds the seeds of a sequence that have no match in another.
struct Search {
    length: usize,
    /// The last place of each part so far, counted from `begin`.
    last: Vec<u32>,
    /// Places of the other sequence begin here: more than any of the sequences before.
    begin: u32,
}

impl Search {
    fn new(length: usize) -> Self {
        Self { length, last: vec![0; 1 << (2 * length)], begin: 1 }
    }

    /// The part at each place of a sequence, as a number.
    fn parts(&self, sequence: &[u8]) -> Vec<u32> {
        let mask = (1 << (2 * self.length)) - 1;
        let (mut number, mut bases) = (0u32, 0);
        let next = |&code: &u8| {
            number = (number << 2 | u32::from(code & 3)) & mask;
            bases = if code < OTHER { bases + 1 } else { 0 };
            if bases < self.length { NO_PART } else { number }
        };
        sequence.iter().map(next).skip(self.length - 1).collect()
    }

    /// Calls `lost` for each seed that has no equal part within the band. Both sequences are given as their parts.
    fn find(&mut self, parts: &[u32], other: &[u32], band: Band, mut lost: impl FnMut(usize)) {
        let end = u32::try_from(other.len()).unwrap_or(u32::MAX - 1);
        if u32::MAX - self.begin <= end {
            self.last.fill(0);
            self.begin = 1;
        }
        let mut known = 0;
        for (seed, place) in (0..parts.len()).step_by(self.length).enumerate() {
            let until = (place as i64 + band.high + 1).clamp(0, other.len() as i64) as usize;
            for (part, here) in other[known.min(until)..until].iter().zip(known as u32..) {
                if let Some(last) = self.last.get_mut(*part as usize) {
                    *last = self.begin + here;
                }
            }
            known = known.max(until);
            let from = (place as i64 + band.low).clamp(0, other.len() as i64) as u32;
            let last = self.last.get(parts[place] as usize).copied().unwrap_or(0);
            if last < self.begin + from {
                lost(seed);
            }
        }
        self.begin += end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::{Random, mutate};

    /// A mutated pair, and its losses by looking at every place.
    #[test]
    fn seeds_without_an_equal_part_in_the_band_are_lost() {
        let mut random = Random::new(2);
        let band = Band { low: -200, high: 150 };
        let sequences: Vec<(Vec<u8>, Vec<u8>)> = (0..5)
            .map(|_| {
                let a: Vec<u8> = (0..random.below(900)).map(|_| random.below(5) as u8).collect();
                let b = mutate(&a, 0.2, &mut random);
                (a, b)
            })
            .collect();
        let pairs: Vec<Pair<'_>> = sequences.iter().map(|(a, b)| (a.as_slice(), b.as_slice())).collect();
        let losses = Losses::of(&pairs, band, 3);
        let length = losses.length();
        assert_eq!((length, losses.weight()), (7, 3));
        let equal = |a: &[u8], b: &[u8]| a == b && a.iter().all(|&code| code < OTHER);
        let lost = |a: &[u8], b: &[u8], band: Band, from: usize| {
            let seeds = (0..a.len() / length).map(|seed| seed * length).filter(|&place| place >= from);
            let broken = seeds.filter(|&place| {
                let seed = &a[place..place + length];
                let near = |there: &usize| (band.low..=band.high).contains(&(*there as i64 - place as i64));
                !(0..b.len().saturating_sub(length - 1))
                    .filter(near)
                    .any(|there| equal(seed, &b[there..there + length]))
            });
            3 * broken.count() as i32
        };
        for (lane, (a, b)) in pairs.iter().enumerate() {
            for from in [0, 1, 6, 7, 100, 850, 2000] {
                assert_eq!(losses.after_rows(from)[lane], lost(a, b, band, from), "{lane} {from}");
                assert_eq!(
                    losses.after_columns(from)[lane],
                    lost(b, a, band.transposed(), from),
                    "{lane} {from}"
                );
            }
        }
    }

    #[test]
    fn narrow_bands_lose_nothing() {
        let a = [0; 50];
        let losses = Losses::of(&[(&a, &[1; 50])], Band { low: -9, high: 9 }, 3);
        assert_eq!(
            (losses.weight(), losses.after_rows(0), losses.after_columns(60)),
            (0, &[0][..], &[0][..])
        );
    }
}

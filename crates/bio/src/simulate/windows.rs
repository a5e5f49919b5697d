//! Windows of noisy reads over a stretch whose true sequence is known, as a consensus step gets them.

use std::ops::Range;

use super::Random;
use super::reads::noisy;
use crate::seq::OTHER;

/// A window: the truth and the reads over it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadWindow {
    /// The true sequence.
    pub truth: Vec<u8>,
    /// Noisy copies of it, end to end.
    pub reads: Vec<Vec<u8>>,
}

/// Windows of `length` known bases of the genome, each with `depth` reads; none if the genome has not so many in a row.
#[must_use]
pub fn noisy_windows(
    genome: &[u8],
    count: usize,
    length: usize,
    depth: usize,
    error: f64,
    seed: u64,
) -> Vec<ReadWindow> {
    let mut random = Random::new(seed ^ 0x7769_6E64_6F77);
    let starts = starts(genome, length);
    let total: usize = starts.iter().map(Range::len).sum();
    let count = if total == 0 { 0 } else { count };
    (0..count)
        .map(|_| {
            let start = nth(&starts, random.below(total));
            let truth = genome[start..start + length].to_vec();
            let reads = (0..depth).map(|_| noisy(&truth, error, &mut random)).collect();
            ReadWindow { truth, reads }
        })
        .collect()
}

/// Where a window of known bases may start.
fn starts(genome: &[u8], length: usize) -> Vec<Range<usize>> {
    let mut starts = Vec::new();
    let mut begin = 0;
    for run in genome.split(|&base| base >= OTHER) {
        if run.len() >= length {
            starts.push(begin..begin + run.len() - length + 1);
        }
        begin += run.len() + 1;
    }
    starts
}

/// The number at a place among some ranges.
fn nth(ranges: &[Range<usize>], mut place: usize) -> usize {
    for range in ranges {
        if place < range.len() {
            return range.start + place;
        }
        place -= range.len();
    }
    0
}

/// A copy of which `divergence` of the bases differ: three in four substituted, the rest short insertions and deletions.
#[must_use]
pub fn mutate(template: &[u8], divergence: f64, random: &mut Random) -> Vec<u8> {
    let mut bases = Vec::with_capacity(template.len() + 16);
    let mut place = 0;
    while place < template.len() {
        let base = template[place];
        if !random.chance(divergence) {
            bases.push(base);
        } else {
            match random.below(8) {
                0 => place += random.geometric(0.3, 6) - 1,
                1 => {
                    bases.push(base);
                    bases.extend((0..random.geometric(0.3, 6)).map(|_| random.base()));
                }
                _ if base < 4 => bases.push(random.other_base(base)),
                _ => bases.push(base),
            }
        }
        place += 1;
    }
    bases
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_have_no_unknown_bases() {
        let mut genome = crate::simulate::genome(4_000, 3);
        let whole = noisy_windows(&genome, 20, 100, 2, 0.1, 1);
        assert_eq!(whole.len(), 20);
        genome[500..3_000].fill(OTHER);
        genome[3_100..3_900].iter_mut().step_by(90).for_each(|base| *base = OTHER);
        let windows = noisy_windows(&genome, 200, 100, 2, 0.1, 1);
        assert_eq!(windows.len(), 200);
        assert!(windows.iter().all(|window| window.truth.len() == 100 && !window.truth.contains(&OTHER)));
        assert!(windows.iter().any(|window| window.truth == genome[3_000..3_100]));
        assert!(noisy_windows(&genome, 5, 501, 2, 0.1, 1).is_empty());
    }
}

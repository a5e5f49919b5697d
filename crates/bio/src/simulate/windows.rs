//! Windows of noisy reads over a stretch whose true sequence is known, as a consensus step gets them.

use super::Random;
use super::reads::noisy;

/// A window: the truth and the reads over it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadWindow {
    /// The true sequence.
    pub truth: Vec<u8>,
    /// Noisy copies of it, end to end.
    pub reads: Vec<Vec<u8>>,
}

/// Windows of `length` bases of the genome, each with `depth` reads.
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
    let length = length.min(genome.len());
    (0..count)
        .map(|_| {
            let start = random.below(genome.len() - length + 1);
            let truth = genome[start..start + length].to_vec();
            let reads = (0..depth).map(|_| noisy(&truth, error, &mut random)).collect();
            ReadWindow { truth, reads }
        })
        .collect()
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

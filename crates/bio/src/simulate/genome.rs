//! A genome: a Markov chain of bases with repeats laid over it.

use super::Random;
use crate::seq::reverse_complement;

/// Probabilities of the next base after each, of the human genome's dinucleotides: GC 41 %, CpG at a fifth of what chance
/// would give.
const NEXT: [[f64; 4]; 4] = [
    [0.326, 0.173, 0.237, 0.264],
    [0.350, 0.254, 0.048, 0.348],
    [0.287, 0.206, 0.254, 0.253],
    [0.217, 0.205, 0.252, 0.326],
];

/// Copies of a family of interspersed repeats.
struct Family {
    /// Bases of the family's consensus.
    length: usize,
    /// Part of the genome that its copies cover.
    share: f64,
    /// Part of the bases in which a copy differs from the consensus, at most.
    divergence: f64,
}

/// Short and long interspersed repeats of several ages, and recent segmental duplications.
const FAMILIES: [Family; 4] = [
    Family { length: 300, share: 0.06, divergence: 0.20 },
    Family { length: 1_200, share: 0.04, divergence: 0.15 },
    Family { length: 6_000, share: 0.03, divergence: 0.10 },
    Family { length: 3_000, share: 0.02, divergence: 0.02 },
];

/// Part of the genome in tandem repeats.
const TANDEM_SHARE: f64 = 0.01;

/// A genome of `length` bases.
#[must_use]
pub fn genome(length: usize, seed: u64) -> Vec<u8> {
    let mut random = Random::new(seed ^ 0x6765_6E6F_6D65);
    let mut bases = chain(length, &mut random);
    for family in &FAMILIES {
        scatter(&mut bases, family, &mut random);
    }
    tandem_repeats(&mut bases, &mut random);
    bases
}

/// A run of the Markov chain.
fn chain(length: usize, random: &mut Random) -> Vec<u8> {
    let mut base = random.base();
    std::iter::repeat_with(|| {
        base = random.weighted(&NEXT[base as usize]) as u8;
        base
    })
    .take(length)
    .collect()
}

/// Writes diverged copies of a family over the genome, on both strands, some of them truncated.
fn scatter(bases: &mut [u8], family: &Family, random: &mut Random) {
    if bases.len() < 4 * family.length {
        return;
    }
    let consensus = chain(family.length, random);
    let mut left = (bases.len() as f64 * family.share) as usize;
    while left > 0 {
        let length = family.length / 2 + random.below(family.length / 2 + 1);
        let divergence = random.unit() * family.divergence;
        let mut copy = consensus[family.length - length..].to_vec();
        for base in &mut copy {
            if random.chance(divergence) {
                *base = random.other_base(*base);
            }
        }
        if random.chance(0.5) {
            copy = reverse_complement(&copy);
        }
        let start = random.below(bases.len() - length + 1);
        bases[start..start + length].copy_from_slice(&copy);
        left = left.saturating_sub(length);
    }
}

/// Writes microsatellites over the genome: a unit of 1 to 6 bases, repeated.
fn tandem_repeats(bases: &mut [u8], random: &mut Random) {
    let mut left = (bases.len() as f64 * TANDEM_SHARE) as usize;
    while left > 0 {
        let unit: Vec<u8> = (0..=random.below(6)).map(|_| random.base()).collect();
        let length = (12 + random.below(40)).min(bases.len());
        let start = random.below(bases.len() - length + 1);
        for (place, &base) in bases[start..start + length].iter_mut().zip(unit.iter().cycle()) {
            *place = base;
        }
        left = left.saturating_sub(length);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_one_genome_of_human_composition() {
        let bases = genome(200_000, 7);
        assert_eq!(bases, genome(200_000, 7));
        assert_ne!(bases, genome(200_000, 8));
        let gc = bases.iter().filter(|&&base| base == 1 || base == 2).count() as f64 / 200_000.0;
        assert!((0.36..0.46).contains(&gc), "{gc}");
        let cpg = bases.windows(2).filter(|pair| *pair == [1, 2]).count() as f64 / 200_000.0;
        assert!(cpg < 0.03, "{cpg}");
    }

    #[test]
    fn there_are_repeats() {
        let bases = genome(200_000, 7);
        let mut seen = std::collections::HashMap::new();
        for word in bases.windows(25) {
            *seen.entry(word).or_insert(0u32) += 1;
        }
        let repeated: u32 = seen.values().filter(|&&count| count > 1).sum();
        assert!((2_000..60_000).contains(&repeated), "{repeated}");
        assert_eq!(genome(0, 1), []);
        assert_eq!(genome(10, 1).len(), 10);
    }
}

//! Spiked variants: a diploid individual whose differences from the reference are known.

use super::Random;
use crate::variants::{Genotype, Variant, normalize};

/// An individual made from a reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpikedGenome {
    /// What differs, sorted by position, left-aligned.
    pub variants: Vec<Variant>,
    /// The two copies of the genome.
    pub haplotypes: [Vec<u8>; 2],
}

/// Share of the variants that are insertions or deletions.
const INDEL_SHARE: f64 = 0.15;

/// Bases between two variants, at least.
const LEAST_DISTANCE: usize = 25;

/// Puts a variant into the reference about every `spacing` bases: single bases, and insertions and deletions of up to 20
/// bases; two in three heterozygous.
#[must_use]
pub fn spike_variants(reference: &[u8], spacing: usize, seed: u64) -> SpikedGenome {
    let mut random = Random::new(seed ^ 0x76_6172_6961_6E74);
    let mut variants: Vec<Variant> = Vec::new();
    let mut next = LEAST_DISTANCE + random.below(2 * spacing);
    while next + 64 < reference.len() {
        if let Some(variant) = draw(reference, next, &mut random)
            && variants.last().is_none_or(|last| last.end() + LEAST_DISTANCE <= variant.position)
        {
            variants.push(variant);
        }
        next += LEAST_DISTANCE + random.below(2 * spacing);
    }
    let haplotypes = [0, 1].map(|copy| apply(reference, &variants, copy));
    SpikedGenome { variants, haplotypes }
}

/// One variant at about this place; none where the reference is not known.
fn draw(reference: &[u8], position: usize, random: &mut Random) -> Option<Variant> {
    let genotype = match random.below(3) {
        0 => Genotype::Homozygous,
        1 => Genotype::Heterozygous { copy: 0 },
        _ => Genotype::Heterozygous { copy: 1 },
    };
    let base = reference[position];
    if reference[position..position + 32].iter().any(|&base| base >= 4) {
        return None;
    }
    let (removed, inserted) = if !random.chance(INDEL_SHARE) {
        (vec![base], vec![random.other_base(base)])
    } else {
        let length = random.geometric(0.6, 20);
        if random.chance(0.5) {
            (reference[position..=position + length].to_vec(), vec![base])
        } else {
            let mut inserted = vec![base];
            inserted.extend((0..length).map(|_| random.base()));
            (vec![base], inserted)
        }
    };
    let variant = Variant { position, reference: removed, alternate: inserted, genotype, quality: 0.0 };
    Some(normalize(reference, variant))
}

/// One copy of the genome.
fn apply(reference: &[u8], variants: &[Variant], copy: u8) -> Vec<u8> {
    let mut bases = Vec::with_capacity(reference.len());
    let mut place = 0;
    for variant in variants.iter().filter(|variant| variant.genotype.has(copy)) {
        bases.extend_from_slice(&reference[place..variant.position]);
        bases.extend_from_slice(&variant.alternate);
        place = variant.end();
    }
    bases.extend_from_slice(&reference[place..]);
    bases
}

#[cfg(test)]
mod tests {
    use super::super::genome;
    use super::*;

    #[test]
    fn variants_are_sorted_apart_and_applied() {
        let reference = genome(100_000, 1);
        let spiked = spike_variants(&reference, 500, 2);
        assert!((120..250).contains(&spiked.variants.len()), "{}", spiked.variants.len());
        for pair in spiked.variants.windows(2) {
            assert!(pair[0].end() <= pair[1].position);
        }
        for variant in &spiked.variants {
            assert_eq!(reference[variant.position..variant.end()], variant.reference);
            assert_ne!(variant.reference, variant.alternate);
        }
        let difference = |copy: u8| -> isize {
            let of_copy = spiked.variants.iter().filter(|variant| variant.genotype.has(copy));
            of_copy.map(|v| v.alternate.len() as isize - v.reference.len() as isize).sum()
        };
        for (copy, haplotype) in spiked.haplotypes.iter().enumerate() {
            assert_eq!(haplotype.len() as isize, 100_000 + difference(copy as u8));
        }
    }
}

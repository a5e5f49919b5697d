//! Reads with an error model, and where they came from.

use super::Random;
use crate::seq::reverse_complement;

/// Where a simulated read came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin {
    /// First base of the genome.
    pub start: usize,
    /// One past the last base.
    pub end: usize,
    /// Whether the read is of the other strand.
    pub reverse: bool,
}

/// A read with its truth.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimulatedRead {
    /// Its name, unique among the reads of a set.
    pub name: String,
    /// Its bases.
    pub bases: Vec<u8>,
    /// The Phred quality of each base.
    pub qualities: Vec<u8>,
    /// Where it came from.
    pub origin: Origin,
}

impl SimulatedRead {
    fn new(number: usize, origin: Origin, bases: Vec<u8>, qualities: Vec<u8>) -> Self {
        let strand = if origin.reverse { '-' } else { '+' };
        let name = format!("read{number}_{}_{}_{strand}", origin.start, origin.end);
        Self { name, bases, qualities, origin }
    }
}

/// The quality levels of a current short-read instrument, and how often each occurs at the begin and at the end of a read.
const QUALITIES: [(u8, f64, f64); 4] =
    [(37, 0.95, 0.80), (25, 0.035, 0.11), (11, 0.013, 0.07), (2, 0.002, 0.02)];

/// Probability that a short read has an inserted or deleted base at a given place.
const SHORT_INDEL: f64 = 2e-5;

/// Short reads of one length, from uniform places of both strands. A base of quality Q is wrong with probability
/// 10^(−Q/10), so the qualities tell the truth.
#[must_use]
pub fn short_reads(genome: &[u8], count: usize, length: usize, seed: u64) -> Vec<SimulatedRead> {
    let mut random = Random::new(seed ^ 0x0073_686F_7274);
    if length == 0 || genome.len() < length + 8 {
        return Vec::new();
    }
    (0..count).map(|number| short_read(genome, number, length, &mut random)).collect()
}

fn short_read(genome: &[u8], number: usize, length: usize, random: &mut Random) -> SimulatedRead {
    let start = random.below(genome.len() - length - 7);
    let reverse = random.chance(0.5);
    // A few bases more than the read has, for its deletions.
    let mut template = genome[start..start + length + 8].to_vec();
    if reverse {
        template = reverse_complement(&template);
    }
    let (mut bases, mut qualities) = (Vec::with_capacity(length), Vec::with_capacity(length));
    let mut place = 0;
    while bases.len() < length {
        if random.chance(SHORT_INDEL) {
            if random.chance(0.5) && place + 1 < template.len() + bases.len() - length {
                place += 1;
            } else {
                bases.push(random.base());
                qualities.push(37);
                continue;
            }
        }
        let along = bases.len() as f64 / length as f64;
        let weights = QUALITIES.map(|(_, first, last)| first + (last - first) * along);
        let quality = QUALITIES[random.weighted(&weights)].0;
        let base = template[place.min(template.len() - 1)];
        let wrong = random.chance(10f64.powf(f64::from(quality) / -10.0));
        bases.push(if wrong && base < 4 { random.other_base(base) } else { base });
        qualities.push(quality);
        place += 1;
    }
    let span = place.min(length + 8);
    let origin = if reverse {
        Origin { start: start + length + 8 - span, end: start + length + 8, reverse }
    } else {
        Origin { start, end: start + span, reverse }
    };
    SimulatedRead::new(number, origin, bases, qualities)
}

/// How long reads are made.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LongReadModel {
    /// The mean length; lengths are log-normal.
    pub mean_length: usize,
    /// The share of wrong bases: four in ten substituted, three deleted, three inserted.
    pub error: f64,
}

impl Default for LongReadModel {
    fn default() -> Self {
        Self { mean_length: 8_000, error: 0.08 }
    }
}

/// Long reads from uniform places of both strands.
#[must_use]
pub fn long_reads(genome: &[u8], count: usize, model: LongReadModel, seed: u64) -> Vec<SimulatedRead> {
    let mut random = Random::new(seed ^ 0x6C6F_6E67);
    if genome.is_empty() {
        return Vec::new();
    }
    (0..count)
        .map(|number| {
            let spread = 0.5f64;
            let mean = (model.mean_length as f64).ln() - spread * spread / 2.0;
            let length = (mean + spread * random.normal()).exp() as usize;
            let length = length.clamp(200, genome.len().max(200)).min(genome.len());
            let start = random.below(genome.len() - length + 1);
            let reverse = random.chance(0.5);
            let template = &genome[start..start + length];
            let strand = if reverse { reverse_complement(template) } else { template.to_vec() };
            let bases = noisy(&strand, model.error, &mut random);
            let quality = (-10.0 * model.error.max(1e-4).log10()) as u8;
            let qualities = vec![quality; bases.len()];
            SimulatedRead::new(number, Origin { start, end: start + length, reverse }, bases, qualities)
        })
        .collect()
}

/// A copy with errors of the long-read model.
pub(super) fn noisy(template: &[u8], error: f64, random: &mut Random) -> Vec<u8> {
    let mut bases = Vec::with_capacity(template.len() + template.len() / 8);
    for &base in template {
        if !random.chance(error) {
            bases.push(base);
            continue;
        }
        match random.below(10) {
            0..4 if base < 4 => bases.push(random.other_base(base)),
            0..4 => bases.push(base),
            4..7 => {}
            _ => {
                bases.push(base);
                bases.push(random.base());
            }
        }
    }
    bases
}

#[cfg(test)]
mod tests {
    use super::super::genome;
    use super::*;

    #[test]
    fn reads_are_copies_of_their_origin_with_errors() {
        let bases = genome(50_000, 3);
        let reads = short_reads(&bases, 500, 150, 5);
        let mut wrong = 0;
        for read in &reads {
            assert_eq!((read.bases.len(), read.qualities.len()), (150, 150));
            let Origin { start, end, reverse } = read.origin;
            let template =
                if reverse { reverse_complement(&bases[start..end]) } else { bases[start..end].to_vec() };
            wrong += read.bases.iter().zip(&template).filter(|(a, b)| a != b).count();
        }
        let rate = wrong as f64 / (500.0 * 150.0);
        assert!((0.002..0.03).contains(&rate), "{rate}");
        assert!(short_reads(&bases[..100], 1, 150, 5).is_empty());
    }

    #[test]
    fn long_reads_have_the_mean_length_asked_for() {
        let bases = genome(100_000, 3);
        let model = LongReadModel { mean_length: 3_000, error: 0.1 };
        let reads = long_reads(&bases, 300, model, 5);
        let mean = reads.iter().map(|read| read.bases.len()).sum::<usize>() as f64 / 300.0;
        assert!((2_600.0..3_400.0).contains(&mean), "{mean}");
        assert!(long_reads(&[], 3, model, 5).is_empty());
        assert!(long_reads(&bases[..50], 3, model, 5).iter().all(|read| read.origin.end <= 50));
    }
}

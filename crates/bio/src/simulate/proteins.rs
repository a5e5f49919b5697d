//! Protein families: members that descend from a common ancestor by substitutions after BLOSUM62 and short indels.

use super::Random;
use crate::protein::blosum62;

/// Frequencies of the twenty amino acids in UniProtKB/Swiss-Prot, in per cent, in the order of [`crate::protein::ALPHABET`].
const FREQUENCIES: [f64; 20] = [
    8.25, 5.53, 4.06, 5.46, 1.38, 3.93, 6.72, 7.07, 2.27, 5.91, 9.65, 5.80, 2.41, 3.86, 4.74, 6.65, 5.36,
    1.10, 2.92, 6.86,
];

/// A database of proteins and queries, some of which have relatives in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProteinSet {
    /// The database.
    pub database: Vec<Vec<u8>>,
    /// The queries.
    pub queries: Vec<Vec<u8>>,
}

/// A database of `size` proteins in families, and `queries` further members of its families.
#[must_use]
pub fn protein_families(size: usize, queries: usize, seed: u64) -> ProteinSet {
    let mut random = Random::new(seed ^ 0x70_726F_7465_696E);
    let substitution = substitution_weights();
    let mut set = ProteinSet { database: Vec::with_capacity(size), queries: Vec::with_capacity(queries) };
    let mut ancestors = Vec::new();
    while set.database.len() < size {
        let length = ((5.6 + 0.6 * random.normal()).exp() as usize).clamp(40, 2_000);
        let ancestor: Vec<u8> = (0..length).map(|_| random.weighted(&FREQUENCIES) as u8).collect();
        let members = 1 + random.below(40);
        for _ in 0..members.min(size - set.database.len()) {
            let divergence = 0.1 + 0.45 * random.unit();
            set.database.push(descend(&ancestor, divergence, &substitution, &mut random));
        }
        ancestors.push(ancestor);
    }
    for _ in 0..queries {
        let Some(ancestor) = ancestors.get(random.below(ancestors.len())) else { break };
        let divergence = 0.1 + 0.35 * random.unit();
        set.queries.push(descend(ancestor, divergence, &substitution, &mut random));
    }
    for index in (1..set.database.len()).rev() {
        set.database.swap(index, random.below(index + 1));
    }
    set
}

/// How probable each substitution is: amino acids that BLOSUM62 scores higher replace each other more often.
fn substitution_weights() -> Vec<Vec<f64>> {
    (0..20u8)
        .map(|from| {
            let weight = |to: u8| FREQUENCIES[to as usize] * 2f64.powf(f64::from(blosum62(from, to)) / 2.0);
            (0..20u8).map(|to| if to == from { 0.0 } else { weight(to) }).collect()
        })
        .collect()
}

fn descend(ancestor: &[u8], divergence: f64, substitution: &[Vec<f64>], random: &mut Random) -> Vec<u8> {
    let mut residues = Vec::with_capacity(ancestor.len() + 16);
    let mut place = 0;
    while place < ancestor.len() {
        let residue = ancestor[place];
        if random.chance(divergence) {
            residues.push(random.weighted(&substitution[residue as usize]) as u8);
        } else {
            residues.push(residue);
        }
        if random.chance(divergence * 0.02) {
            let length = random.geometric(0.7, 12);
            if random.chance(0.5) {
                place += length;
            } else {
                residues.extend((0..length).map(|_| random.weighted(&FREQUENCIES) as u8));
            }
        }
        place += 1;
    }
    residues
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protein::ALPHABET;

    #[test]
    fn a_seed_gives_one_set_of_the_sizes_asked_for() {
        let set = protein_families(200, 20, 4);
        assert_eq!(set, protein_families(200, 20, 4));
        assert_eq!((set.database.len(), set.queries.len()), (200, 20));
        let valid =
            |protein: &Vec<u8>| !protein.is_empty() && protein.iter().all(|&r| r < ALPHABET.len() as u8);
        assert!(set.database.iter().chain(&set.queries).all(valid));
    }
}

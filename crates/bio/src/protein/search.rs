//! Search of a database: seeds, ungapped extension, then Smith–Waterman of the targets that are left.

use super::seeds::SeedIndex;
use super::{GAP_EXTEND, GAP_OPEN, blosum62};
use crate::align::{Profile, local_against_profile};
use crate::parallel::map_indices;

/// Statistics of gapped BLOSUM62 scores with gaps of 11 + n (Karlin–Altschul λ and K).
const LAMBDA: f64 = 0.267;
const K: f64 = 0.041;

/// Diagonals that one gap may lie between.
const NEARBY: u32 = 40;

/// What is searched and reported.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SearchSettings {
    /// Hits with a higher E-value are not reported.
    pub most_evalue: f64,
    /// The most hits of a query.
    pub most_hits: usize,
    /// The least score of an ungapped extension of a seed that makes its target a candidate.
    pub least_ungapped: i32,
    /// Extensions with less than this score count for nothing; what several have beyond it on nearby diagonals adds up.
    pub least_segment: i32,
}

impl Default for SearchSettings {
    fn default() -> Self {
        Self { most_evalue: 1e-3, most_hits: 50, least_ungapped: 36, least_segment: 24 }
    }
}

/// A target that a query found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hit {
    /// Its number in the database.
    pub target: usize,
    /// The Smith–Waterman score.
    pub score: i32,
    /// How many hits of this score chance would give.
    pub evalue: f64,
}

/// Proteins to be searched.
#[derive(Debug)]
pub struct Database {
    residues: Vec<u8>,
    bounds: Vec<usize>,
    seeds: SeedIndex,
}

impl Database {
    /// Indexes proteins.
    #[must_use]
    pub fn new<S: AsRef<[u8]>>(proteins: &[S], threads: usize) -> Self {
        let mut residues = Vec::with_capacity(proteins.iter().map(|protein| protein.as_ref().len()).sum());
        let mut bounds = vec![0];
        for protein in proteins {
            residues.extend_from_slice(protein.as_ref());
            bounds.push(residues.len());
        }
        let seeds = SeedIndex::new(&residues, &bounds, threads);
        Self { residues, bounds, seeds }
    }

    /// Proteins in it.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bounds.len() - 1
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Residues in it.
    #[must_use]
    pub fn residues(&self) -> usize {
        self.residues.len()
    }

    fn target(&self, index: usize) -> &[u8] {
        &self.residues[self.bounds[index]..self.bounds[index + 1]]
    }

    fn evalue(&self, query: usize, score: i32) -> f64 {
        K * query as f64 * self.residues.len() as f64 * (-LAMBDA * f64::from(score)).exp()
    }

    /// The hits among some targets, best first.
    fn score(&self, query: &[u8], candidates: &[usize], settings: &SearchSettings) -> Vec<Hit> {
        let rows: Vec<[i8; 32]> = query
            .iter()
            .map(|&residue| {
                std::array::from_fn(|code| if code < 24 { blosum62(residue, code as u8) } else { -20 })
            })
            .collect();
        let profile = Profile { rows: &rows, gap_open: GAP_OPEN, gap_extend: GAP_EXTEND };
        let targets: Vec<&[u8]> = candidates.iter().map(|&target| self.target(target)).collect();
        let scores = local_against_profile(&profile, &targets);
        let mut hits: Vec<Hit> = candidates
            .iter()
            .zip(scores)
            .map(|(&target, score)| Hit { target, score, evalue: self.evalue(query.len(), score) })
            .filter(|hit| hit.score > 0 && hit.evalue <= settings.most_evalue)
            .collect();
        hits.sort_by_key(|hit| (std::cmp::Reverse(hit.score), hit.target));
        hits.truncate(settings.most_hits);
        hits
    }

    /// Targets with a seed whose ungapped extension scores enough.
    fn candidates(&self, query: &[u8], settings: &SearchSettings) -> Vec<usize> {
        let mut found: Vec<(u32, u32)> = Vec::new();
        // Diagonals are shifted so that they are not negative.
        self.seeds.hits(query, |q, t| found.push(((t + query.len() - q) as u32, q as u32)));
        found.sort_unstable();
        let mut targets = Vec::new();
        let mut covered = (u32::MAX, 0);
        // Segments of one target on nearby diagonals add up: relatives with gaps have several.
        let mut nearby: Vec<(usize, u32, i32)> = Vec::new();
        for (diagonal, q) in found {
            // A seed within what was extended already says nothing new.
            if covered.0 == diagonal && q < covered.1 {
                continue;
            }
            let place = diagonal as usize + q as usize - query.len();
            let target = self.bounds.partition_point(|&begin| begin <= place) - 1;
            if targets.last() == Some(&target) {
                continue;
            }
            let bounds = self.bounds[target]..self.bounds[target + 1];
            let (score, end) = self.ungapped(query, q as usize, place, bounds);
            covered = (diagonal, end as u32);
            if score < settings.least_segment {
                continue;
            }
            nearby.retain(|&(known, other, _)| known == target && diagonal - other <= NEARBY);
            nearby.push((target, diagonal, score));
            let sum: i32 = nearby.iter().map(|segment| segment.2 - settings.least_segment).sum();
            if score >= settings.least_ungapped || sum >= settings.least_ungapped - settings.least_segment {
                targets.push(target);
            }
        }
        targets.sort_unstable();
        targets.dedup();
        targets
    }

    /// The best score of an ungapped alignment through a seed, and where in the query it ends.
    fn ungapped(&self, query: &[u8], q: usize, place: usize, bounds: std::ops::Range<usize>) -> (i32, usize) {
        const DROP: i32 = 16;
        let (mut score, mut best, mut end) = (0, 0, q);
        for (offset, (&a, &b)) in query[q..].iter().zip(&self.residues[place..bounds.end]).enumerate() {
            score += i32::from(blosum62(a, b));
            if score > best {
                (best, end) = (score, q + offset + 1);
            } else if score < best - DROP {
                break;
            }
        }
        let (mut score, mut more) = (0, 0);
        let before = query[..q].iter().rev().zip(self.residues[bounds.start..place].iter().rev());
        for (&a, &b) in before {
            score += i32::from(blosum62(a, b));
            more = more.max(score);
            if score < more - DROP {
                break;
            }
        }
        (best + more, end)
    }
}

/// The hits of each query, best first.
#[must_use]
pub fn search<S: AsRef<[u8]> + Sync>(
    database: &Database,
    queries: &[S],
    settings: &SearchSettings,
    threads: usize,
) -> Vec<Vec<Hit>> {
    map_indices(queries.len(), threads, |index| {
        let query = queries[index].as_ref();
        let candidates = database.candidates(query, settings);
        database.score(query, &candidates, settings)
    })
}

/// The hits of each query by Smith–Waterman against every target: what [`search`] should find.
#[must_use]
pub fn exhaustive<S: AsRef<[u8]> + Sync>(
    database: &Database,
    queries: &[S],
    settings: &SearchSettings,
    threads: usize,
) -> Vec<Vec<Hit>> {
    let all: Vec<usize> = (0..database.len()).collect();
    map_indices(queries.len(), threads, |index| database.score(queries[index].as_ref(), &all, settings))
}

/// Part of the true hits that were found. Targets that score as much as the last true hit are as good as it.
#[must_use]
pub fn recall(truth: &[Vec<Hit>], found: &[Vec<Hit>]) -> f64 {
    let (mut all, mut hit) = (0, 0);
    for (truth, found) in truth.iter().zip(found) {
        let Some(last) = truth.last() else { continue };
        all += truth.len();
        hit += found.iter().filter(|hit| hit.score >= last.score).count().min(truth.len());
    }
    if all == 0 { 1.0 } else { hit as f64 / all as f64 }
}

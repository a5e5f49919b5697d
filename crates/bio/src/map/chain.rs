//! Chains of seeds: for short reads the seeds of one diagonal, for long reads a path through them.

use super::{Reference, Settings};

/// A seed of the read at a place of the reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Anchor {
    /// Whether it is on the other strand of the read.
    pub(super) reverse: bool,
    /// Begin in the reference, among all bases.
    pub(super) target: u32,
    /// Begin in the strand of the read that is mapped.
    pub(super) query: u32,
}

impl Anchor {
    fn diagonal(&self) -> i64 {
        i64::from(self.target) - i64::from(self.query)
    }
}

/// Seeds of a short read that lie on neighbouring diagonals.
#[derive(Debug, Clone)]
pub(super) struct Cluster {
    /// Whether they are on the other strand of the read.
    pub(super) reverse: bool,
    /// How many there are.
    pub(super) seeds: usize,
    /// The diagonal that most of them are on.
    pub(super) diagonal: i64,
    /// One of them on that diagonal.
    pub(super) anchor: Anchor,
    /// Whether all of them are on that diagonal.
    pub(super) straight: bool,
}

/// Groups seeds by diagonal; the group with the most seeds first.
pub(super) fn cluster(anchors: &mut [Anchor], bandwidth: i64) -> Vec<Cluster> {
    anchors.sort_unstable_by_key(|anchor| (anchor.reverse, anchor.diagonal(), anchor.query));
    let near = |a: &Anchor, b: &Anchor| a.reverse == b.reverse && b.diagonal() - a.diagonal() <= bandwidth;
    let mut clusters: Vec<Cluster> = anchors
        .chunk_by(near)
        .filter_map(|group| {
            let same = |a: &Anchor, b: &Anchor| a.diagonal() == b.diagonal();
            let line = group.chunk_by(same).max_by_key(|line| line.len())?;
            Some(Cluster {
                reverse: group[0].reverse,
                seeds: group.len(),
                diagonal: line[0].diagonal(),
                anchor: line[line.len() / 2],
                straight: line.len() == group.len(),
            })
        })
        .collect();
    clusters.sort_by_key(|cluster| std::cmp::Reverse(cluster.seeds));
    clusters
}

/// Seeds of a long read that follow each other in the read and in the reference.
#[derive(Debug, Clone)]
pub(super) struct Chain {
    /// Whether they are on the other strand of the read.
    pub(super) reverse: bool,
    /// What the chain is worth: bases covered by seeds less what gaps cost.
    pub(super) score: f32,
    /// The seeds in order.
    pub(super) anchors: Vec<Anchor>,
}

/// Predecessors that are tried for each seed.
const LOOK_BACK: usize = 60;

/// Finds chains; keeps its memory between calls.
#[derive(Debug, Default)]
pub(super) struct Chainer {
    scores: Vec<f32>,
    before: Vec<u32>,
    used: Vec<bool>,
}

/// No predecessor.
const NONE: u32 = u32::MAX;

impl Chainer {
    /// The best chain and the score of the next best that shares no seed with it.
    pub(super) fn best(
        &mut self,
        anchors: &mut [Anchor],
        settings: &Settings,
        reference: &Reference,
    ) -> Option<(Chain, f32)> {
        anchors.sort_unstable_by_key(|anchor| (anchor.reverse, anchor.target, anchor.query));
        self.fill(anchors, settings, reference);
        self.used.clear();
        self.used.resize(anchors.len(), false);
        let first = self.take(anchors)?;
        let second = self.rest();
        Some((first, second))
    }

    /// The best score of a chain that ends at each seed.
    fn fill(&mut self, anchors: &[Anchor], settings: &Settings, reference: &Reference) {
        let k = settings.k as f32;
        self.scores.clear();
        self.before.clear();
        let single = reference.names().len() == 1;
        for (index, anchor) in anchors.iter().enumerate() {
            let (mut best, mut before) = (k, NONE);
            let contig = if single { 0 } else { reference.contig_of(anchor.target as usize) };
            for other in (index.saturating_sub(LOOK_BACK)..index).rev() {
                let earlier = &anchors[other];
                if earlier.reverse != anchor.reverse
                    || (anchor.target - earlier.target) as usize > settings.longest_gap
                    || (!single && reference.contig_of(earlier.target as usize) != contig)
                {
                    break;
                }
                let score = self.scores[other] + link(earlier, anchor, settings);
                if score > best {
                    (best, before) = (score, other as u32);
                }
            }
            self.scores.push(best);
            self.before.push(before);
        }
    }

    /// Takes the best chain out.
    fn take(&mut self, anchors: &[Anchor]) -> Option<Chain> {
        let end = (0..anchors.len()).max_by(|&a, &b| self.scores[a].total_cmp(&self.scores[b]))?;
        let mut chain = Vec::new();
        let mut here = end as u32;
        while here != NONE {
            self.used[here as usize] = true;
            chain.push(anchors[here as usize]);
            here = self.before[here as usize];
        }
        chain.reverse();
        Some(Chain { reverse: anchors[end].reverse, score: self.scores[end], anchors: chain })
    }

    /// The best score of a chain without the seeds that were taken.
    fn rest(&self) -> f32 {
        let mut best = 0f32;
        for end in 0..self.scores.len() {
            if self.used[end] || self.scores[end] <= best {
                continue;
            }
            let mut here = end as u32;
            while here != NONE && !self.used[here as usize] {
                here = self.before[here as usize];
            }
            let shared = if here == NONE { 0.0 } else { self.scores[here as usize] };
            best = best.max(self.scores[end] - shared);
        }
        best
    }
}

/// What following one seed by another is worth; very little if it cannot follow.
#[inline]
fn link(earlier: &Anchor, anchor: &Anchor, settings: &Settings) -> f32 {
    let step_target = i64::from(anchor.target) - i64::from(earlier.target);
    let step_query = i64::from(anchor.query) - i64::from(earlier.query);
    let skew = (step_target - step_query).unsigned_abs() as usize;
    if step_query <= 0
        || step_target <= 0
        || step_query as usize > settings.longest_gap
        || skew > settings.bandwidth
    {
        return f32::MIN;
    }
    let covered = step_query.min(step_target).min(settings.k as i64) as f32;
    let cost =
        if skew == 0 { 0.0 } else { 0.01 * settings.k as f32 * skew as f32 + 0.5 * (skew as f32).log2() };
    covered - cost
}

//! What sequencing errors leave in the graph: dead ends, bubbles and islands.

use std::collections::HashMap;

use super::graph::{KmerGraph, Unitig};

/// The most passes; each may open what the last one left.
const PASSES: usize = 6;

/// Cleans the graph and returns its unitigs.
pub(super) fn clean(graph: &mut KmerGraph) -> Vec<Unitig> {
    let mut unitigs = graph.unitigs();
    for _ in 0..PASSES {
        let mut removed = tips(graph, &unitigs);
        removed.extend(bubbles(graph, &unitigs));
        if removed.is_empty() {
            break;
        }
        for bases in removed {
            // The k-mers at either end belong to this unitig alone, because it begins and ends at branches.
            graph.remove(&bases);
        }
        unitigs = graph.unitigs();
    }
    unitigs
}

/// Short unitigs that end nowhere, where another way goes on that has more reads; and short islands.
fn tips(graph: &KmerGraph, unitigs: &[Unitig]) -> Vec<Vec<u8>> {
    let median = median_coverage(unitigs);
    unitigs
        .iter()
        .filter(|unitig| {
            let dead_ends = unitig.links.iter().filter(|&&links| links == 0).count();
            match dead_ends {
                1 => unitig.bases.len() < 3 * graph.k && unitig.coverage < 0.5 * median,
                2 => unitig.bases.len() < 2 * graph.k && unitig.coverage < 0.3 * median,
                _ => false,
            }
        })
        .map(|unitig| unitig.bases.clone())
        .collect()
}

/// Of the unitigs between the same two k-mers, those that have far fewer reads than the best of them or than the genome.
fn bubbles(graph: &KmerGraph, unitigs: &[Unitig]) -> Vec<Vec<u8>> {
    let median = median_coverage(unitigs);
    let mut between: HashMap<[u128; 2], Vec<&Unitig>> = HashMap::new();
    let mut removed = Vec::new();
    for unitig in unitigs.iter().filter(|unitig| unitig.links == [1, 1]) {
        if unitig.bases.len() > 2 * graph.k + 10 {
            continue;
        }
        let mut around = graph.ends(&unitig.bases).map(|end| graph.next(end).next().unwrap_or_default());
        around.sort_unstable();
        between.entry(around).or_default().push(unitig);
    }
    for group in between.values_mut() {
        group.sort_by(|a, b| b.coverage.total_cmp(&a.coverage).then_with(|| a.bases.cmp(&b.bases)));
        let best = group[0].coverage;
        // Copies of a repeat that differ are bubbles as well; they have the coverage of the genome.
        let thin = |unitig: &&&Unitig| unitig.coverage < 0.1 * best || unitig.coverage < 0.2 * median;
        removed.extend(group.iter().filter(thin).map(|unitig| unitig.bases.clone()));
    }
    removed
}

/// The coverage that half of the bases are below.
fn median_coverage(unitigs: &[Unitig]) -> f64 {
    let mut sorted: Vec<(f64, usize)> =
        unitigs.iter().map(|unitig| (unitig.coverage, unitig.bases.len())).collect();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    let half = sorted.iter().map(|unitig| unitig.1).sum::<usize>() / 2;
    let mut sum = 0;
    for (coverage, length) in sorted {
        sum += length;
        if sum >= half {
            return coverage;
        }
    }
    0.0
}

//! What the field's programs reach on the data of this suite: the gates are held against these figures.
//!
//! Measured by `cargo xtask peers bio`, which exports the same data: seed 1, minimap2 2.24, bcftools 1.16, pyspoa 0.3.2. A
//! change of the generators or of the simulated reads needs new figures.

use warpforge_bio::map::ReadKind;
use warpforge_bio::sets;

use super::workload::{Common, Size};

/// What the data that was measured is called here: the size of generated data, or the data set.
fn name(common: &Common) -> Option<&'static str> {
    match &common.data {
        None => (common.seed == 1).then(|| common.size.name()),
        Some(path) => sets::of_file(path).map(|set| set.name),
    }
}

/// The share of reads that minimap2 puts at their origin; none for data that it was not measured on.
pub(super) fn minimap2_share(common: &Common, kind: ReadKind) -> Option<f64> {
    let share = match (name(common)?, kind) {
        ("small", ReadKind::Short) => 0.992_64,
        ("medium", ReadKind::Short) => 0.990_22,
        ("ecoli", ReadKind::Short) => 0.987_36,
        ("lambda", ReadKind::Short) => 0.999_96,
        ("small" | "medium" | "ecoli" | "lambda", ReadKind::Long) => 1.0,
        _ => return None,
    };
    Some(share)
}

/// F1 of bcftools on so many spiked variants. Data that it was not measured on is held to the least of what was, generated
/// data at 15-fold coverage, with what chance may add.
pub(super) fn bcftools_f1(common: &Common, depth: usize, variants: usize) -> f64 {
    match name(common) {
        Some("small") if depth >= 30 => 0.996_85,
        Some("lambda") if depth >= 30 => 1.0,
        Some("ecoli") if depth >= 30 => 0.991_29,
        _ => less_chance(0.991_04, variants),
    }
}

/// The identity of spoa's consensus with the truth over so many bases. For other windows than those that were measured,
/// with what chance may add.
pub(super) fn spoa_identity(common: &Common, depth: usize, bases: usize) -> f64 {
    let measured = common.data.is_none() && common.size == Size::Small && common.seed == 1;
    let identity = if depth >= 30 { 0.997_46 } else { 0.998_09 };
    if measured && matches!(depth, 20 | 30) { identity } else { less_chance(identity, bases) }
}

/// Three standard deviations below a share that so many draws give.
fn less_chance(share: f64, draws: usize) -> f64 {
    share - 3.0 * (share * (1.0 - share) / draws.max(1) as f64).sqrt()
}

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

/// The identity of spoa's consensus with the truth over so many windows. For other windows than those that were measured,
/// with what chance may add.
pub(super) fn spoa_identity(common: &Common, length: usize, depth: usize, windows: usize) -> f64 {
    let measured = common.data.is_none() && common.size == Size::Small && common.seed == 1;
    match (length, depth) {
        (500, 20) if measured => 0.998_09,
        (500, 30) if measured => 0.997_46,
        _ => less_chance(1.0 - spoa_wrong(length, depth) / length as f64, windows * length),
    }
}

/// Wrong bases of spoa in a window: at its two ends, where more reads give more bases that are too many, and between them. The
/// depths were measured with windows of 100 and 500 bases; lengths of 50 to 5,000 follow with 20 and 30 reads.
fn spoa_wrong(length: usize, depth: usize) -> f64 {
    const AT_ENDS: [(f64, f64); 4] = [(20.0, 0.70), (30.0, 1.02), (60.0, 1.57), (120.0, 2.08)];
    const OF_A_BASE: f64 = 0.000_5;
    let depth = (depth as f64).clamp(AT_ENDS[0].0, AT_ENDS[3].0);
    let between = AT_ENDS.windows(2).find(|pair| depth <= pair[1].0).unwrap_or(&AT_ENDS[2..]);
    let (less, more) = (between[0], between[1]);
    let part = (depth / less.0).ln() / (more.0 / less.0).ln();
    less.1 + part * (more.1 - less.1) + OF_A_BASE * length as f64
}

/// Three standard deviations below a share that so many draws give.
fn less_chance(share: f64, draws: usize) -> f64 {
    share - 3.0 * (share * (1.0 - share) / draws.max(1) as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_bases_of_spoa_follow_what_was_measured() {
        for (length, depth, identity) in [
            (50u32, 20, 0.985),
            (50, 30, 0.979),
            (100, 20, 0.992_55),
            (100, 60, 0.984),
            (100, 120, 0.978_7),
            (200, 30, 0.994_9),
            (500, 25, 0.997_6),
            (500, 60, 0.996_26),
            (1_000, 30, 0.998_45),
            (3_000, 20, 0.999_36),
        ] {
            let wrong = (1.0 - identity) * f64::from(length);
            let found = spoa_wrong(length as usize, depth);
            assert!((found - wrong).abs() < 0.35 + 0.2 * wrong, "{length} {depth}: {found} {wrong}");
        }
        assert_eq!(spoa_wrong(500, 500), spoa_wrong(500, 120));
    }
}

//! The algorithms that a dot may ask for.

use crate::attr::DotAlgorithm;
use crate::verify::Cx;

/// The algorithms that some hardware has: the type of both operands, that of the sums, and how many products of parts
/// of the operands are summed.
const KNOWN: &[(&str, &str, i64)] = &[
    ("f16", "f16", 1),
    ("f16", "f32", 1),
    ("bf16", "bf16", 1),
    ("bf16", "f32", 1),
    ("bf16", "f32", 3),
    ("bf16", "f32", 6),
    ("bf16", "f32", 9),
    ("tf32", "f32", 1),
    ("tf32", "f32", 3),
    ("f32", "f32", 1),
    ("f64", "f64", 1),
    ("f8E4M3FN", "f32", 3),
];

/// Types of eight bits that may be multiplied with each other.
const EIGHT_BITS: &[&str] =
    &["f8E3M4", "f8E4M3", "f8E4M3B11FNUZ", "f8E4M3FN", "f8E4M3FNUZ", "f8E5M2", "f8E5M2FNUZ"];

pub(super) fn check(cx: &mut Cx<'_>, asked: &DotAlgorithm) {
    for (label, what, count) in [
        ("C22", "lhs_component_count", asked.lhs_component_count),
        ("C23", "rhs_component_count", asked.rhs_component_count),
        ("C24", "num_primitive_operations", asked.num_primitive_operations),
    ] {
        cx.check(count > 0, label, || format!("{what} is {count}, which is not positive"));
    }
    if !cx.is_broken() {
        cx.check(is_known(asked), "algorithm", || {
            format!("no hardware is known to have the algorithm {asked}")
        });
    }
}

fn is_known(asked: &DotAlgorithm) -> bool {
    let [lhs, rhs, sum] = [&asked.lhs_precision_type, &asked.rhs_precision_type, &asked.accumulation_type]
        .map(ToString::to_string);
    let whole = asked.lhs_component_count == 1 && asked.rhs_component_count == 1;
    let count = asked.num_primitive_operations;
    let eight = |ty: &str| EIGHT_BITS.contains(&ty);
    if eight(&lhs) && eight(&rhs) && count == 1 {
        return whole && sum == "f32";
    }
    let known = lhs == rhs && KNOWN.contains(&(lhs.as_str(), sum.as_str(), count));
    whole && known && !asked.allow_imprecise_accumulation
}

//! Judging a model's results by PyTorch's.

use std::collections::BTreeMap;
use std::path::Path;

use warpforge_tensor::compare::{Criterion, Tolerance, compare};
use warpforge_tensor::io::safetensors;
use warpforge_tensor::{ElementType, Tensor};

use super::table::Verdict;

/// A forward pass in f32, relative to the largest value of the output.
const OUTPUT: f64 = 1e-5;
/// The loss.
const LOSS: Tolerance = Tolerance::Close { rtol: 1e-4, atol: 1e-6 };
/// A gradient; what is less than the second may be nothing but rounding.
const GRADIENT: (f64, f64) = (1e-3, 1e-5);

/// What PyTorch's run in a golden folder gave, by the names of results.
pub(super) fn golden(folder: &Path) -> anyhow::Result<BTreeMap<String, Tensor>> {
    let mut expected = named(safetensors::read(&folder.join("outputs.safetensors"))?, "");
    let gradients = folder.join("gradients.safetensors");
    if gradients.is_file() {
        expected.extend(named(safetensors::read(&gradients)?, "grad."));
    }
    Ok(expected)
}

/// Compares the results in a file with PyTorch's.
pub(super) fn judge(expected: &BTreeMap<String, Tensor>, results: &Path) -> anyhow::Result<Verdict> {
    let found = safetensors::read(results)?;
    let mut worst = 0.0f64;
    for (name, expected) in expected {
        let Some(found) = found.get(name) else {
            return Ok(Verdict::Fail { reason: format!("there is no result {name}") });
        };
        let report = match compare(found, expected, Criterion::new(tolerance(name, expected))) {
            Ok(report) => report,
            Err(error) => return Ok(Verdict::Fail { reason: format!("{name}: {error}") }),
        };
        let error = if report.scale > 0.0 { report.max_absolute / report.scale } else { report.max_absolute };
        if !report.passed() {
            let reason = format!(
                "{name}: {} of {} values differ, by up to {:.1e} ({error:.1e} of the largest)",
                report.mismatches, report.count, report.max_absolute
            );
            return Ok(Verdict::Fail { reason });
        }
        if !name.starts_with("grad.") || report.max_absolute > GRADIENT.1 {
            worst = worst.max(error);
        }
    }
    Ok(Verdict::Pass { results: expected.len(), worst })
}

fn named(tensors: BTreeMap<String, Tensor>, prefix: &str) -> BTreeMap<String, Tensor> {
    tensors.into_iter().map(|(name, tensor)| (format!("{prefix}{name}"), tensor)).collect()
}

fn tolerance(name: &str, expected: &Tensor) -> Tolerance {
    match name {
        _ if !matches!(expected.element_type(), ElementType::Float(_)) => Tolerance::Exact,
        "loss" => LOSS,
        _ if name.starts_with("grad.") => Tolerance::Close { rtol: GRADIENT.0, atol: GRADIENT.1 },
        _ => Tolerance::Scaled { rtol: OUTPUT },
    }
}

//! One case: the operation alone, or the pattern fused and unfused.

use warpforge::{Criterion, Shape, Tensor, Tolerance, compare};

use super::Session;
use super::program::Prepared;
use super::timing::{alone, paired};
use crate::cases::{Case, Dtype};
use crate::error::{Error, Result};
use crate::profile::{FusionProfile, FusionRound, Operation};
use crate::verdict::Verdict;

/// How far fused and unfused results may be apart, relative to the largest: roundings differ, operands of narrow contractions
/// are rounded from other values.
fn tolerance(dtype: Dtype) -> f64 {
    match dtype.name() {
        "f32" => 1e-4,
        "tf32" | "f16" => 1e-2,
        _ => 5e-2,
    }
}

/// Measures a case unless it was before.
pub(super) fn measure(session: &mut Session<'_>, case: &Case, round: usize) -> Result<()> {
    let outcome = match case.pattern {
        Some(pattern) => fusion(session, case, pattern, round),
        None => operation(session, case),
    };
    match outcome {
        // A type or an operation that the device has no kernel for is no failure of the others.
        Err(Error::Model(error)) => {
            let reason = error.to_string();
            session.skip(format!("{}: {}", case.label(), reason.lines().next().unwrap_or_default()));
            Ok(())
        }
        other => other,
    }
}

fn operation(session: &mut Session<'_>, case: &Case) -> Result<()> {
    let threads = session.settings.thread_count();
    let is_known = |known: &Operation| {
        known.op == case.op
            && known.shape == case.shape
            && known.dtype == case.dtype.name()
            && known.device == session.device
            && known.threads == threads
    };
    if session.profile.operations.iter().any(is_known) {
        return Ok(());
    }
    let prepared = Prepared::new(session.settings, case, false)?;
    let timed = session.steadily(|session| alone(session, &mut prepared.clock()?))?;
    session.profile.operations.push(Operation {
        op: case.op.to_owned(),
        dtype: case.dtype.name().to_owned(),
        shape: case.shape.clone(),
        device: session.device.clone(),
        threads,
        flops: prepared.cost.flops,
        bytes: prepared.cost.bytes,
        ms: timed.seconds * 1e3,
        ci: [timed.low * 1e3, timed.high * 1e3],
        efficiency: 0.0,
    });
    Ok(())
}

fn fusion(session: &mut Session<'_>, case: &Case, pattern: &str, round: usize) -> Result<()> {
    let threads = session.settings.thread_count();
    let is_known = |known: &FusionProfile| {
        known.fusion_pattern == pattern
            && known.input_shape == case.shape
            && known.dtype == case.dtype.name()
            && known.device == session.device
            && known.threads == threads
    };
    let known = session.profile.fusion_profiles.iter().position(is_known);
    if known.is_some_and(|at| session.profile.fusion_profiles[at].rounds.len() > round) {
        return Ok(());
    }
    let fused = Prepared::new(session.settings, case, false)?;
    let unfused = Prepared::new(session.settings, case, true)?;
    if known.is_none() {
        same(case, &fused, &unfused)?;
    }
    let measured = session.steadily(|session| paired(session, &mut fused.clock()?, &mut unfused.clock()?))?;
    let at = known.unwrap_or_else(|| {
        let new = begun(session, case, pattern, &fused, &unfused);
        session.profile.fusion_profiles.push(new);
        session.profile.fusion_profiles.len() - 1
    });
    let entry = &mut session.profile.fusion_profiles[at];
    entry.rounds.push(measured);
    summarise(entry);
    Ok(())
}

/// Compares the last results of the two.
fn same(case: &Case, fused: &Prepared, unfused: &Prepared) -> Result<()> {
    let last = |prepared: &Prepared| -> Result<Option<Tensor>> {
        Ok(prepared.outputs()?.iter().last().map(|(_, tensor)| tensor.clone()))
    };
    let (Some(ours), Some(theirs)) = (last(fused)?, last(unfused)?) else { return Ok(()) };
    let criterion = Criterion::new(Tolerance::Scaled { rtol: tolerance(case.dtype) });
    let report = compare(&ends(&ours)?, &ends(&theirs)?, criterion)?;
    if report.passed() {
        return Ok(());
    }
    let reason = format!("{} of {} elements are too far apart", report.mismatches, report.count);
    Err(Error::Mismatch { case: case.label(), reason })
}

/// The first and the last elements of a tensor, as many as are compared in no time.
fn ends(tensor: &Tensor) -> Result<Tensor> {
    const MOST: usize = 1 << 17;
    let width = tensor.element_type().byte_width();
    let bytes = tensor.bytes();
    let part = (bytes.len() / 2 / width).min(MOST) * width;
    let both = [&bytes[..part], &bytes[bytes.len() - part..]].concat();
    let shape = Shape::new(vec![both.len() / width])?;
    Ok(Tensor::from_bytes(tensor.element_type(), shape, &both)?)
}

fn begun(
    session: &Session<'_>,
    case: &Case,
    pattern: &str,
    fused: &Prepared,
    unfused: &Prepared,
) -> FusionProfile {
    let (fused_bytes, unfused_bytes) = (fused.cost.bytes, unfused.cost.bytes);
    FusionProfile {
        fusion_pattern: pattern.to_owned(),
        operators: case.module.operators().into_iter().map(str::to_owned).collect(),
        input_shape: case.shape.clone(),
        dtype: case.dtype.name().to_owned(),
        device: session.device.clone(),
        threads: session.settings.thread_count(),
        unfused_latency_ms: 0.0,
        unfused_gflops: 0.0,
        unfused_bytes,
        unfused_kernels: unfused.kernels,
        fused_latency_ms: 0.0,
        fused_gflops: 0.0,
        fused_bytes,
        fused_kernels: fused.kernels,
        speedup_factor: 1.0,
        speedup_ci: [1.0, 1.0],
        memory_reduction: 1.0 - fused_bytes as f64 / unfused_bytes.max(1) as f64,
        gflops_improvement: 0.0,
        // What was asked for, not what a fold leaves to do.
        flops: unfused.cost.flops,
        extra_params: case.extra.clone(),
        num_trials: 0,
        verdict: Verdict::Inconclusive,
        rounds: Vec::new(),
    }
}

/// The figures of an entry from its rounds; the verdict comes when all patterns are measured.
pub(super) fn summarise(entry: &mut FusionProfile) {
    let count = entry.rounds.len().max(1) as f64;
    let mean = |value: fn(&FusionRound) -> f64| entry.rounds.iter().map(value).sum::<f64>() / count;
    entry.fused_latency_ms = mean(|round| round.fused_ms);
    entry.unfused_latency_ms = mean(|round| round.unfused_ms);
    let gflops = |ms: f64| entry.flops as f64 / ms.max(1e-9) / 1e6;
    (entry.fused_gflops, entry.unfused_gflops) =
        (gflops(entry.fused_latency_ms), gflops(entry.unfused_latency_ms));
    entry.gflops_improvement = entry.fused_gflops / entry.unfused_gflops.max(1e-9) - 1.0;
    entry.speedup_factor = mean(|round| round.log_ratio).exp();
    entry.num_trials = entry.rounds.iter().map(|round| round.samples).sum();
}

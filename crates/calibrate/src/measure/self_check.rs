//! How far the figures can be trusted: the same kernel timed during the calibration, and the width of the intervals.

use warpforge::Precision;
use warpforge_measure::stats;

use super::Session;
use super::program::Prepared;
use super::timing::alone;
use crate::cases::{Dtype, Family, Scale, cases};
use crate::error::{Error, Result};
use crate::profile::{Mode, Operation, Peak, Profile};
use crate::verdict::{Verdict, between_rounds, speedup};

/// A reference kernel that changes by more than this part is a machine that changes.
const MOST_DRIFT: f64 = 0.25;

/// Intervals of fusion that are wider than this part, in the median, say nothing.
const MOST_HALF_WIDTH: f64 = 0.1;

/// A calibration of which more than this part was measured below the machine's pace is one of another machine.
const MOST_DISTURBED: f64 = 0.25;

/// Times the kernel that is timed again and again, in milliseconds.
pub(super) fn reference(session: &mut Session<'_>) -> Result<f64> {
    let scale = if session.settings.scale == Scale::Smoke { Scale::Smoke } else { Scale::Quick };
    let f32 = [Dtype::Float(Precision::Model)];
    let case = cases(scale, &[Family::Linear], &f32, &[]).into_iter().next();
    let case = case.ok_or_else(|| Error::NotPossible("there is no reference kernel".to_owned()))?;
    let prepared = Prepared::new(session.settings, &case, false)?;
    let timed = session.steadily(|session| alone(session, &mut prepared.clock()?))?;
    Ok(timed.seconds * 1e3)
}

/// Gives every pattern its verdict, every operation its part of the roofline, and judges the whole.
pub(super) fn finish(profile: &mut Profile) {
    let between = between_rounds(profile.fusion_profiles.iter().map(|entry| entry.rounds.as_slice()));
    let mut widths = Vec::new();
    for entry in &mut profile.fusion_profiles {
        match speedup(&entry.rounds, between) {
            Some((value, interval)) => {
                entry.speedup_factor = value;
                entry.speedup_ci = [interval.low, interval.high];
                entry.verdict = Verdict::of(interval);
                widths.push(interval.width() / 2.0 / value);
            }
            None => entry.verdict = Verdict::Inconclusive,
        }
    }
    let (peaks, bandwidth) = (&profile.peaks, &profile.bandwidth);
    for operation in &mut profile.operations {
        let dram = bandwidth
            .iter()
            .filter(|found| found.device == operation.device && found.threads == operation.threads)
            .filter(|found| ["DRAM", "HBM"].contains(&found.level.as_str()))
            .map(|found| found.gbps)
            .fold(0.0, f64::max);
        operation.efficiency = efficiency(operation, peaks, dram);
    }
    let check = &mut profile.self_check;
    check.drift = drift(&check.reference_ms);
    check.median_half_width = stats::median(&widths).unwrap_or(0.0);
    check.patterns = profile.fusion_profiles.len();
    let undecided = |verdict: Verdict| verdict == Verdict::Inconclusive;
    check.inconclusive = profile.fusion_profiles.iter().filter(|entry| undecided(entry.verdict)).count();
    check.disturbances = profile.conditions.warnings();
    let disturbed = check.disturbed as f64 / check.paced.max(1) as f64;
    let noisy =
        check.drift > MOST_DRIFT || check.median_half_width > MOST_HALF_WIDTH || disturbed > MOST_DISTURBED;
    if disturbed > MOST_DISTURBED {
        let (some, all) = (check.disturbed, check.paced);
        check.disturbances.push(format!(
            "{some} of {all} measurements were made while the processor was slower than it was seen to be: other guests of the host \
             take its clock or its execution units; calibrate when they are quiet"
        ));
    }
    if check.drift > MOST_DRIFT {
        let percent = 100.0 * check.drift;
        check.disturbances.push(format!(
            "the reference kernel was up to {percent:.0} % off its own median during the calibration; run on a machine with \
             nothing else to do"
        ));
    }
    if check.median_half_width > MOST_HALF_WIDTH {
        let percent = 100.0 * check.median_half_width;
        check.disturbances.push(format!(
            "runs of the same kernels differ so much that speedups are known to {percent:.0} % in the median; run on a machine \
             with nothing else to do"
        ));
    }
    check.verdict = if noisy { "INCONCLUSIVE" } else { "PASS" }.to_owned();
}

/// The part of the roofline that an operation reached: the sustained peak where there is one, and main memory.
fn efficiency(operation: &Operation, peaks: &[Peak], dram: f64) -> f64 {
    let own = |peak: &&Peak| {
        peak.device == operation.device && peak.dtype == operation.dtype && peak.threads == operation.threads
    };
    let best = |mode: Mode| {
        peaks.iter().filter(own).filter(|peak| peak.mode == mode).map(|peak| peak.gops).reduce(f64::max)
    };
    let peak = best(Mode::Sustained).or_else(|| best(Mode::Burst));
    let arithmetic = peak.map_or(0.0, |gops| operation.flops as f64 / gops / 1e9);
    let memory = if dram > 0.0 { operation.bytes as f64 / dram / 1e9 } else { 0.0 };
    arithmetic.max(memory) / (operation.ms / 1e3)
}

/// The largest part by which a value differs from the median.
fn drift(values: &[f64]) -> f64 {
    let Some(median) = stats::median(values) else { return 0.0 };
    values.iter().map(|value| (value / median - 1.0).abs()).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::FusionRound;
    use crate::profile::testing::profile;

    #[test]
    fn a_quiet_machine_passes_and_a_noisy_one_does_not() {
        let mut quiet = profile();
        quiet.self_check.reference_ms = vec![1.0, 1.02, 0.99];
        finish(&mut quiet);
        assert_eq!(quiet.self_check.verdict, "PASS");
        assert_eq!((quiet.self_check.patterns, quiet.self_check.inconclusive), (1, 0));
        let mut drifting = profile();
        drifting.self_check.reference_ms = vec![1.0, 1.02, 2.0];
        finish(&mut drifting);
        assert!(drifting.self_check.is_inconclusive());
        assert!(drifting.self_check.disturbances[0].contains("96 % off"), "{:?}", drifting.self_check);
        let mut noisy = profile();
        noisy.fusion_profiles[0].rounds = vec![FusionRound {
            log_ratio: 0.2,
            standard_error: 0.3,
            samples: 7,
            fused_ms: 1.0,
            unfused_ms: 1.2,
        }];
        finish(&mut noisy);
        assert!(noisy.self_check.is_inconclusive());
        assert_eq!(noisy.fusion_profiles[0].verdict, Verdict::Inconclusive);
        assert!(noisy.self_check.disturbances[0].contains("in the median"));
    }

    #[test]
    fn efficiency_is_a_part_of_the_sustained_roofline() {
        let mut found = profile();
        finish(&mut found);
        let efficiency = found.operations[0].efficiency;
        // 50 of 90 GFLOP/s.
        assert!((efficiency - 50.0 / 90.0).abs() < 1e-6, "{efficiency}");
    }
}

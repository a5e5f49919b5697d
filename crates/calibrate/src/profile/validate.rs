//! Whether the numbers of a profile can have been measured.

use super::Profile;

/// The first number that cannot: its place and what it is.
pub(super) fn check(profile: &Profile) -> Result<(), (String, String)> {
    let mut fields: Vec<(String, f64)> = Vec::new();
    let mut note = |place: String, values: &[(&str, f64)]| {
        fields.extend(values.iter().map(|(name, value)| (format!("{place}.{name}"), *value)));
    };
    let theoretical = &profile.theoretical;
    for (name, value) in
        [("peak_gflops", theoretical.peak_gflops), ("peak_bandwidth_gbps", theoretical.peak_bandwidth_gbps)]
    {
        if let Some(value) = value {
            note("theoretical".to_owned(), &[(name, value)]);
        }
    }
    for (at, peak) in profile.peaks.iter().enumerate() {
        let values = [("gops", peak.gops), ("ci_low", peak.ci_low), ("ci_high", peak.ci_high)];
        note(format!("peaks[{at}]"), &values);
        if let Some(pace) = peak.pace {
            note(format!("peaks[{at}]"), &[("pace", pace)]);
        }
    }
    for (at, found) in profile.bandwidth.iter().enumerate() {
        let values = [("gbps", found.gbps), ("ci_low", found.ci_low), ("ci_high", found.ci_high)];
        note(format!("bandwidth[{at}]"), &values);
        if let Some(pace) = found.pace {
            note(format!("bandwidth[{at}]"), &[("pace", pace)]);
        }
    }
    for (at, overhead) in profile.overheads.iter().enumerate() {
        note(format!("overheads[{at}]"), &[("us", overhead.us)]);
    }
    for (at, operation) in profile.operations.iter().enumerate() {
        note(format!("operations[{at}]"), &[("ms", operation.ms), ("ci", operation.ci[0])]);
    }
    for (at, cold) in profile.cold_weights.iter().enumerate() {
        note(format!("cold_weights[{at}]"), &[("warm_ms", cold.warm_ms), ("cold_ms", cold.cold_ms)]);
    }
    for (at, fusion) in profile.fusion_profiles.iter().enumerate() {
        let values = [
            ("unfused_latency_ms", fusion.unfused_latency_ms),
            ("fused_latency_ms", fusion.fused_latency_ms),
            ("speedup_factor", fusion.speedup_factor),
        ];
        note(format!("fusion_profiles[{at}]"), &values);
    }
    if let Some(pace) = profile.self_check.pace_gflops {
        note("self_check".to_owned(), &[("pace_gflops", pace)]);
    }
    match fields.into_iter().find(|(_, value)| !(value.is_finite() && *value > 0.0)) {
        Some((place, value)) => Err((place, value.to_string())),
        None => Ok(()),
    }
}

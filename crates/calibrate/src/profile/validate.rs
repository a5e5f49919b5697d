//! Whether the numbers of a profile can have been measured.

use super::Profile;

/// The longest dimension, and the most of a shape's product, that sizes are computed from without overflow.
const MOST_SIDE: usize = 1 << 20;
const MOST_ELEMENTS: usize = 1 << 40;

/// The largest window and stride of a convolution.
const MOST_WINDOW: usize = 1 << 6;

/// The most bytes that are gone through.
const MOST_BYTES: u64 = 1 << 48;

/// The first number that cannot: its place and what it is.
pub(super) fn check(profile: &Profile) -> Result<(), (String, String)> {
    numbers(profile)?;
    let shown = |place: String, shape: &[usize]| (place, format!("{shape:?}"));
    for (at, operation) in profile.operations.iter().enumerate() {
        if !is_shape(&operation.shape) {
            return Err(shown(format!("operations[{at}].shape"), &operation.shape));
        }
    }
    for (at, cold) in profile.cold_weights.iter().enumerate() {
        if !is_shape(&cold.shape) {
            return Err(shown(format!("cold_weights[{at}].shape"), &cold.shape));
        }
    }
    for (at, fusion) in profile.fusion_profiles.iter().enumerate() {
        if !is_shape(&fusion.input_shape) {
            return Err(shown(format!("fusion_profiles[{at}].input_shape"), &fusion.input_shape));
        }
    }
    for (at, found) in profile.bandwidth.iter().enumerate() {
        if !(1..=MOST_BYTES).contains(&found.working_set_bytes) {
            return Err((format!("bandwidth[{at}].working_set_bytes"), found.working_set_bytes.to_string()));
        }
        if !(1..=MOST_SIDE).contains(&found.threads) {
            return Err((format!("bandwidth[{at}].threads"), found.threads.to_string()));
        }
    }
    Ok(())
}

/// Whether sizes can be those of something that was measured; eight of them are a convolution's.
fn is_shape(shape: &[usize]) -> bool {
    let fits = |sizes: &[usize]| {
        let product = sizes.iter().try_fold(1usize, |product, &size| product.checked_mul(size));
        !sizes.is_empty()
            && sizes.iter().all(|size| (1..=MOST_SIDE).contains(size))
            && product.is_some_and(|product| product <= MOST_ELEMENTS)
    };
    match *shape {
        [batch, channels, height, width, outputs, window, stride, groups] => {
            fits(&[batch, channels, height, width, outputs])
                && height == width
                && [window, stride].iter().all(|size| (1..=MOST_WINDOW).contains(size))
                && (1..=channels).contains(&groups)
        }
        _ => fits(shape),
    }
}

/// The first number that is not above zero.
fn numbers(profile: &Profile) -> Result<(), (String, String)> {
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
        note(
            format!("operations[{at}]"),
            &[("ms", operation.ms), ("ci[0]", operation.ci[0]), ("ci[1]", operation.ci[1])],
        );
    }
    for (at, cold) in profile.cold_weights.iter().enumerate() {
        note(format!("cold_weights[{at}]"), &[("warm_ms", cold.warm_ms), ("cold_ms", cold.cold_ms)]);
    }
    for (at, fusion) in profile.fusion_profiles.iter().enumerate() {
        let values = [
            ("unfused_latency_ms", fusion.unfused_latency_ms),
            ("fused_latency_ms", fusion.fused_latency_ms),
            ("speedup_factor", fusion.speedup_factor),
            ("speedup_ci[0]", fusion.speedup_ci[0]),
            ("speedup_ci[1]", fusion.speedup_ci[1]),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::testing::profile;

    fn place(change: impl FnOnce(&mut Profile)) -> String {
        let mut changed = profile();
        change(&mut changed);
        check(&changed).unwrap_err().0
    }

    #[test]
    fn numbers_and_shapes_that_nothing_has_are_found_by_their_place() {
        check(&profile()).unwrap();
        assert_eq!(place(|profile| profile.operations[1].ci[1] = 0.0), "operations[1].ci[1]");
        let ci = place(|profile| profile.fusion_profiles[0].speedup_ci[1] = f64::INFINITY);
        assert_eq!(ci, "fusion_profiles[0].speedup_ci[1]");
        let shapes: [&[usize]; 6] = [
            &[],
            &[1, 0, 3],
            &[usize::MAX, 2, 2],
            &[1, 8, 28, 28, 8, 3, 0, 1],
            &[1, 8, 28, 28, 8, 3, 1, 0],
            &[1, 8, 28, 14, 8, 3, 1, 1],
        ];
        for shape in shapes {
            let found = place(|profile| profile.operations[0].shape = shape.to_vec());
            assert_eq!(found, "operations[0].shape", "{shape:?}");
        }
        let shape = vec![1, 8, 28, 28, 8, 3, 1, 16];
        assert_eq!(
            place(|profile| profile.fusion_profiles[0].input_shape = shape),
            "fusion_profiles[0].input_shape"
        );
        assert_eq!(
            place(|profile| profile.bandwidth[0].working_set_bytes = u64::MAX),
            "bandwidth[0].working_set_bytes"
        );
        assert_eq!(place(|profile| profile.bandwidth[0].threads = 0), "bandwidth[0].threads");
    }

    #[test]
    fn every_size_of_the_sweep_is_one() {
        use crate::cases::{Family, Scale, cases};
        use warpforge::Precision;
        let f32 = [crate::cases::Dtype::Float(Precision::Model)];
        for case in cases(Scale::Full, &Family::NAMED, &f32, &[]) {
            assert!(is_shape(&case.shape), "{}", case.label());
        }
    }
}

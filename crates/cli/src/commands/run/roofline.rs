//! How near the kernels of a profile come to what the machine can do, and what bounds them.

use warpforge::Precision;
use warpforge::profile::{Event, Profile};
use warpforge_calibrate::{Bound, CostModel};
use warpforge_probes::limits::Limits;

use super::kernels::detail;
use crate::term;

/// Says of each kernel what bounds it and what part of that it reached: by the machine's profile, or else by the limits of so many
/// threads, measured now.
pub(super) fn compare(profile: &mut Profile, threads: usize, machine: Option<(&CostModel, Precision)>) {
    if let Some((cost, precision)) = machine {
        return by_machine(profile, cost, precision);
    }
    if !profile.events.iter().any(|event| work(event).is_some()) {
        return;
    }
    term::remark(&format!("measuring the limits of {threads} threads for the roofline"));
    match Limits::measure(threads) {
        Ok(limits) => note(profile, &limits),
        Err(error) => crate::term::tell!("warpt: the profile lacks the roofline: {error}"),
    }
}

fn by_machine(profile: &mut Profile, cost: &CostModel, precision: Precision) {
    let usual = match precision {
        Precision::Model => "f32".to_owned(),
        other => other.to_string(),
    };
    for event in profile.events.iter_mut().filter(|event| event.category == "kernel") {
        let count = |name: &str| detail(event, name).and_then(|text| text.parse::<u64>().ok());
        let (Some(flops), Some(bytes)) = (count("flop"), count("bytes")) else { continue };
        let (bound, least) = cost.bound(detail(event, "arithmetic").unwrap_or(&usual), flops, bytes);
        let seconds = event.duration.as_secs_f64();
        if seconds > 0.0 {
            event.details.push(("of_roofline", format!("{:.3}", least / seconds)));
        }
        match bound {
            Bound::Arithmetic(dtype) => {
                event.details.extend([("bound_by", "arithmetic".to_owned()), ("bound_type", dtype)]);
            }
            Bound::Memory(level) => {
                event.details.extend([("bound_by", "memory".to_owned()), ("bound_level", level)]);
            }
            Bound::Overhead => event.details.push(("bound_by", "overhead".to_owned())),
        }
    }
}

fn note(profile: &mut Profile, limits: &Limits) {
    for event in &mut profile.events {
        let Some((dtype, operations, bytes)) = work(event) else { continue };
        let seconds = event.duration.as_secs_f64();
        let arithmetic = limits.of(dtype).map_or(0.0, |rate| operations / rate);
        let bound = if arithmetic > bytes / limits.bytes { "arithmetic" } else { "memory" };
        if let Some(fraction) = limits.fraction(dtype, operations, bytes, seconds) {
            event.details.push(("of_roofline", format!("{fraction:.3}")));
            event.details.push(("bound_by", bound.to_owned()));
        }
    }
}

/// What a kernel of the processor does: in which numbers, operations, bytes.
fn work(event: &Event) -> Option<(&str, f64, f64)> {
    let number = |name: &str| detail(event, name)?.parse::<f64>().ok();
    Some((detail(event, "arithmetic")?, number("flop")?, number("bytes")?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use warpforge_probes::cpu::Dtype;

    #[test]
    fn kernels_are_compared_and_tiles_are_not() {
        let event = |details: Vec<(&'static str, String)>| Event {
            name: "k".to_owned(),
            category: "kernel",
            track: 0,
            start: Duration::ZERO,
            duration: Duration::from_secs(2),
            details,
        };
        let work = |flop: &str, bytes: &str| {
            let pairs = [("arithmetic", "f32"), ("flop", flop), ("bytes", bytes)];
            event(pairs.map(|(name, text)| (name, text.to_owned())).to_vec())
        };
        let mut profile = Profile::default();
        profile.push(work("100", "1"));
        profile.push(work("0", "5"));
        profile.push(event(vec![("tile", "3".to_owned())]));
        note(&mut profile, &Limits { operations: vec![(Dtype::F32, 100.0)], bytes: 10.0 });
        let found: Vec<_> = profile.events.iter().map(|event| detail(event, "of_roofline")).collect();
        assert_eq!(found, [Some("0.500"), Some("0.250"), None]);
        let bounds: Vec<_> = profile.events.iter().map(|event| detail(event, "bound_by")).collect();
        assert_eq!(bounds, [Some("arithmetic"), Some("memory"), None]);
    }
}

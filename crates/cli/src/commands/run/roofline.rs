//! How near the kernels of a profile come to what the processor can do.

use warpforge::profile::{Event, Profile};
use warpforge_probes::limits::Limits;

use super::kernels::detail;
use crate::term;

/// Measures the limits of so many threads and says of each kernel what part of them it reached.
pub(super) fn compare(profile: &mut Profile, threads: usize) {
    if !profile.events.iter().any(|event| work(event).is_some()) {
        return;
    }
    term::remark(&format!("measuring the limits of {threads} threads for the roofline"));
    match Limits::measure(threads) {
        Ok(limits) => note(profile, &limits),
        Err(error) => crate::term::tell!("warpt: the profile lacks the roofline: {error}"),
    }
}

fn note(profile: &mut Profile, limits: &Limits) {
    for event in &mut profile.events {
        let Some((dtype, operations, bytes)) = work(event) else { continue };
        let seconds = event.duration.as_secs_f64();
        if let Some(fraction) = limits.fraction(dtype, operations, bytes, seconds) {
            event.details.push(("of_roofline", format!("{fraction:.3}")));
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
    }
}

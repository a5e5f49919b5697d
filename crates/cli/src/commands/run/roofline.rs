//! How near the kernels of a profile come to what the machine can do, and what bounds them.

use std::collections::HashMap;

use warpforge::profile::{Event, Profile};
use warpforge::{CompileOptions, CompiledModel};
use warpforge_calibrate::{Bound, CostModel};
use warpforge_probes::limits::Limits;

use super::kernels::detail;
use crate::term;

/// The limits of a machine, and what the kernels of a model compute in.
pub(super) struct Roofline {
    cost: CostModel,
    /// By operations and bytes, which are what a kernel reports.
    arithmetic: HashMap<(u64, u64), &'static str>,
}

impl Roofline {
    /// The roofline for a compiled model. A model that cannot be planned by itself, as its shapes are not known, has no types.
    pub(super) fn new(cost: CostModel, compiled: &CompiledModel) -> Self {
        let target = compiled.target();
        let cost = cost.in_precision(target.precision);
        let options = CompileOptions {
            device: target.device,
            tier: Some(target.tier),
            precision: target.precision,
            threads: target.threads,
            no_fallback: false,
            gradient_checkpointing: target.gradient_checkpointing,
            machine: target.machine.clone(),
        };
        let arithmetic =
            compiled.model().plan(&options).map(|plan| cost.arithmetic(&plan)).unwrap_or_default();
        Self { cost, arithmetic }
    }

    /// What a kernel computes in: what it says itself, or else its cluster; f32 where that is not known, as loops do.
    fn arithmetic<'e>(&self, event: &'e Event, work: (u64, u64)) -> &'e str {
        detail(event, "arithmetic").unwrap_or_else(|| self.arithmetic.get(&work).copied().unwrap_or("f32"))
    }
}

/// Says of each kernel what bounds it and what part of that it reached: by the machine's profile, or else by the limits of so many
/// threads, measured now.
pub(super) fn compare(profile: &mut Profile, threads: usize, machine: Option<&Roofline>) {
    if let Some(machine) = machine
        && by_machine(profile, threads, machine)
    {
        return;
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

/// Notes what bounds each kernel by the machine's profile; false where it has no limits of so many threads.
fn by_machine(profile: &mut Profile, threads: usize, machine: &Roofline) -> bool {
    for event in profile.events.iter_mut().filter(|event| event.category == "kernel") {
        let count = |name: &str| detail(event, name).and_then(|text| text.parse::<u64>().ok());
        let (Some(flops), Some(bytes)) = (count("flop"), count("bytes")) else { continue };
        let dtype = machine.arithmetic(event, (flops, bytes));
        let Some((bound, least)) = machine.cost.bound(threads, dtype, flops, bytes) else { return false };
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
    true
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

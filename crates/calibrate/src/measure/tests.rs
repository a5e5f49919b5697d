use std::cell::RefCell;
use std::collections::HashMap;

use super::*;
use crate::profile::FusionProfile;

/// Stops a calibration at one of the times that it asks, counted in each step.
#[derive(Default)]
struct Interruption {
    at: Option<(String, usize)>,
    step: String,
    asked: RefCell<HashMap<String, usize>>,
    ended: usize,
}

impl Observer for Interruption {
    fn begins(&mut self, step: &Step) {
        self.step.clone_from(&step.what);
    }

    fn measured(&mut self, _: &Profile) -> std::result::Result<(), ProfileError> {
        Ok(())
    }

    fn ended(&mut self, _: &Profile) -> std::result::Result<(), ProfileError> {
        self.ended += 1;
        Ok(())
    }

    fn stopped(&self) -> bool {
        let mut asked = self.asked.borrow_mut();
        let count = asked.entry(self.step.clone()).or_default();
        *count += 1;
        self.at.as_ref().is_some_and(|(step, at)| *step == self.step && *count >= *at)
    }
}

fn settings() -> Settings {
    let families = vec![Family::Linear];
    Settings { families, ..Settings::new(Device::Cpu, Scale::Smoke) }
}

/// What was measured, without the figures; the names of a step's entries begin alike.
fn entries(profile: &Profile) -> Vec<String> {
    let peaks = profile
        .peaks
        .iter()
        .map(|peak| format!("peaks {} {} {} {:?}", peak.dtype, peak.isa, peak.threads, peak.mode));
    let bandwidth = profile.bandwidth.iter().map(|found| {
        format!("bandwidth {} {} {} {}", found.level, found.access, found.stores, found.threads)
    });
    let overheads =
        profile.overheads.iter().map(|known| format!("overheads {} {}", known.what, known.threads));
    let operations = profile
        .operations
        .iter()
        .map(|known| format!("{} {:?} {} {}", known.op, known.shape, known.dtype, known.threads));
    let cold = profile
        .cold_weights
        .iter()
        .map(|cold| format!("cold weights {:?} {} {}", cold.shape, cold.dtype, cold.threads));
    let fusions = profile.fusion_profiles.iter().map(|fusion| {
        let FusionProfile { fusion_pattern, input_shape, dtype, threads, rounds, .. } = fusion;
        format!("{fusion_pattern} {input_shape:?} {dtype} {threads} {}", rounds.len())
    });
    let mut all: Vec<String> =
        peaks.chain(bandwidth).chain(overheads).chain(operations).chain(cold).chain(fusions).collect();
    all.sort_unstable();
    all
}

#[test]
fn a_calibration_interrupted_in_the_middle_of_each_step_goes_on_to_the_same_entries() {
    let mut undisturbed = Interruption::default();
    let whole = calibrate(&settings(), None, &mut undisturbed).unwrap();
    assert!(whole.complete && undisturbed.ended == 1);
    let wanted = entries(&whole);
    let asked = undisturbed.asked.into_inner();

    let mut begun = None;
    for step in ["overheads", "bandwidth", "peaks", "Linear_Bias 8x64x64 f32", "cold weights"] {
        let at = Some((step.to_owned(), asked[step].div_ceil(2)));
        let mut interruption = Interruption { at, ..Interruption::default() };
        let part = calibrate(&settings(), begun, &mut interruption).unwrap();
        assert!(!part.complete && interruption.ended == 1, "{step}");
        let name = step.split(' ').next().unwrap_or(step);
        let count = |all: &[String]| all.iter().filter(|entry| entry.starts_with(name)).count();
        assert!(count(&entries(&part)) < count(&wanted), "{step}: nothing is missing");
        begun = Some(part);
    }
    let resumed = calibrate(&settings(), begun, &mut Interruption::default()).unwrap();
    assert!(resumed.complete);
    assert_eq!(entries(&resumed), wanted);
}

#[test]
fn what_was_said_of_the_machine_is_kept_unless_it_is_said_again() {
    let here = machine("cpu", Some("mine"));
    let known = Theoretical { peak_gflops: Some(100.0), peak_bandwidth_gbps: Some(20.0) };
    let begun = Profile { machine: here.clone(), theoretical: known, ..crate::profile::testing::profile() };
    let quick = Settings::new(Device::Cpu, Scale::Quick);
    let kept = resumed(&quick, begun.clone(), &here).unwrap();
    assert_eq!((kept.theoretical, kept.machine.hardware_name.as_str()), (known, "mine"));
    let again = Settings {
        hardware_name: Some("ours".to_owned()),
        theoretical: Theoretical { peak_gflops: Some(90.0), peak_bandwidth_gbps: None },
        ..quick
    };
    let said = resumed(&again, begun, &here).unwrap();
    assert_eq!(said.machine.hardware_name, "ours");
    assert_eq!(said.theoretical, Theoretical { peak_gflops: Some(90.0), peak_bandwidth_gbps: Some(20.0) });
}

//! What the machine was doing while a benchmark ran, and what a reader should know about it.

mod watch;

use serde::{Deserialize, Serialize};

pub use watch::ConditionsWatch;

/// More of all cores than this taken by other programs disturbs a measurement.
const FOREIGN_LIMIT_PERCENT: f64 = 5.0;
/// More than this stolen by the hypervisor disturbs a measurement.
const STEAL_LIMIT_PERCENT: f64 = 2.0;

/// The state of the machine during a run. What the machine does not report is null.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Conditions {
    /// Load average over one minute when the benchmark began.
    pub load_average_1m: Option<f64>,
    /// CPU time that other programs took, as a share of all cores.
    pub foreign_cpu_percent: Option<f64>,
    /// CPU time that the hypervisor gave to other virtual machines, as a share of all cores.
    pub steal_percent: Option<f64>,
    /// The lowest clock seen on a core that was working; an idle core's says nothing about the run.
    pub min_mhz: Option<f64>,
    /// The highest clock seen on a core that was working.
    pub max_mhz: Option<f64>,
    /// Times the firmware lowered the clock for heat or power during the run.
    pub throttle_events: Option<u64>,
    /// The hottest sensor of the processor.
    pub max_temperature_celsius: Option<f64>,
    /// The frequency governor in force, such as `performance`.
    pub governor: Option<String>,
}

impl Conditions {
    /// What may have disturbed the measurement, and what to do about it; empty when nothing is known to have.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let foreign = self.foreign_cpu_percent.filter(|&percent| percent > FOREIGN_LIMIT_PERCENT).map(|percent| {
            format!("other programs took {percent:.1}% of the processor during the run; stop them and run again")
        });
        let steal = self.steal_percent.filter(|&percent| percent > STEAL_LIMIT_PERCENT).map(|percent| {
            format!(
                "the hypervisor gave {percent:.1}% of the processor to other guests; run on a machine with cores of its own"
            )
        });
        let throttled = self.throttle_events.filter(|&events| events > 0).map(|events| {
            let times = if events == 1 { "once".to_owned() } else { format!("{events} times") };
            format!("the processor lowered its clock {times} for heat or power; improve the cooling or raise the power limit")
        });
        let governor =
            self.governor.as_deref().filter(|name| name.split(',').any(|name| name == "powersave")).map(
                |_| {
                    "the frequency governor is powersave; set it to performance, for example with \
             `cpupower frequency-set --governor performance`"
                        .to_owned()
                },
            );
        [foreign, steal, throttled, governor].into_iter().flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quiet_and_unknown_conditions_give_no_warning() {
        assert!(Conditions::default().warnings().is_empty());
        let quiet = Conditions {
            foreign_cpu_percent: Some(5.0),
            steal_percent: Some(2.0),
            throttle_events: Some(0),
            governor: Some("performance,schedutil".to_owned()),
            ..Conditions::default()
        };
        assert!(quiet.warnings().is_empty());
    }

    #[test]
    fn each_disturbance_is_named_with_its_size_and_a_remedy() {
        let disturbed = Conditions {
            foreign_cpu_percent: Some(12.34),
            steal_percent: Some(2.1),
            throttle_events: Some(3),
            governor: Some("performance,powersave".to_owned()),
            ..Conditions::default()
        };
        let warnings = disturbed.warnings();
        let expected = ["took 12.3% of", "gave 2.1% of", "clock 3 times", "governor is powersave"];
        assert_eq!(warnings.len(), expected.len());
        for (warning, part) in warnings.iter().zip(expected) {
            assert!(warning.contains(part) && warning.contains(';'), "{warning}");
        }
    }
}

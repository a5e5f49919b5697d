//! What the machine was doing while a benchmark ran.

use serde::{Deserialize, Serialize};

/// The state of the machine during a run. What the machine does not tell is null.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Conditions {
    /// Load average over one minute when the benchmark began.
    pub load_average_1m: Option<f64>,
    /// CPU time that other programs took, as a share of all cores.
    pub foreign_cpu_percent: Option<f64>,
    /// CPU time that the hypervisor gave to other guests, as a share of all cores.
    pub steal_percent: Option<f64>,
    /// The lowest core clock seen.
    pub min_mhz: Option<f64>,
    /// The highest core clock seen.
    pub max_mhz: Option<f64>,
    /// Times the firmware lowered the clock for heat or power during the run.
    pub throttle_events: Option<u64>,
    /// The hottest sensor of the processor.
    pub max_temperature_celsius: Option<f64>,
    /// The frequency governor in force, such as `performance`.
    pub governor: Option<String>,
}

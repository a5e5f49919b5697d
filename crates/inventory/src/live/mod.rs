//! What the machine is doing right now, sampled.
//!
//! [`Sampler`] takes one [`TimelineRecord`] at a time, [`Watch`] collects them in the background, and
//! [`ConditionsWatch`] sums up the state of the machine while a benchmark runs. Each source has a file of its own and
//! reads below a root folder, `/` on a real machine.

mod clocks;
mod conditions;
mod counters;
mod cpu;
mod disk;
mod energy;
mod gpu;
mod memory;
mod network;
mod power;
mod processes;
mod record;
mod sampler;
mod temperature;
#[cfg(test)]
mod testing;
mod throttle;
mod ticker;
mod watch;

pub use conditions::{Conditions, ConditionsWatch};
pub use energy::{Attribution, Energy, EnergyMeter, EnergyMethod, OwnShare, ProcessEnergy, SourceEnergy};
pub use gpu::{GpuProcesses, GpuSampler};
pub use processes::{ProcessSampler, ProcessUsage};
pub use record::{CoreUsage, DiskUsage, GpuUsage, NetworkUsage, PowerUsage, Temperature, TimelineRecord};
pub use sampler::Sampler;
pub use watch::Watch;

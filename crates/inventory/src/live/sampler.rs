//! One sample of everything.

use std::path::{Path, PathBuf};
use std::time::Instant;

use jiff::{Timestamp, Unit};

use super::clocks::Clocks;
use super::counters::CounterSampler;
use super::cpu::{CpuTimes, Ticks, load_average};
use super::disk::{self, DiskCounters};
use super::gpu::GpuSampler;
use super::memory::Memory;
use super::network::{self, NetworkCounters};
use super::power::PowerSampler;
use super::record::{CoreUsage, DiskUsage, NetworkUsage, TimelineRecord, percent, rounded};
use super::temperature::Sensors;
use super::throttle::ThrottleCounters;

/// Takes samples of what the machine is doing.
///
/// Rates and utilisations are differences of counters. Making a sampler reads the counters once, so the first sample
/// covers the time since then, and every later one the time since the sample before it. If no time the kernel could
/// count has passed, they are null.
pub struct Sampler {
    root: PathBuf,
    last: Instant,
    times: Option<CpuTimes>,
    clocks: Clocks,
    throttle: ThrottleCounters,
    disks: CounterSampler<DiskCounters, DiskUsage>,
    networks: CounterSampler<NetworkCounters, NetworkUsage>,
    power: PowerSampler,
    sensors: Sensors,
    gpus: GpuSampler,
}

impl Sampler {
    /// A sampler of this machine. It never fails: what the machine does not report is null in every sample.
    #[must_use]
    #[allow(clippy::new_without_default, reason = "it looks at the machine, a default should not")]
    pub fn new() -> Self {
        let root = Path::new("/");
        Self::with(root, GpuSampler::new(root))
    }

    /// A sampler of the machine whose `/proc` and `/sys` are below this folder: `/`, or a made-up one, which has no
    /// libraries to ask.
    #[must_use]
    pub fn at(root: &Path) -> Self {
        if root == Path::new("/") {
            Self::new()
        } else {
            Self::with(root, GpuSampler::without_libraries(root))
        }
    }

    fn with(root: &Path, gpus: GpuSampler) -> Self {
        Self {
            root: root.to_owned(),
            clocks: Clocks::new(root),
            throttle: ThrottleCounters::new(root),
            sensors: Sensors::new(root),
            gpus,
            times: CpuTimes::read(root),
            disks: CounterSampler::new(root, disk::read, disk::usage),
            networks: CounterSampler::new(root, network::read, network::usage),
            power: PowerSampler::new(root),
            last: Instant::now(),
        }
    }

    /// Takes a sample.
    pub fn sample(&mut self) -> TimelineRecord {
        let now = Instant::now();
        let seconds = now.duration_since(self.last).as_secs_f64();
        self.last = now;
        let times = CpuTimes::read(&self.root);
        let spent = times.as_ref().zip(self.times.as_ref()).map(|(now, before)| now.all.since(before.all));
        let memory = Memory::read(&self.root);
        let record = TimelineRecord {
            timestamp: timestamp(),
            cpu_utilization_percent: spent.and_then(Ticks::busy_percent),
            total_memory_bytes: memory.total,
            memory_utilization_percent: memory
                .used()
                .zip(memory.total)
                .and_then(|(used, total)| percent(used as f64, total as f64)),
            gpu_usage: self.gpus.sample(),
            interval_seconds: Some((seconds * 1000.0).round() / 1000.0),
            cpu_steal_percent: spent.and_then(Ticks::steal_percent),
            load_average: load_average(&self.root),
            throttle_events: self.throttle.read(),
            cores: times.as_ref().map(|times| self.cores(times)).unwrap_or_default(),
            memory_available_bytes: memory.available,
            memory_used_bytes: memory.used(),
            swap_total_bytes: memory.swap_total,
            swap_used_bytes: memory.swap_used(),
            disks: self.disks.sample(seconds),
            networks: self.networks.sample(seconds),
            power: self.power.sample(seconds),
            temperatures: self.sensors.read(),
        };
        self.times = times;
        record
    }

    fn cores(&self, now: &CpuTimes) -> Vec<CoreUsage> {
        let indices: Vec<u32> = now.cores.iter().map(|(index, _)| *index).collect();
        let clocks = self.clocks.read(&indices);
        let before = |index| self.times.as_ref().and_then(|times| times.core(index));
        let usage = now.cores.iter().map(|&(index, ticks)| CoreUsage {
            index,
            utilization_percent: before(index).and_then(|before| ticks.since(before).busy_percent()),
            mhz: clocks.get(&index).copied(),
        });
        usage.collect()
    }
}

/// Now, to the millisecond: finer digits would say nothing.
fn timestamp() -> Timestamp {
    let now = Timestamp::now();
    now.round(Unit::Millisecond).unwrap_or(now)
}

/// The rate between two readings of a counter; a counter that has gone down was reset and is ignored.
pub(crate) fn rate(before: Option<u64>, now: u64, seconds: f64) -> Option<f64> {
    let difference = now.checked_sub(before?)?;
    (seconds > 0.0).then(|| rounded(difference as f64 / seconds))
}

#[cfg(test)]
mod tests {
    use super::super::testing::FakeRoot;
    use super::*;

    fn sampler(root: &FakeRoot) -> Sampler {
        Sampler::with(root.path(), GpuSampler::without_libraries(root.path()))
    }

    #[test]
    fn a_machine_that_tells_nothing_gives_nulls() {
        let root = FakeRoot::new();
        let record = sampler(&root).sample();
        let expected = TimelineRecord {
            timestamp: record.timestamp,
            interval_seconds: record.interval_seconds,
            ..TimelineRecord::default()
        };
        assert_eq!(record, expected);
    }

    #[test]
    fn the_first_sample_covers_the_time_since_the_sampler_was_made() {
        let root = FakeRoot::new();
        root.write("proc/stat", "cpu 0 0 0 0 0 0 0 0\ncpu0 0 0 0 0\ncpu1 0 0 0 0\n");
        root.write("proc/cpuinfo", "processor: 0\ncpu MHz: 2000\n\nprocessor: 1\ncpu MHz: 3000\n");
        let mut sampler = sampler(&root);
        root.write("proc/stat", "cpu 60 0 0 120 0 0 0 20\ncpu0 50 0 0 50\ncpu1 10 0 0 90\n");
        let record = sampler.sample();
        assert_eq!(record.cpu_utilization_percent, Some(30.0));
        assert_eq!(record.cpu_steal_percent, Some(10.0));
        let cores: Vec<_> =
            record.cores.iter().map(|core| (core.index, core.utilization_percent, core.mhz)).collect();
        assert_eq!(cores, [(0, Some(50.0), Some(2000.0)), (1, Some(10.0), Some(3000.0))]);
        assert_eq!(sampler.sample().cpu_utilization_percent, None, "the counters have not moved");
    }

    #[test]
    fn this_machine_has_cores_and_memory() {
        let record = Sampler::new().sample();
        assert!(!record.cores.is_empty());
        assert!(record.total_memory_bytes.is_some_and(|bytes| bytes > 0));
        assert!(record.memory_available_bytes <= record.total_memory_bytes);
    }
}

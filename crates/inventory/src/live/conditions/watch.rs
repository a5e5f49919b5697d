//! Watching the machine beside a benchmark, cheaply enough not to be one of the disturbances.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::Conditions;
use crate::live::clocks::{Clocks, governor};
use crate::live::cpu::{CpuTimes, Ticks, load_average, own_ticks};
use crate::live::record::percent;
use crate::live::temperature::Sensors;
use crate::live::throttle::ThrottleCounters;
use crate::live::ticker::Ticker;

const INTERVAL: Duration = Duration::from_millis(250);

/// Temperatures change slowly, so only every so many looks include them.
const LOOKS_PER_TEMPERATURE: u64 = 4;

/// Less time than this, in ticks of all cores together, is too coarsely counted to share out.
const LEAST_TICKS: u64 = 50;

/// Watches while a benchmark runs in child processes of this one.
///
/// The processor time of this process and of the children it has waited for counts as the benchmark's own; so call
/// [`finish`](Self::finish) after the child was waited for.
#[derive(Debug)]
pub struct ConditionsWatch {
    root: PathBuf,
    before: Counters,
    load_average_1m: Option<f64>,
    throttle: ThrottleCounters,
    observer: Ticker<Observer>,
}

impl ConditionsWatch {
    /// Starts to watch.
    ///
    /// # Errors
    /// If the system has no thread to spare.
    pub fn start() -> io::Result<Self> {
        Self::start_at(Path::new("/"))
    }

    fn start_at(root: &Path) -> io::Result<Self> {
        let throttle = ThrottleCounters::new(root);
        let observer = Ticker::start("warpt-conditions", INTERVAL, Observer::new(root), Observer::look)?;
        Ok(Self {
            before: Counters::read(root, &throttle),
            load_average_1m: load_average(root).map(|[one_minute, ..]| one_minute),
            root: root.to_owned(),
            throttle,
            observer,
        })
    }

    /// Stops watching and sums up.
    #[must_use]
    pub fn finish(self) -> Conditions {
        let after = Counters::read(&self.root, &self.throttle);
        let mut observer = self.observer.stop();
        observer.look();
        let spent = self
            .before
            .times
            .as_ref()
            .zip(after.times.as_ref())
            .map(|(before, after)| after.all.since(before.all));
        let spent = spent.filter(|spent| spent.total() >= LEAST_TICKS);
        let own = self.before.own.zip(after.own).map(|(before, after)| after.saturating_sub(before));
        Conditions {
            load_average_1m: self.load_average_1m,
            foreign_cpu_percent: spent.zip(own).and_then(|(spent, own)| {
                percent(spent.busy.saturating_sub(own) as f64, spent.total() as f64)
            }),
            steal_percent: spent.and_then(Ticks::steal_percent),
            min_mhz: observer.min_mhz,
            max_mhz: observer.max_mhz,
            throttle_events: self
                .before
                .throttled
                .zip(after.throttled)
                .map(|(before, after)| after.saturating_sub(before)),
            max_temperature_celsius: observer.max_celsius,
            governor: governor(&self.root),
        }
    }
}

/// What is only compared between the beginning and the end.
#[derive(Debug)]
struct Counters {
    times: Option<CpuTimes>,
    own: Option<u64>,
    throttled: Option<u64>,
}

impl Counters {
    fn read(root: &Path, throttle: &ThrottleCounters) -> Self {
        Self { times: CpuTimes::read(root), own: own_ticks(root), throttled: throttle.read() }
    }
}

/// What has to be looked at again and again.
#[derive(Debug)]
struct Observer {
    root: PathBuf,
    clocks: Clocks,
    sensors: Sensors,
    times: Option<CpuTimes>,
    looks: u64,
    min_mhz: Option<f64>,
    max_mhz: Option<f64>,
    max_celsius: Option<f64>,
}

impl Observer {
    fn new(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
            clocks: Clocks::new(root),
            sensors: Sensors::of_cpu(root),
            times: CpuTimes::read(root),
            looks: 0,
            min_mhz: None,
            max_mhz: None,
            max_celsius: None,
        }
    }

    fn look(&mut self) {
        let times = CpuTimes::read(&self.root);
        for mhz in self.clocks.read(&self.working_cores(times.as_ref())).into_values() {
            self.min_mhz = Some(self.min_mhz.map_or(mhz, |least| least.min(mhz)));
            self.max_mhz = Some(self.max_mhz.map_or(mhz, |most| most.max(mhz)));
        }
        if self.looks.is_multiple_of(LOOKS_PER_TEMPERATURE) {
            self.max_celsius =
                [self.max_celsius, self.sensors.hottest()].into_iter().flatten().reduce(f64::max);
        }
        self.looks += 1;
        self.times = times.or(self.times.take());
    }

    /// The cores that worked at least half of the time since the last look.
    fn working_cores(&self, now: Option<&CpuTimes>) -> Vec<u32> {
        let Some((now, before)) = now.zip(self.times.as_ref()) else { return Vec::new() };
        let share = |index, ticks: Ticks| ticks.since(before.core(index)?).busy_percent();
        let cores =
            now.cores.iter().filter(|&&(index, ticks)| share(index, ticks).is_some_and(|busy| busy >= 50.0));
        cores.map(|(index, _)| *index).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::testing::FakeRoot;

    const OWN: &str = "1 (warpt) S 1 1 1 0 -1 0 0 0 0 0";

    fn write_times(root: &FakeRoot, busy: [u64; 2], idle: [u64; 2], steal: u64, own: u64) {
        let (all_busy, all_idle) = (busy[0] + busy[1], idle[0] + idle[1]);
        root.write(
            "proc/stat",
            &format!(
                "cpu {all_busy} 0 0 {all_idle} 0 0 0 {steal}\ncpu0 {} 0 0 {}\ncpu1 {} 0 0 {}\n",
                busy[0], idle[0], busy[1], idle[1]
            ),
        );
        root.write("proc/self/stat", &format!("{OWN} 0 0 {own} 0 20 0"));
    }

    #[test]
    fn what_is_not_ours_is_foreign() {
        let root = FakeRoot::new();
        let cpus = "sys/devices/system/cpu";
        write_times(&root, [0, 0], [0, 0], 0, 0);
        root.write("proc/loadavg", "0.75 0.5 0.2 1/80 1")
            .write(&format!("{cpus}/cpu0/cpufreq/scaling_cur_freq"), "3000000")
            .write(&format!("{cpus}/cpu1/cpufreq/scaling_cur_freq"), "800000")
            .write(&format!("{cpus}/cpufreq/policy0/scaling_governor"), "powersave")
            .write(&format!("{cpus}/cpu0/thermal_throttle/core_throttle_count"), "5")
            .write("sys/class/hwmon/hwmon0/name", "k10temp")
            .write("sys/class/hwmon/hwmon0/temp1_input", "71500");
        let watch = ConditionsWatch::start_at(root.path()).unwrap();
        write_times(&root, [90, 20], [10, 70], 10, 80);
        root.write(&format!("{cpus}/cpu0/thermal_throttle/core_throttle_count"), "7");
        let conditions = watch.finish();
        assert_eq!(conditions.load_average_1m, Some(0.75));
        assert_eq!(conditions.foreign_cpu_percent, Some(15.0));
        assert_eq!(conditions.steal_percent, Some(5.0));
        assert_eq!((conditions.min_mhz, conditions.max_mhz), (Some(3000.0), Some(3000.0)), "core 1 was idle");
        assert_eq!(conditions.throttle_events, Some(2));
        assert_eq!(conditions.max_temperature_celsius, Some(71.5));
        assert_eq!(conditions.governor.as_deref(), Some("powersave"));
    }

    #[test]
    fn our_own_time_never_makes_foreign_time_negative() {
        let root = FakeRoot::new();
        write_times(&root, [0, 0], [0, 0], 0, 0);
        let watch = ConditionsWatch::start_at(root.path()).unwrap();
        write_times(&root, [50, 0], [50, 100], 0, 60);
        assert_eq!(watch.finish().foreign_cpu_percent, Some(0.0));
    }

    #[test]
    fn too_short_a_time_and_a_silent_machine_are_unknown() {
        let root = FakeRoot::new();
        write_times(&root, [0, 0], [0, 0], 0, 0);
        let watch = ConditionsWatch::start_at(root.path()).unwrap();
        write_times(&root, [5, 0], [5, 10], 0, 5);
        assert_eq!(watch.finish().foreign_cpu_percent, None);
        let silent = FakeRoot::new();
        assert_eq!(ConditionsWatch::start_at(silent.path()).unwrap().finish(), Conditions::default());
    }
}

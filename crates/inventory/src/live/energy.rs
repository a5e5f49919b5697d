//! Energy: what each source of power used over a time, and which part of it was whose.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::cpu::{CpuTimes, own_ticks};
use super::processes::ProcessUsage;
use super::record::{PowerUsage, TimelineRecord, rounded};

/// How the energy of a source is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EnergyMethod {
    /// The machine counts it.
    Counter,
    /// Power was sampled and integrated over time.
    Sampled,
}

/// What one source used.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SourceEnergy {
    /// A power domain such as `package-0/dram`, `system` for the board's meter, `gpu-0`.
    pub source: String,
    /// How its energy is known.
    pub method: EnergyMethod,
    /// What it used; null where a part of the time is not known.
    pub joules: Option<f64>,
    /// The least power sampled.
    pub min_watts: Option<f64>,
    /// The mean over the time: the energy where it is known, divided by the time.
    pub mean_watts: Option<f64>,
    /// The largest power sampled.
    pub max_watts: Option<f64>,
    /// Whether it is a part of the total; a domain inside another one is not.
    pub counted: bool,
    /// Why the energy is not known, where it is not.
    pub reason: Option<String>,
}

/// What a machine used over a time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Energy {
    /// How long.
    pub seconds: f64,
    /// The sum of the sources that count; null where one of them is not known or there is none.
    pub total_joules: Option<f64>,
    /// Why the total is not known, where it is not.
    pub reason: Option<String>,
    /// Each source.
    pub sources: Vec<SourceEnergy>,
}

impl Energy {
    /// The sources that the total is the sum of: what does not report its power is not in it.
    #[must_use]
    pub fn counted(&self) -> Vec<String> {
        self.sources.iter().filter(|source| source.counted).map(|source| source.source.clone()).collect()
    }

    /// What all processor packages and the memory beside them used; `None` where one of them is not known or there is
    /// none.
    #[must_use]
    pub fn processor_joules(&self) -> Option<f64> {
        let of_processors = |source: &&SourceEnergy| match source.source.split_once('/') {
            None => source.source.starts_with("package"),
            Some((_, part)) => part == "dram",
        };
        let mut sources = self.sources.iter().filter(of_processors).peekable();
        sources.peek()?;
        sources.map(|source| source.joules).sum()
    }
}

/// Adds up the energy of a timeline, record by record.
#[derive(Debug, Default)]
pub struct EnergyMeter {
    seconds: f64,
    meters: Vec<Meter>,
}

/// One source over time.
#[derive(Debug)]
struct Meter {
    source: String,
    method: EnergyMethod,
    joules: Option<f64>,
    last_watts: Option<f64>,
    min_watts: Option<f64>,
    max_watts: Option<f64>,
}

impl EnergyMeter {
    /// A meter that has seen nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a record, which must be the next of the same sampler.
    pub fn add(&mut self, record: &TimelineRecord) {
        let seconds = record.interval_seconds.unwrap_or(0.0);
        self.seconds += seconds;
        for domain in &record.power {
            let method = if is_board_meter(domain) { EnergyMethod::Sampled } else { EnergyMethod::Counter };
            let meter = self.meter(&domain.domain, method);
            match method {
                // The sampler adds the counter's differences up, wraps included.
                EnergyMethod::Counter => meter.joules = domain.energy_joules,
                EnergyMethod::Sampled => meter.integrate(domain.watts, seconds),
            }
            meter.see(domain.watts);
        }
        for gpu in &record.gpu_usage {
            let meter = self.meter(&format!("gpu-{}", gpu.index), EnergyMethod::Sampled);
            meter.integrate(gpu.power_watts, seconds);
            meter.see(gpu.power_watts);
        }
    }

    fn meter(&mut self, source: &str, method: EnergyMethod) -> &mut Meter {
        let known = self.meters.iter().position(|meter| meter.source == source);
        let index = known.unwrap_or_else(|| {
            self.meters.push(Meter::new(source, method));
            self.meters.len() - 1
        });
        &mut self.meters[index]
    }

    /// What was used so far.
    #[must_use]
    pub fn energy(&self) -> Energy {
        let names: Vec<&str> = self.meters.iter().map(|meter| meter.source.as_str()).collect();
        let sources: Vec<SourceEnergy> = self
            .meters
            .iter()
            .map(|meter| meter.energy(self.seconds, counts(&meter.source, &names)))
            .collect();
        let mut counted = sources.iter().filter(|source| source.counted).peekable();
        let unknown = sources.iter().find(|source| source.counted && source.joules.is_none());
        let reason = match unknown {
            _ if counted.peek().is_none() => Some(
                "this machine reports no power: no RAPL counters, no board power meter, no GPU that says"
                    .to_owned(),
            ),
            Some(source) => {
                Some(format!("{}: {}", source.source, source.reason.as_deref().unwrap_or("not known")))
            }
            None => None,
        };
        let total = counted.map(|source| source.joules).sum::<Option<f64>>().map(rounded);
        let total_joules = total.filter(|_| reason.is_none());
        Energy { seconds: self.seconds, total_joules, reason, sources }
    }
}

impl Meter {
    fn new(source: &str, method: EnergyMethod) -> Self {
        let joules = Some(0.0);
        Self { source: source.to_owned(), method, joules, last_watts: None, min_watts: None, max_watts: None }
    }

    /// Adds the energy of an interval: the mean of the power at its two ends, or the one that is known. One gap makes
    /// the sum meaningless from there on.
    fn integrate(&mut self, watts: Option<f64>, seconds: f64) {
        let mean = watts.map(|now| self.last_watts.map_or(now, |before| f64::midpoint(before, now)));
        self.joules = self.joules.zip(mean).map(|(sum, watts)| sum + watts * seconds);
        self.last_watts = watts;
    }

    fn see(&mut self, watts: Option<f64>) {
        self.min_watts = [self.min_watts, watts].into_iter().flatten().reduce(f64::min);
        self.max_watts = [self.max_watts, watts].into_iter().flatten().reduce(f64::max);
    }

    fn energy(&self, seconds: f64, counted: bool) -> SourceEnergy {
        let reason = self.joules.is_none().then(|| match (self.method, self.max_watts) {
            (EnergyMethod::Counter, None) => {
                "the counter is there but cannot be read; /sys/class/powercap needs root on most systems"
                    .to_owned()
            }
            (EnergyMethod::Counter, Some(_)) => "the counter could not be read all the time".to_owned(),
            (EnergyMethod::Sampled, None) => "it reports no power".to_owned(),
            (EnergyMethod::Sampled, Some(_)) => "it did not report its power all the time".to_owned(),
        });
        SourceEnergy {
            source: self.source.clone(),
            method: self.method,
            joules: self.joules.map(rounded),
            min_watts: self.min_watts,
            mean_watts: self.joules.filter(|_| seconds > 0.0).map(|joules| rounded(joules / seconds)),
            max_watts: self.max_watts,
            counted,
            reason,
        }
    }
}

/// The board's meter, which has no counter.
fn is_board_meter(domain: &PowerUsage) -> bool {
    domain.domain == "system" || domain.domain.starts_with("system-")
}

/// Whether a source is a part of the total among these sources, so that nothing counts twice: the board's meter
/// measures everything; without one, the platform domain, or else packages and their memory, and GPUs.
fn counts(source: &str, all: &[&str]) -> bool {
    let is_board = |name: &str| name == "system" || name.starts_with("system-");
    if all.iter().any(|name| is_board(name)) {
        return is_board(source);
    }
    if source.starts_with("gpu-") {
        return true;
    }
    if all.contains(&"psys") {
        return source == "psys";
    }
    match source.split_once('/') {
        None => true,
        // What the package counts holds its cores and its uncore, but not the memory.
        Some((_, part)) => part == "dram",
    }
}

/// What a process used, by its share of the processor time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProcessEnergy {
    /// The kernel's identifier of it.
    pub pid: u32,
    /// Its name.
    pub name: String,
    /// Who it runs as.
    pub user: Option<String>,
    /// Its share of the energy of packages and memory.
    pub joules: f64,
    /// That share, of all busy processor time.
    pub share_percent: f64,
}

/// Attributes the energy of the processors to processes, interval by interval, in proportion to the processor time that
/// each of them took. What the processors use when idle goes to those that are busy.
#[derive(Debug, Default)]
pub struct Attribution {
    processes: BTreeMap<u32, ProcessEnergy>,
    joules: f64,
    reason: Option<String>,
}

impl Attribution {
    /// Nothing attributed yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an interval: its record, and the processes with the processor time they took in it.
    pub fn add(&mut self, record: &TimelineRecord, processes: &[ProcessUsage]) {
        let (Some(watts), Some(seconds)) = (record.processor_watts(), record.interval_seconds) else {
            self.reason = Some("the processors' power is not known".to_owned());
            return;
        };
        let Some(busy) = record.cpu_utilization_percent.filter(|_| !record.cores.is_empty()) else {
            self.reason = Some("the processor time is not known".to_owned());
            return;
        };
        // Both in percent of one core. Processes are counted a moment later than the machine.
        let listed: f64 = processes.iter().map(|process| process.cpu_percent).sum();
        let whole = (busy * record.cores.len() as f64).max(listed);
        let joules = watts * seconds;
        self.joules += joules;
        for process in processes.iter().filter(|process| process.cpu_percent > 0.0 && whole > 0.0) {
            let entry = self.processes.entry(process.pid).or_insert_with(|| ProcessEnergy {
                pid: process.pid,
                name: process.name.clone(),
                user: process.user.clone(),
                joules: 0.0,
                share_percent: 0.0,
            });
            entry.joules += joules * process.cpu_percent / whole;
        }
    }

    /// The processes, those that used most first, or why they are not known.
    ///
    /// # Errors
    /// If the power or the processor time of an interval is not known.
    pub fn processes(&self) -> Result<Vec<ProcessEnergy>, String> {
        if let Some(reason) = &self.reason {
            return Err(reason.clone());
        }
        let share = |joules: f64| if self.joules > 0.0 { 100.0 * joules / self.joules } else { 0.0 };
        let mut list: Vec<ProcessEnergy> = self
            .processes
            .values()
            .map(|process| ProcessEnergy {
                joules: rounded(process.joules),
                share_percent: rounded(share(process.joules)),
                ..process.clone()
            })
            .collect();
        list.sort_by(|a, b| b.joules.total_cmp(&a.joules).then(a.pid.cmp(&b.pid)));
        Ok(list)
    }
}

/// The part of all busy processor time that this process and the children it waited for took.
#[derive(Debug)]
pub struct OwnShare {
    root: PathBuf,
    busy: Option<u64>,
    own: Option<u64>,
}

impl OwnShare {
    /// Begins to count; `root` is `/` on a real machine.
    #[must_use]
    pub fn start(root: &Path) -> Self {
        Self { root: root.to_owned(), busy: busy_ticks(root), own: own_ticks(root) }
    }

    /// The share since then, from 0 to 1; `None` where the kernel does not say or no time passed.
    #[must_use]
    pub fn finish(&self) -> Option<f64> {
        let busy = busy_ticks(&self.root)?.checked_sub(self.busy?).filter(|&ticks| ticks > 0)?;
        let own = own_ticks(&self.root)?.checked_sub(self.own?)?;
        Some((own as f64 / busy as f64).min(1.0))
    }
}

fn busy_ticks(root: &Path) -> Option<u64> {
    Some(CpuTimes::read(root)?.all.busy)
}

#[cfg(test)]
mod tests {
    use super::super::record::{CoreUsage, GpuUsage};
    use super::super::testing::FakeRoot;
    use super::*;

    fn domain(name: &str, watts: Option<f64>, energy_joules: Option<f64>) -> PowerUsage {
        PowerUsage { domain: name.to_owned(), watts, energy_joules }
    }

    fn record(power: Vec<PowerUsage>, gpu_watts: Option<f64>) -> TimelineRecord {
        let gpu = GpuUsage { index: 0, power_watts: gpu_watts, ..GpuUsage::default() };
        TimelineRecord {
            power,
            gpu_usage: if gpu_watts.is_some() { vec![gpu] } else { Vec::new() },
            interval_seconds: Some(2.0),
            ..TimelineRecord::default()
        }
    }

    #[test]
    fn counters_are_taken_and_gpus_integrated_and_nothing_counts_twice() {
        let mut meter = EnergyMeter::new();
        for (joules, gpu) in [(100.0, 300.0), (260.0, 500.0)] {
            let power = vec![
                domain("package-0", Some(50.0), Some(joules)),
                domain("package-0/core", Some(40.0), Some(joules * 0.8)),
                domain("package-0/dram", Some(5.0), Some(10.0)),
            ];
            meter.add(&record(power, Some(gpu)));
        }
        let energy = meter.energy();
        assert_eq!(energy.seconds, 4.0);
        let gpu = energy.sources.last().unwrap();
        assert_eq!((gpu.joules, gpu.method), (Some(300.0 * 2.0 + 400.0 * 2.0), EnergyMethod::Sampled));
        assert_eq!((gpu.min_watts, gpu.mean_watts, gpu.max_watts), (Some(300.0), Some(350.0), Some(500.0)));
        assert_eq!(energy.processor_joules(), Some(270.0));
        assert_eq!(energy.counted(), ["package-0", "package-0/dram", "gpu-0"]);
        assert_eq!(
            energy.total_joules,
            Some(260.0 + 10.0 + 1400.0),
            "without the cores, which the package holds"
        );
    }

    #[test]
    fn a_board_meter_or_a_platform_domain_speaks_for_the_rest() {
        let counted = |names: &[&str]| {
            let power = names.iter().map(|name| domain(name, Some(1.0), Some(2.0))).collect();
            let mut meter = EnergyMeter::new();
            meter.add(&record(power, Some(10.0)));
            let sources = meter.energy().sources;
            sources
                .into_iter()
                .filter(|source| source.counted)
                .map(|source| source.source)
                .collect::<Vec<_>>()
        };
        assert_eq!(counted(&["package-0", "system"]), ["system"]);
        assert_eq!(counted(&["package-0", "psys"]), ["psys", "gpu-0"]);
        assert_eq!(counted(&["package-0", "package-1/dram"]), ["package-0", "package-1/dram", "gpu-0"]);
    }

    #[test]
    fn what_is_not_known_makes_the_total_unknown_and_says_why() {
        let mut meter = EnergyMeter::new();
        assert!(meter.energy().reason.unwrap().contains("reports no power"));
        meter.add(&record(vec![domain("package-0", None, None)], None));
        let energy = meter.energy();
        assert_eq!(energy.total_joules, None);
        let reason = energy.reason.unwrap();
        assert!(reason.contains("package-0") && reason.contains("cannot be read"), "{reason}");
        // A meter that fell silent once has an energy that nobody knows.
        let mut meter = EnergyMeter::new();
        for watts in [Some(5.0), None, Some(5.0)] {
            meter.add(&record(vec![domain("system", watts, None)], None));
        }
        assert_eq!(meter.energy().total_joules, None);
        assert!(meter.energy().reason.unwrap().contains("all the time"));
    }

    fn process(pid: u32, cpu_percent: f64) -> ProcessUsage {
        ProcessUsage {
            pid,
            parent: None,
            name: format!("p{pid}"),
            command: None,
            user: None,
            cpu_percent,
            memory_bytes: 1,
            gpu_memory_bytes: None,
        }
    }

    #[test]
    fn energy_goes_to_processes_by_their_processor_time() {
        let busy = TimelineRecord {
            // Two cores at half load: as much as one core.
            cpu_utilization_percent: Some(50.0),
            cores: vec![CoreUsage::default(), CoreUsage::default()],
            ..record(vec![domain("package-0", Some(30.0), Some(60.0))], None)
        };
        let mut attribution = Attribution::new();
        attribution.add(&busy, &[process(1, 75.0), process(2, 15.0), process(3, 0.0)]);
        let list = attribution.processes().unwrap();
        assert_eq!(
            list.iter().map(|process| (process.pid, process.joules)).collect::<Vec<_>>(),
            [(1, 45.0), (2, 9.0)]
        );
        assert_eq!(list[0].share_percent, 75.0);
        // More listed than the machine counted: nobody gets more than there was.
        let mut attribution = Attribution::new();
        attribution.add(&busy, &[process(1, 150.0), process(2, 50.0)]);
        assert_eq!(attribution.processes().unwrap()[0].joules, 45.0);
        let mut attribution = Attribution::new();
        attribution.add(&record(vec![], None), &[process(1, 75.0)]);
        assert!(attribution.processes().unwrap_err().contains("power is not known"));
    }

    #[test]
    fn our_own_share_is_that_of_busy_time() {
        let root = FakeRoot::new();
        let write = |busy: u64, own: u64| {
            root.write("proc/stat", &format!("cpu {busy} 0 0 1000\n"));
            root.write("proc/self/stat", &format!("1 (warpt) S 1 1 1 0 -1 0 0 0 0 0 0 0 {own} 0 20 0"));
        };
        write(100, 10);
        let share = OwnShare::start(root.path());
        assert_eq!(share.finish(), None, "no time has passed");
        write(300, 60);
        assert_eq!(share.finish(), Some(0.25));
        assert_eq!(OwnShare::start(FakeRoot::new().path()).finish(), None);
    }
}

//! `mem_bandwidth`: how fast each cache level and main memory are read and written, by one thread and by all.

mod likwid;
mod settings;

use std::time::{Duration, Instant};

use warpforge_probes::memory::Pages;
use warpforge_probes::memory::levels::Hierarchy;
use warpforge_probes::memory::stream::{Arrays, Kernel, Routine, Stores};
use warpforge_probes::team::Team;

use self::settings::{Level, Settings};
use super::memory_levels::{DRAM, Machine, warn_of_pages};
use super::spec;
use crate::benchmark::{Benchmark, BenchmarkError, MetricKey, Peer, RunContext};
use crate::record::{BenchmarkComponent, BenchmarkSpec, ParamValue, Params};

/// Main memory is processed in sections of about this size, so that a sample is short.
const SECTION_BYTES: usize = 8 << 20;

/// The benchmark.
#[derive(Debug)]
pub(super) struct MemBandwidth;

impl Benchmark for MemBandwidth {
    fn spec(&self) -> BenchmarkSpec {
        spec(
            "mem_bandwidth",
            BenchmarkComponent::Ram,
            10,
            "Bandwidth of each cache level and of main memory: STREAM's copy, scale, add and triad, by one thread and \
             by all",
            &[
                ("threads", ParamValue::Int(0)),
                ("levels", ParamValue::Text("all".to_owned())),
                ("kernels", ParamValue::Text("copy,scale,add,triad".to_owned())),
                ("dram_bytes", ParamValue::Int(0)),
                ("pages", ParamValue::Text("default".to_owned())),
            ],
        )
    }

    fn takes(&self) -> Vec<(&'static str, String)> {
        settings::takes()
    }

    fn peers(&self) -> &'static [&'static dyn Peer] {
        &[&likwid::Likwid]
    }

    fn prepare(&self, params: &Params) -> Result<(), BenchmarkError> {
        Settings::new(params, &Machine::detect(), &processors()?).map(|_| ())
    }

    fn run(&self, context: &mut RunContext<'_>) -> Result<(), BenchmarkError> {
        let (machine, cpus) = (Machine::detect(), processors()?);
        let settings = Settings::new(context.params(), &machine, &cpus)?;
        let mut scopes = settings
            .scopes()
            .into_iter()
            .map(|(name, cpus)| Scope::new(name, cpus, &machine))
            .collect::<Result<Vec<_>, _>>()?;
        let measurements = settings.measurements() * scopes.len();
        context.plan(measurements);
        let weights: u32 = settings.levels.iter().map(|(_, level)| level.weight()).sum();
        let unit = context.time() / (weights * scopes.len() as u32).max(1);

        let dram = settings.levels.iter().any(|(_, level)| *level == Level::Dram);
        machine.warn(context, &scopes[0].hierarchy, dram.then_some(settings.dram_bytes));
        if let Some(widest) = scopes.first_mut() {
            widest.burn_in(context)?;
        }
        for (name, level) in &settings.levels {
            for scope in &mut scopes {
                let Some(bytes) = settings.bytes_per_thread(*level, &scope.hierarchy, scope.cpus.len())
                else {
                    continue;
                };
                // Each scope has arrays of its own: pages that several threads touched at the same time lie in
                // another order than those of one, and one thread is slower on them.
                let mut arrays = scope.arrays(context, &settings, *level, name, bytes)?;
                scope.measure(context, &settings, (*level, name), &mut arrays, unit)?;
            }
        }
        Ok(())
    }
}

/// The processors that this process may use.
fn processors() -> Result<Vec<usize>, BenchmarkError> {
    warpforge_probes::affinity::allowed()
        .map_err(|error| BenchmarkError::Failed(format!("cannot tell which processors may be used: {error}")))
}

/// The threads that measure together.
struct Scope {
    name: &'static str,
    cpus: Vec<usize>,
    hierarchy: Hierarchy,
    team: Team,
}

impl Scope {
    fn new(name: &'static str, cpus: Vec<usize>, machine: &Machine) -> Result<Self, BenchmarkError> {
        let team = Team::new(&cpus).map_err(|error| {
            BenchmarkError::Failed(format!("cannot start {} threads: {error}", cpus.len()))
        })?;
        Ok(Self { name, hierarchy: machine.hierarchy(&cpus), cpus, team })
    }

    /// Raises the clock, and whatever else the machine does under load.
    fn burn_in(&mut self, context: &RunContext<'_>) -> Result<(), BenchmarkError> {
        let Some(triad) = Routine::widest(Kernel::Triad, Stores::Ordinary) else { return Ok(()) };
        let mut arrays = Arrays::new(&mut self.team, 1 << 20, 1, Pages::Default)?;
        let begin = Instant::now();
        while begin.elapsed() < context.burn_in() && !context.stopped() {
            arrays.run(&mut self.team, triad, 100);
        }
        Ok(())
    }

    fn arrays(
        &mut self,
        context: &mut RunContext<'_>,
        settings: &Settings,
        level: Level,
        name: &str,
        bytes: usize,
    ) -> Result<Arrays, BenchmarkError> {
        let (pages, sections) = match level {
            // Small pages would slow down what a cache can do by what its translation can.
            Level::Cache(_) => (Pages::Huge, 1),
            Level::Dram => (settings.pages, bytes * self.cpus.len() / SECTION_BYTES),
        };
        let arrays = Arrays::new(&mut self.team, bytes, sections, pages)?;
        if level == Level::Dram {
            warn_of_pages(context, pages, name, arrays.huge_share());
        }
        Ok(arrays)
    }

    /// Measures the kernels on arrays that a level serves.
    fn measure(
        &mut self,
        context: &mut RunContext<'_>,
        settings: &Settings,
        (level, name): (Level, &str),
        arrays: &mut Arrays,
        unit: Duration,
    ) -> Result<(), BenchmarkError> {
        let time = unit * level.weight() / (settings.measurements_of(level).max(1) as u32);
        for &stores in level.stores() {
            for (kernel_name, kernel) in &settings.kernels {
                let Some(routine) = Routine::widest(*kernel, stores) else { continue };
                let mut key = MetricKey::more_is_better("bandwidth", "GB/s")
                    .tag("kernel", kernel_name)
                    .tag("level", name)
                    .tag("scope", self.name)
                    .tag("threads", self.cpus.len());
                if name == DRAM {
                    key = key.tag("stores", stores.name()).tag("pages", settings.pages.name());
                }
                let bytes = kernel.bytes_per_element() * arrays.elements_per_iteration(&self.team);
                let team = &mut self.team;
                context.measure_for(
                    time,
                    key,
                    |seconds| bytes as f64 / seconds / 1e9,
                    |iterations| arrays.run(team, routine, iterations),
                )?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::benchmark::Event;
    use crate::suites::testing::round;

    #[test]
    fn a_round_gives_each_kernel_at_each_level_in_each_scope() {
        let given = [("levels", "L1,DRAM"), ("kernels", "copy,triad"), ("dram_bytes", "50000000")];
        let round = round(&MemBandwidth, &given, 0.02);
        let mut labels = Vec::new();
        let mut report = |event| {
            if let Event::Metric { key, values } = event {
                assert!(values.iter().all(|&value| value > 0.0), "{key:?}");
                labels.push(key.label());
            }
        };
        MemBandwidth.run(&mut RunContext::new(&round, &|| false, &mut report)).unwrap();

        let scopes = if processors().unwrap().len() > 1 { 2 } else { 1 };
        let past_caches = Routine::widest(Kernel::Triad, Stores::Nontemporal).is_some();
        assert_eq!(labels.len(), scopes * if past_caches { 6 } else { 4 }, "{labels:?}");
        labels.sort();
        labels.dedup();
        assert_eq!(labels.len(), scopes * if past_caches { 6 } else { 4 }, "two metrics have one name");
    }
}

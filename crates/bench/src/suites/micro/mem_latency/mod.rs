//! `mem_latency`: how long a load takes that depends on the one before, over a curve of sizes and for each level.

mod points;

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use warpforge_probes::affinity;
use warpforge_probes::memory::Pages;
use warpforge_probes::memory::chase::Chase;
use warpforge_probes::memory::levels::Hierarchy;
use warpforge_probes::team::Team;

use self::points::{Point, points};
use super::memory_levels::{DRAM, Machine, list_of, named, warn_of_pages};
use super::spec;
use crate::benchmark::{Benchmark, BenchmarkError, MetricKey, RunContext, int, text};
use crate::record::{BenchmarkComponent, BenchmarkSpec, ParamValue, Params};

/// The most loads to warm up with at each size: tens of milliseconds where every load is slow.
const WARM_UP_LOADS: usize = 400_000;

/// A point beyond the second cache gets so many times the time of another, for its figure varies more.
const FAR_WEIGHT: u32 = 3;

/// The benchmark.
#[derive(Debug)]
pub(super) struct MemLatency;

impl Benchmark for MemLatency {
    fn spec(&self) -> BenchmarkSpec {
        spec(
            "mem_latency",
            BenchmarkComponent::Ram,
            10,
            "Latency of a dependent load: a pointer chase in random order over a curve of sizes, and for each level",
            &[
                ("points_per_octave", ParamValue::Int(2)),
                ("max_bytes", ParamValue::Int(0)),
                ("pages", ParamValue::Text("default".to_owned())),
            ],
        )
    }

    fn takes(&self) -> Vec<(&'static str, String)> {
        vec![
            ("points_per_octave", format!("1 to {}", points::MOST_PER_OCTAVE)),
            (
                "max_bytes",
                format!("{} and more, up to three quarters of the memory; 0 chooses", points::FIRST_BYTES),
            ),
            ("pages", list_of(&Pages::ALL.map(Pages::name))),
        ]
    }

    fn prepare(&self, params: &Params) -> Result<(), BenchmarkError> {
        Settings::new(params, &Machine::detect()).map(|_| ())
    }

    fn run(&self, context: &mut RunContext<'_>) -> Result<(), BenchmarkError> {
        let machine = Machine::detect();
        let settings = Settings::new(context.params(), &machine)?;
        machine.warn(context, &settings.hierarchy, Some(settings.most_bytes as u64));
        let mut team = Team::new(&[settings.cpu])
            .map_err(|error| BenchmarkError::Failed(format!("cannot start a thread: {error}")))?;
        context.plan(settings.points.len() * settings.pages.len());
        let weights: u32 = settings.points.iter().map(|point| settings.weight(point)).sum();
        let unit = context.time() / (weights * settings.pages.len() as u32).max(1);
        let mut burn_in = Some(context.burn_in());
        for &pages in &settings.pages {
            let chase = Chase::new(settings.most_bytes, machine.line_bytes(), pages)?;
            let mut chase = Pinned { chase: Mutex::new(chase), team: &mut team };
            for point in &settings.points {
                if context.stopped() {
                    return Err(BenchmarkError::Stopped);
                }
                chase.prepare(point.bytes, settings.last_cache_bytes());
                if let Some(time) = burn_in.take() {
                    chase.burn_in(time, context);
                }
                let key = match &point.level {
                    Some(level) => MetricKey::less_is_better("latency", "ns").tag("level", level),
                    None => MetricKey::less_is_better("latency", "ns").tag("size_bytes", point.bytes),
                };
                let key = key.tag("pages", pages.name());
                let time = unit * settings.weight(point);
                context.measure_for(time, key, |seconds| seconds * 1e9, |loads| chase.run(loads))?;
            }
            warn_of_pages(context, pages, DRAM, chase.huge_share());
        }
        Ok(())
    }
}

/// What to measure.
#[derive(Debug)]
struct Settings {
    cpu: usize,
    hierarchy: Hierarchy,
    most_bytes: usize,
    pages: Vec<Pages>,
    points: Vec<Point>,
}

impl Settings {
    fn new(params: &Params, machine: &Machine) -> Result<Self, BenchmarkError> {
        let cpu = affinity::allowed()
            .ok()
            .and_then(|cpus| cpus.first().copied())
            .ok_or_else(|| BenchmarkError::Failed("cannot tell which processors may be used".to_owned()))?;
        let hierarchy = machine.hierarchy(&[cpu]);
        let most =
            machine.dram_bytes("max_bytes", int(params, "max_bytes"), points::FIRST_BYTES, &hierarchy)?;
        let known = Pages::ALL.map(|pages| (pages.name().to_owned(), pages));
        let pages =
            named("pages", text(params, "pages"), &known)?.into_iter().map(|(_, pages)| pages).collect();
        let points = points(&hierarchy, int(params, "points_per_octave"), most)?;
        let most_bytes = usize::try_from(most)
            .map_err(|_| BenchmarkError::BadInput(format!("max_bytes={most}: more than can be addressed")))?;
        Ok(Self { cpu, hierarchy, most_bytes, pages, points })
    }

    /// A point's part of the time.
    fn weight(&self, point: &Point) -> u32 {
        let near = self.hierarchy.levels().iter().take_while(|cache| cache.level <= 2).last();
        if near.is_some_and(|cache| point.bytes as u64 <= cache.bytes) { 1 } else { FAR_WEIGHT }
    }

    fn last_cache_bytes(&self) -> usize {
        let bytes = self.hierarchy.levels().last().map_or(0, |last| last.bytes);
        usize::try_from(bytes).unwrap_or(usize::MAX)
    }
}

/// A chase on a thread that stays on its processor.
struct Pinned<'a> {
    chase: Mutex<Chase>,
    team: &'a mut Team,
}

impl Pinned<'_> {
    /// Lets the cycle grow to this size and follows it until the caches hold what they would hold in the long run. A
    /// turn of a long cycle takes too long; what a cache of `cached` bytes can hold of it is then read in order first.
    fn prepare(&mut self, bytes: usize, cached: usize) {
        self.on_thread(|chase| {
            chase.grow_to(bytes);
            if chase.lines() > WARM_UP_LOADS && bytes <= cached {
                chase.sweep();
            }
            chase.run(WARM_UP_LOADS.min(2 * chase.lines()) as u64)
        });
    }

    fn burn_in(&mut self, time: Duration, context: &RunContext<'_>) {
        let begin = Instant::now();
        while begin.elapsed() < time && !context.stopped() {
            self.run(1_000_000);
        }
    }

    fn run(&mut self, loads: u64) -> Duration {
        self.on_thread(|chase| chase.run(loads))
    }

    fn huge_share(&self) -> Option<f64> {
        self.chase.lock().unwrap_or_else(PoisonError::into_inner).huge_share()
    }

    /// Does something with the chase on its thread and says how long that says it took.
    fn on_thread(&mut self, work: impl Fn(&mut Chase) -> Duration + Sync) -> Duration {
        let took = Mutex::new(Duration::ZERO);
        let chase = &self.chase;
        self.team.run(|_| {
            let time = work(&mut chase.lock().unwrap_or_else(PoisonError::into_inner));
            *took.lock().unwrap_or_else(PoisonError::into_inner) = time;
        });
        took.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::benchmark::Event;
    use crate::suites::testing::{refused, round};

    fn settings(changes: &[(&str, &str)]) -> Result<Settings, BenchmarkError> {
        Settings::new(&round(&MemLatency, changes, 0.0).params, &Machine::unknown())
    }

    #[test]
    fn by_default_the_curve_ends_beyond_the_last_cache() {
        let settings = settings(&[]).unwrap();
        assert_eq!(settings.pages, [Pages::Default]);
        assert_eq!(settings.points.last().unwrap().bytes, settings.most_bytes);
        assert!(!settings.hierarchy.may_be_cached(settings.most_bytes as u64));
    }

    #[test]
    fn a_round_gives_every_point_once_for_each_kind_of_page() {
        let given = [("max_bytes", "50000"), ("points_per_octave", "1"), ("pages", "all")];
        let round = round(&MemLatency, &given, 0.02);
        let wanted = Settings::new(&round.params, &Machine::detect()).unwrap().points.len() * 2;
        let mut labels = Vec::new();
        let mut report = |event| {
            if let Event::Metric { key, values } = event {
                assert!(!key.higher_is_better && values.iter().all(|&value| value > 0.0), "{key:?}");
                labels.push(key.label());
            }
        };
        MemLatency.run(&mut RunContext::new(&round, &|| false, &mut report)).unwrap();
        labels.sort();
        labels.dedup();
        assert_eq!(labels.len(), wanted, "{labels:?}");
    }

    #[test]
    fn what_makes_no_sense_is_named() {
        let settings = |name: &str, value: &str| settings(&[(name, value)]);
        refused(settings, "points_per_octave", &["0"], "1 to 8");
        refused(settings, "max_bytes", &["100"], "at least");
        refused(settings, "max_bytes", &["-1"], "negative");
        refused(settings, "pages", &["tiny"], "default, huge");
    }
}

//! Running the selected benchmarks, each round in a fresh process.
//!
//! Rounds are interleaved: the first round of every benchmark, then the second of every one, and so on. What drifts
//! slowly on the machine then shows as spread between rounds instead of passing for a property of one benchmark. The peers
//! of a benchmark have their rounds directly before or after its own.

mod assemble;
mod beside;
mod child;
mod executor;

pub use child::{Hooks, answer_round};
pub use executor::{ChildProcess, Executor, InProcess};

use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use warpforge_inventory::ListOutput;
use warpforge_inventory::live::{Conditions, ConditionsWatch, Watch};

use crate::benchmark::{BenchmarkError, Event, Round};
use crate::record::{BenchmarkSpec, BenchmarkSuiteRun, SCHEMA_VERSION};
use crate::selection::Selection;
use assemble::Progress;

/// Fresh processes a benchmark is run in, by default.
pub const DEFAULT_ROUNDS: u32 = 5;

/// Seconds of load before the first measurement of a round, by default.
pub const DEFAULT_BURNIN_SECONDS: f64 = 0.2;

/// How to run a selection.
#[derive(Debug, Clone)]
pub struct RunOptions {
    /// Fresh processes for each benchmark.
    pub rounds: u32,
    /// Seconds to measure each benchmark, over all rounds; `None` takes each benchmark's default.
    pub duration_seconds: Option<f64>,
    /// Seconds of load before the first measurement of a round.
    pub burn_in_seconds: f64,
    /// The machine, to be attached to every result.
    pub system: Option<ListOutput>,
    /// Sample what the machine is doing at this interval and attach the timeline.
    pub monitor_interval: Option<Duration>,
}

/// Observes the progress of a run.
pub trait Observer {
    /// A round of a benchmark begins; `step` of `steps` over the whole run.
    fn round_started(&mut self, spec: &BenchmarkSpec, step: usize, steps: usize);

    /// A round of a peer of a benchmark begins.
    fn peer_started(&mut self, spec: &BenchmarkSpec, _peer: &str, step: usize, steps: usize) {
        self.round_started(spec, step, steps);
    }

    /// Something happened within the round.
    fn event(&mut self, spec: &BenchmarkSpec, event: &Event);

    /// A round ended; the record so far can be kept in case the program is killed.
    fn checkpoint(&mut self, so_far: &BenchmarkSuiteRun);
}

/// Asks every chosen benchmark whether it can run here, before anything runs.
///
/// # Errors
/// The first parameter that makes no sense, with the benchmark's name.
pub fn prepare(selection: &Selection) -> Result<(), BenchmarkError> {
    for chosen in &selection.chosen {
        let params = chosen.spec.params.clone().unwrap_or_default();
        if let Err(BenchmarkError::BadInput(message)) = chosen.benchmark.prepare(&params) {
            return Err(BenchmarkError::BadInput(format!("{}: {message}", chosen.spec.id.name)));
        }
    }
    Ok(())
}

/// Runs a selection to its end, or until `stop` says so, and returns what was measured.
///
/// # Errors
/// If the monitor that was asked for cannot be started; nothing has run then.
pub fn run(
    selection: &Selection,
    options: &RunOptions,
    executor: &dyn Executor,
    observer: &mut dyn Observer,
    stop: &dyn Fn() -> bool,
) -> io::Result<BenchmarkSuiteRun> {
    let watch = options.monitor_interval.map(Watch::start).transpose()?;
    let mut run = BenchmarkSuiteRun {
        schema_version: SCHEMA_VERSION,
        run_id: new_run_id(),
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        suite: selection.name.clone(),
        components: selection.components(),
        benchmarks: Vec::new(),
        metadata: Some(metadata(options)),
        timeline: Vec::new(),
    };
    let mut progress: Vec<_> = selection.chosen.iter().map(Progress::new).collect();

    let rounds = options.rounds.max(1);
    let steps = progress.iter().map(|p| p.open_rounds(rounds)).sum();
    let mut step = 0;
    'rounds: for number in 0..rounds {
        for index in 0..progress.len() {
            for side in sides(progress[index].peers().len(), number) {
                if stop() {
                    break 'rounds;
                }
                let progress_here = &mut progress[index];
                let is_open = match side {
                    Side::Ours => progress_here.is_open(),
                    Side::Peer(peer) => progress_here.is_open() && progress_here.peers()[peer].is_open(),
                };
                if !is_open {
                    continue;
                }
                step += 1;
                run_round(progress_here, side, options, executor, observer, stop, (step, steps));
                run.benchmarks = progress.iter().map(|p| p.result(rounds, options.system.as_ref())).collect();
                observer.checkpoint(&run);
            }
        }
    }
    run.benchmarks = progress.iter().map(|p| p.result(rounds, options.system.as_ref())).collect();
    if let Some(watch) = watch {
        run.timeline = watch.stop();
    }
    Ok(run)
}

/// Whose round it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    /// The benchmark's.
    Ours,
    /// That of one of its peers.
    Peer(usize),
}

/// The sides in the order of one round. Every second round goes the other way, so that what drifts favours none.
fn sides(peers: usize, number: u32) -> Vec<Side> {
    let mut sides: Vec<Side> = std::iter::once(Side::Ours).chain((0..peers).map(Side::Peer)).collect();
    if number % 2 == 1 {
        sides.reverse();
    }
    sides
}

fn run_round(
    progress: &mut Progress,
    side: Side,
    options: &RunOptions,
    executor: &dyn Executor,
    observer: &mut dyn Observer,
    stop: &dyn Fn() -> bool,
    (step, steps): (usize, usize),
) {
    let spec = progress.spec().clone();
    let duration = options.duration_seconds.or(spec.default_duration_seconds.map(f64::from)).unwrap_or(10.0);
    let mut round = Round {
        id: spec.id.clone(),
        params: spec.params.clone().unwrap_or_default(),
        seconds: duration / f64::from(options.rounds.max(1)),
        burn_in_seconds: options.burn_in_seconds,
        beside: None,
    };
    if let Side::Peer(index) = side {
        let peer = &mut progress.peers()[index];
        observer.peer_started(&spec, peer.name(), step, steps);
        round.beside = Some(peer.name().to_owned());
        let mut on_event = |event: Event| {
            observer.event(&spec, &event);
            peer.event(event);
        };
        let outcome = executor.execute(&round, Hooks { on_event: &mut on_event, stop });
        peer.end_round(outcome);
        return;
    }
    observer.round_started(&spec, step, steps);
    let began = Timestamp::now();
    let clock = Instant::now();
    let conditions = ConditionsWatch::start();
    progress.begin_round(began);
    let mut on_event = |event: Event| {
        observer.event(&spec, &event);
        progress.event(event);
    };
    let outcome = executor.execute(&round, Hooks { on_event: &mut on_event, stop });
    // Without a thread to watch them, the conditions of this round stay unknown.
    let conditions = conditions.map_or_else(|_| Conditions::default(), ConditionsWatch::finish);
    progress.end_round(outcome, Timestamp::now(), clock.elapsed(), conditions);
}

/// A new name for a run: when, and something random.
#[must_use]
pub fn new_run_id() -> String {
    let now = jiff::Zoned::now().strftime("%Y%m%d-%H%M%S").to_string();
    let random: String = std::iter::repeat_with(|| fastrand::char('a'..='z')).take(5).collect();
    format!("{now}-{random}")
}

fn metadata(options: &RunOptions) -> BTreeMap<String, String> {
    let mut metadata = BTreeMap::from([
        ("rounds".to_owned(), options.rounds.max(1).to_string()),
        ("burnin_seconds".to_owned(), options.burn_in_seconds.to_string()),
    ]);
    if let Some(seconds) = options.duration_seconds {
        metadata.insert("duration_seconds".to_owned(), seconds.to_string());
    }
    metadata
}

#[cfg(test)]
mod beside_tests;
#[cfg(test)]
mod tests;

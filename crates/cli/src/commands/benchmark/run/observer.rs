//! What `run` shows while it runs: a progress bar on a terminal, and checkpoints into the history.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use warpforge_bench::benchmark::Event;
use warpforge_bench::history::History;
use warpforge_bench::record::{BenchmarkSpec, BenchmarkSuiteRun, Verdict};
use warpforge_bench::runner::Observer;

/// Measurements are shown as this many parts of a round.
const PARTS: u64 = 100;

/// Shows progress on standard error and keeps the run.
pub(super) struct Terminal {
    bar: ProgressBar,
    history: Option<History>,
    kept: bool,
    round: String,
    finished_rounds: u64,
}

impl Terminal {
    /// An observer that keeps the run in `history`, if there is one.
    pub(super) fn new(history: Option<History>) -> Self {
        // indicatif draws nothing unless standard error is a terminal.
        let bar = ProgressBar::with_draw_target(Some(1), ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template("{bar:24} {elapsed} {msg}") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(200));
        Self { bar, history, kept: false, round: String::new(), finished_rounds: 0 }
    }

    /// Keeps the finished run and takes the bar away.
    pub(super) fn finish(&mut self, run: &BenchmarkSuiteRun) {
        self.keep(run);
        self.bar.finish_and_clear();
    }

    /// Whether the run is in the history.
    pub(super) fn is_kept(&self) -> bool {
        self.kept
    }

    /// Saves the run; one checkpoint that fails does not keep the next from being tried.
    fn keep(&mut self, run: &BenchmarkSuiteRun) {
        let Some(history) = &mut self.history else { return };
        // What could not be run here is no result.
        if run.benchmarks.iter().all(|result| result.verdict == Some(Verdict::Skipped)) {
            return;
        }
        match history.save(run) {
            Ok(()) => self.kept = true,
            Err(error) => {
                self.kept = false;
                self.bar.suspend(|| crate::term::tell!("warpt: the result is not kept: {error}"));
            }
        }
    }
}

impl Observer for Terminal {
    fn round_started(&mut self, spec: &BenchmarkSpec, step: usize, steps: usize) {
        self.round = format!("{} ({step}/{steps})", spec.id.name);
        self.finished_rounds = step as u64 - 1;
        self.bar.set_length(steps as u64 * PARTS);
        self.bar.set_position(self.finished_rounds * PARTS);
        self.bar.set_message(self.round.clone());
    }

    fn peer_started(&mut self, spec: &BenchmarkSpec, peer: &str, step: usize, steps: usize) {
        self.round_started(spec, step, steps);
        self.round = format!("{} beside {peer} ({step}/{steps})", spec.id.name);
        self.bar.set_message(self.round.clone());
    }

    fn event(&mut self, _spec: &BenchmarkSpec, event: &Event) {
        if let Event::Progress { done, total, label } = event {
            let part = PARTS * *done as u64 / (*total).max(1) as u64;
            self.bar.set_position(self.finished_rounds * PARTS + part);
            self.bar.set_message(format!("{}: {label}", self.round));
        }
    }

    fn checkpoint(&mut self, so_far: &BenchmarkSuiteRun) {
        self.keep(so_far);
    }
}

//! A peer of a benchmark while the run goes on.

use super::assemble::Measured;
use crate::benchmark::{BenchmarkError, Event, Peer};
use crate::record::{BenchmarkMetric, Params, PeerRatio, PeerResult};

/// What is known of one peer.
pub(super) struct PeerProgress {
    peer: &'static dyn Peer,
    measured: Measured,
    version: Option<String>,
    error: Option<BenchmarkError>,
    completed_rounds: u32,
}

impl PeerProgress {
    /// The state before the first round; a peer that cannot run here is closed at once.
    pub(super) fn new(peer: &'static dyn Peer, params: &Params) -> Self {
        let error = peer.prepare(params).err();
        Self { peer, measured: Measured::default(), version: None, error, completed_rounds: 0 }
    }

    pub(super) fn name(&self) -> &'static str {
        self.peer.name()
    }

    /// Whether there is a point in running another round.
    pub(super) fn is_open(&self) -> bool {
        self.error.is_none()
    }

    pub(super) fn event(&mut self, event: Event) {
        match event {
            Event::Version { version } => self.version = Some(version),
            other => self.measured.event(other),
        }
    }

    pub(super) fn end_round(&mut self, outcome: Result<(), BenchmarkError>) {
        match outcome {
            Ok(()) => self.completed_rounds += 1,
            Err(error) => self.error = Some(error),
        }
    }

    /// The result as far as it is known, for a run of so many rounds, beside what the benchmark measured.
    pub(super) fn result(&self, rounds: u32, ours: &[BenchmarkMetric]) -> PeerResult {
        let (verdict, error_message) =
            super::assemble::verdict(self.error.as_ref(), self.completed_rounds, rounds);
        let metrics = self.measured.metrics();
        PeerResult {
            peer: self.name().to_owned(),
            version: self.version.clone(),
            verdict,
            error_message,
            ratios: PeerRatio::of(ours, &metrics),
            metrics,
            warnings: self.measured.warnings.clone(),
        }
    }
}

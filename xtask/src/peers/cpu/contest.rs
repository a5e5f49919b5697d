//! One workload by every engine in turn.

use serde_json::{Value, json};

use super::ours::Ours;
use super::peer::{Accuracy, Peer, Prepared};
use super::stats::median;

/// What came of an engine on a workload.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::peers) enum Outcome {
    /// It ran.
    Ran(Figures),
    /// It has no program for this workload.
    Absent,
    /// It could not, for this reason.
    Failed(String),
}

/// An engine's figures for a workload.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::peers) struct Figures {
    /// The median of each round, in milliseconds.
    pub(in crate::peers) rounds: Vec<f64>,
    /// How far the outputs are from PyTorch's in f32, as a part of their scale.
    pub(in crate::peers) distance: f64,
    /// The ratio of the signal to the error, where there is one.
    pub(in crate::peers) sqnr_db: Option<f64>,
    /// Until the first result: compiling, and in ours reading the archive.
    pub(in crate::peers) prepare_s: f64,
    /// What the reference computed in our stead.
    pub(in crate::peers) fallbacks: Vec<String>,
}

impl Outcome {
    /// The signal to noise, where there is one.
    pub(in crate::peers) fn sqnr_db(&self) -> Option<f64> {
        match self {
            Self::Ran(figures) => figures.sqnr_db,
            _ => None,
        }
    }
}

impl Figures {
    /// The median of the rounds, in milliseconds.
    pub(in crate::peers) fn median(&self) -> f64 {
        median(&self.rounds)
    }
}

/// A workload's line.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::peers) struct Row {
    pub(in crate::peers) workload: String,
    /// Engine and outcome.
    pub(in crate::peers) peers: Vec<(String, Outcome)>,
    pub(in crate::peers) ours: Outcome,
}

/// Gets the workload ready everywhere, then lets everybody run in turn, so many rounds of so many seconds each.
pub(in crate::peers) fn hold(
    workload: &str,
    peers: &mut [Peer],
    ours: &Ours<'_>,
    rounds: usize,
    seconds: f64,
) -> anyhow::Result<Row> {
    let mut outcomes = Vec::new();
    for peer in &mut *peers {
        eprintln!("{workload}: getting {} ready", peer.engine);
        outcomes.push(match peer.prepare(workload)? {
            Prepared::Ready { seconds, accuracy } => Outcome::Ran(Figures {
                rounds: Vec::new(),
                distance: accuracy.distance,
                sqnr_db: accuracy.sqnr_db,
                prepare_s: seconds,
                fallbacks: Vec::new(),
            }),
            Prepared::Absent => Outcome::Absent,
            Prepared::Failed(reason) => Outcome::Failed(reason),
        });
    }
    eprintln!("{workload}: getting ours ready");
    let (mut mine, mut one_ms) = match ours.check() {
        Ok((run, Accuracy { distance, sqnr_db })) => {
            let prepare_s = (run.load_ms + run.compile_ms) / 1e3;
            let one_ms = run.one_ms();
            let fallbacks = run.fallbacks;
            let rounds = Vec::new();
            (Outcome::Ran(Figures { rounds, distance, sqnr_db, prepare_s, fallbacks }), one_ms)
        }
        Err(error) => (Outcome::Failed(format!("{error:#}")), 0.0),
    };
    for round in 1..=rounds {
        eprintln!("{workload}: round {round} of {rounds}");
        for (peer, outcome) in peers.iter_mut().zip(&mut outcomes) {
            if let Outcome::Ran(figures) = outcome {
                figures.rounds.push(median(&peer.times(seconds)?));
            }
        }
        if let Outcome::Ran(figures) = &mut mine {
            one_ms = median(&ours.times(seconds, one_ms)?);
            figures.rounds.push(one_ms);
        }
    }
    for peer in &mut *peers {
        peer.forget()?;
    }
    let engines = peers.iter().map(|peer| peer.engine.clone());
    Ok(Row { workload: workload.to_owned(), peers: engines.zip(outcomes).collect(), ours: mine })
}

impl Row {
    /// The fastest peer and its median.
    pub(in crate::peers) fn best(&self) -> Option<(&str, f64)> {
        let ran = self.peers.iter().filter_map(|(engine, outcome)| match outcome {
            Outcome::Ran(figures) => Some((engine.as_str(), figures.median())),
            _ => None,
        });
        ran.min_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// The signal to noise of a peer.
    pub(in crate::peers) fn peer_sqnr_db(&self, engine: &str) -> Option<f64> {
        self.peers.iter().find(|(name, _)| name == engine).and_then(|(_, outcome)| outcome.sqnr_db())
    }

    /// Our median.
    pub(in crate::peers) fn our_median(&self) -> Option<f64> {
        match &self.ours {
            Outcome::Ran(figures) => Some(figures.median()),
            _ => None,
        }
    }

    /// The best peer's time over ours: above one we are faster.
    pub(in crate::peers) fn ratio(&self) -> Option<f64> {
        Some(self.best()?.1 / self.our_median()?)
    }

    /// Why our result does not count, if so: it failed, or is further from PyTorch's than `bound`, a part of its scale.
    pub(in crate::peers) fn wrong(&self, bound: f64) -> Option<String> {
        match &self.ours {
            Outcome::Ran(figures) if figures.distance <= bound => None,
            Outcome::Ran(figures) => Some(format!(
                "{}: max rel error {:.1e}, more than {bound:.0e}",
                self.workload, figures.distance
            )),
            Outcome::Absent => Some(format!("{}: not run", self.workload)),
            Outcome::Failed(reason) => Some(format!("{}: {reason}", self.workload)),
        }
    }

    /// The furthest that a peer's outputs are from PyTorch's in f32.
    pub(in crate::peers) fn peers_distance(&self) -> f64 {
        let ran = self.peers.iter().filter_map(|(_, outcome)| match outcome {
            Outcome::Ran(figures) => Some(figures.distance),
            _ => None,
        });
        ran.fold(0.0, f64::max)
    }

    /// The row for programs.
    pub(in crate::peers) fn json(&self) -> Value {
        let outcome = |outcome: &Outcome| match outcome {
            Outcome::Ran(figures) => json!({
                "median_ms": figures.median(),
                "rounds_ms": figures.rounds,
                "distance": figures.distance,
                "sqnr_db": figures.sqnr_db,
                "prepare_s": figures.prepare_s,
                "fallbacks": figures.fallbacks,
            }),
            Outcome::Absent => Value::Null,
            Outcome::Failed(reason) => json!({ "failed": reason }),
        };
        let peers: serde_json::Map<String, Value> =
            self.peers.iter().map(|(engine, result)| (engine.clone(), outcome(result))).collect();
        json!({
            "workload": self.workload,
            "peers": peers,
            "ours": outcome(&self.ours),
            "best": self.best().map(|(engine, _)| engine),
            "ratio": self.ratio(),
        })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// An engine that ran so long.
    pub(crate) fn ran(rounds: &[f64]) -> Outcome {
        let rounds = rounds.to_vec();
        let sqnr_db = Some(120.0);
        Outcome::Ran(Figures { rounds, distance: 1e-6, sqnr_db, prepare_s: 0.5, fallbacks: Vec::new() })
    }

    /// A row of two peers of which one ran.
    pub(crate) fn row(workload: &str, peer: f64, ours: Outcome) -> Row {
        let peers = vec![("eager".to_owned(), ran(&[peer])), ("xla".to_owned(), Outcome::Absent)];
        Row { workload: workload.to_owned(), peers, ours }
    }

    #[test]
    fn the_ratio_is_of_the_fastest_peer_by_medians() {
        let mut row = row("w", 8.0, ran(&[2.0, 100.0, 4.0]));
        row.peers.push(("ort".to_owned(), ran(&[6.0, 5.0, 1.0])));
        row.peers.push(("openvino".to_owned(), Outcome::Failed("no".to_owned())));
        assert_eq!(row.best(), Some(("ort", 5.0)));
        assert_eq!(row.ratio(), Some(1.25));
        assert_eq!(row.json()["best"], "ort");
        assert_eq!(row.json()["peers"]["openvino"]["failed"], "no");
        assert!(row.json()["peers"]["xla"].is_null());
    }

    #[test]
    fn a_wrong_result_has_a_reason() {
        assert_eq!(row("w", 1.0, ran(&[1.0])).wrong(1e-5), None);
        assert!(row("w", 1.0, ran(&[1.0])).wrong(1e-7).unwrap().contains("max rel error 1.0e-6"));
        let failed = row("w", 1.0, Outcome::Failed("no kernel".to_owned()));
        assert!(failed.wrong(1.0).unwrap().contains("no kernel"));
        assert_eq!(failed.ratio(), None);
    }
}

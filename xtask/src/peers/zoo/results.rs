//! What has been measured, model by model, kept in a file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use warpforge_measure::stats::LogRatio;

use super::kernels::Kernel;
use crate::peers::cpu::contest::{self, Outcome};

const CONFIDENCE: f64 = 0.95;

/// A model's line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Row {
    pub(super) workload: String,
    /// Engine and median in milliseconds, or why there is none.
    pub(super) peers: BTreeMap<String, Result<f64, String>>,
    /// Our median in milliseconds, or why there is none.
    pub(super) ours: Result<f64, String>,
    /// The fastest peer.
    pub(super) best: Option<String>,
    /// The fastest peer's time over ours: above one we are faster.
    pub(super) ratio: Option<f64>,
    /// Where the ratio is with 95 % confidence.
    pub(super) interval: Option<(f64, f64)>,
    /// How far our outputs are from PyTorch's in f32, as a part of their scale.
    pub(super) distance: Option<f64>,
    /// What the reference computed in our stead.
    pub(super) fallbacks: Vec<String>,
    /// Where a peer is faster: our slowest kernels.
    pub(super) kernels: Vec<Kernel>,
}

impl Row {
    /// The line of a contest.
    pub(super) fn of(row: &contest::Row) -> Self {
        let time = |outcome: &Outcome| match outcome {
            Outcome::Ran(figures) => Ok(figures.median()),
            Outcome::Absent => Err("no program".to_owned()),
            Outcome::Failed(reason) => Err(reason.clone()),
        };
        let best = row.best().map(|(engine, _)| engine.to_owned());
        let rounds = |outcome: &Outcome| match outcome {
            Outcome::Ran(figures) => figures.rounds.iter().map(|&ms| vec![ms]).collect(),
            _ => Vec::new(),
        };
        let theirs = row.peers.iter().find(|(engine, _)| Some(engine) == best.as_ref());
        let interval = theirs
            .and_then(|(_, theirs)| LogRatio::of_rounds(&rounds(&row.ours), &rounds(theirs)).ok())
            .map(|ratio| ratio.interval(CONFIDENCE))
            .map(|interval| (interval.low.exp(), interval.high.exp()));
        let (distance, fallbacks) = match &row.ours {
            Outcome::Ran(figures) => (Some(figures.distance), figures.fallbacks.clone()),
            _ => (None, Vec::new()),
        };
        Self {
            workload: row.workload.clone(),
            peers: row.peers.iter().map(|(engine, outcome)| (engine.clone(), time(outcome))).collect(),
            ours: time(&row.ours),
            best,
            ratio: row.ratio(),
            interval,
            distance,
            fallbacks,
            kernels: Vec::new(),
        }
    }

    /// The line of a model that nobody could run.
    pub(super) fn failed(workload: &str, reason: String) -> Self {
        Self {
            workload: workload.to_owned(),
            peers: BTreeMap::new(),
            ours: Err(reason),
            best: None,
            ratio: None,
            interval: None,
            distance: None,
            fallbacks: Vec::new(),
            kernels: Vec::new(),
        }
    }

    /// One line for people who wait.
    pub(super) fn line(&self) -> String {
        let best = self.best.as_deref().unwrap_or("no peer");
        match (&self.ours, self.ratio) {
            (Ok(ms), Some(ratio)) => format!("{}: {ratio:.2} of {best}, ours {ms:.2} ms", self.workload),
            (Ok(ms), None) => format!("{}: no peer ran, ours {ms:.2} ms", self.workload),
            (Err(reason), _) => format!("{}: {reason}", self.workload),
        }
    }

    /// Why our result does not count, if so.
    pub(super) fn wrong(&self, bound: f64) -> Option<String> {
        match (&self.ours, self.distance) {
            (Err(reason), _) => Some(format!("{}: {reason}", self.workload)),
            (Ok(_), Some(distance)) if distance <= bound => None,
            (Ok(_), distance) => Some(format!(
                "{}: max rel error {:.1e}, more than {bound:.0e}",
                self.workload,
                distance.unwrap_or(f64::NAN)
            )),
        }
    }
}

/// The lines by workload, and the file that they are in.
#[derive(Debug)]
pub(super) struct Results {
    path: PathBuf,
    rows: BTreeMap<String, Row>,
}

impl Results {
    /// Reads what is there.
    pub(super) fn open(path: &Path) -> anyhow::Result<Self> {
        let rows = match std::fs::read(path) {
            Ok(bytes) => serde_json::from_slice(&bytes)
                .with_context(|| format!("{}: not results of the zoo; remove it", path.display()))?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => BTreeMap::new(),
            Err(error) => return Err(error).with_context(|| path.display().to_string()),
        };
        Ok(Self { path: path.to_owned(), rows })
    }

    pub(super) fn has(&self, workload: &str) -> bool {
        self.rows.contains_key(workload)
    }

    pub(super) fn row(&self, workload: &str) -> Option<&Row> {
        self.rows.get(workload)
    }

    /// Adds a line, and writes all of them.
    pub(super) fn keep(&mut self, row: Row) -> anyhow::Result<()> {
        self.rows.insert(row.workload.clone(), row);
        let part = self.path.with_extension("part");
        std::fs::write(&part, serde_json::to_vec_pretty(&self.rows)?)
            .and_then(|()| std::fs::rename(&part, &self.path))
            .with_context(|| self.path.display().to_string())
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::peers::cpu::contest::Figures;

    /// A line of these medians by round.
    pub(crate) fn row(workload: &str, theirs: &[f64], ours: &[f64]) -> Row {
        let ran = |rounds: &[f64]| {
            Outcome::Ran(Figures {
                rounds: rounds.to_vec(),
                distance: 1e-6,
                sqnr_db: None,
                prepare_s: 0.1,
                fallbacks: Vec::new(),
            })
        };
        let peers =
            vec![("eager".to_owned(), ran(theirs)), ("ort".to_owned(), Outcome::Failed("no".to_owned()))];
        Row::of(&contest::Row { workload: workload.to_owned(), peers, ours: ran(ours) })
    }

    #[test]
    fn a_ratio_has_the_interval_of_its_rounds() {
        let row = row("m_b1", &[10.0, 11.0, 10.5], &[5.0, 5.2, 5.1]);
        let (low, high) = row.interval.unwrap();
        assert!(low < 2.05 && 2.05 < high && low > 1.7 && high < 2.5, "{low} {high}");
        assert_eq!(row.peers["ort"], Err("no".to_owned()));
        assert_eq!(row.wrong(1e-5), None);
        assert!(row.wrong(1e-7).unwrap().contains("max rel error"));
        assert!(Row::failed("m_b1", "not exported".to_owned()).wrong(1.0).unwrap().contains("not exported"));
    }

    #[test]
    fn results_are_kept_and_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cpu-f32.json");
        let mut results = Results::open(&path).unwrap();
        results.keep(row("m_b1", &[2.0, 2.0], &[1.0, 1.0])).unwrap();
        results.keep(Row::failed("n_b1", "no".to_owned())).unwrap();
        let again = Results::open(&path).unwrap();
        assert_eq!(again.row("m_b1"), results.row("m_b1"));
        assert!(again.has("n_b1") && !again.has("o_b1"));
        std::fs::write(&path, "{").unwrap();
        assert!(Results::open(&path).is_err());
    }
}

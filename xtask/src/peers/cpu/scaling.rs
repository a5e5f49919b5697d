//! Time against the length of the sequences, the batch and the number of threads, ours and PyTorch's.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::Stage;
use super::contest::{Outcome, hold};
use super::peer::Peer;
use super::plot::{Line, Panel, picture};
use super::stats::figure;

const LENGTHS: [usize; 6] = [64, 128, 256, 512, 1024, 2048];
const BATCHES: [usize; 7] = [1, 2, 4, 8, 16, 32, 64];
/// The batch while the length changes, and the length while the batch does.
const FIXED: (usize, usize) = (1, 128);
const THREADS: [usize; 2] = [1, 2];
/// A long measurement of many points: each is short.
const ROUNDS: usize = 3;
const SECONDS: f64 = 0.3;

/// What changes along a curve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Axis {
    Length,
    Batch,
}

/// One measurement.
#[derive(Debug)]
pub(super) struct Point {
    axis: Axis,
    size: usize,
    threads: usize,
    ours_ms: Option<f64>,
    eager_ms: Option<f64>,
}

/// Measures all the points. Archives are made for one size and removed again.
pub(super) fn measure(stage: &Stage) -> anyhow::Result<Vec<Point>> {
    let mut eager = THREADS
        .iter()
        .map(|&threads| Ok((threads, [Peer::start(&stage.python, "eager", &stage.work, threads)?])))
        .collect::<anyhow::Result<Vec<_>>>()?;
    let lengths = LENGTHS.map(|length| (Axis::Length, length, FIXED.0, length));
    let batches = BATCHES.map(|batch| (Axis::Batch, batch, batch, FIXED.1));
    let mut points = Vec::new();
    for (axis, size, batch, length) in lengths.into_iter().chain(batches) {
        let name = format!("minilm_b{batch}_s{length}");
        let keep = stage.folder(&name).is_dir();
        stage.export(&[&name], false)?;
        for (threads, peers) in &mut eager {
            let ours = stage.ours(&name, "model", *threads);
            let (rounds, seconds) = (ROUNDS.min(stage.rounds), SECONDS.min(stage.seconds));
            let row = hold(&name, peers, &ours, rounds, seconds)?;
            if let Outcome::Failed(reason) = &row.ours {
                eprintln!("{name}: ours failed: {reason}");
            }
            let (ours_ms, eager_ms) = (row.our_median(), row.best().map(|(_, ms)| ms));
            points.push(Point { axis, size, threads: *threads, ours_ms, eager_ms });
        }
        if !keep {
            std::fs::remove_dir_all(stage.folder(&name))?;
        }
    }
    Ok(points)
}

impl Point {
    /// The point for programs.
    pub(super) fn json(&self) -> Value {
        let axis = if self.axis == Axis::Length { "length" } else { "batch" };
        json!({ axis: self.size, "threads": self.threads, "ours_ms": self.ours_ms, "eager_ms": self.eager_ms })
    }
}

/// The points as a table.
pub(super) fn table(points: &[Point]) -> String {
    let mut out = "| sequence × batch | threads | torch eager, ms | ours, ms | ratio |\n".to_owned();
    out += "| --- | ---: | ---: | ---: | ---: |\n";
    for Point { axis, size, threads, ours_ms, eager_ms } in points {
        let what = match axis {
            Axis::Length => format!("{size} × {}", FIXED.0),
            Axis::Batch => format!("{} × {size}", FIXED.1),
        };
        let ratio = ours_ms.zip(*eager_ms).map(|(ours, eager)| format!("{:.2}", eager / ours));
        let [eager, ours] = [eager_ms, ours_ms].map(|ms| ms.map_or("-".to_owned(), figure));
        let ratio = ratio.unwrap_or("-".to_owned());
        let _ = writeln!(out, "| {what} | {threads} | {eager} | {ours} | {ratio} |");
    }
    out
}

/// The points as a picture.
pub(super) fn plot(points: &[Point]) -> String {
    let lines = |axis: Axis| {
        let mut lines = Vec::new();
        for (engine, time) in [
            ("ours", (|point| point.ours_ms) as fn(&Point) -> Option<f64>),
            ("torch eager", |point| point.eager_ms),
        ] {
            for threads in THREADS {
                let plural = if threads == 1 { "" } else { "s" };
                let of = points.iter().filter(|point| point.axis == axis && point.threads == threads);
                lines.push(Line {
                    name: format!("{engine}, {threads} thread{plural}"),
                    points: of.filter_map(|point| Some((point.size as f64, time(point)?))).collect(),
                });
            }
        }
        lines
    };
    picture(&[
        Panel { title: "MiniLM, one sequence", across: "tokens", up: "ms", lines: lines(Axis::Length) },
        Panel { title: "MiniLM, 128 tokens", across: "batch", up: "ms", lines: lines(Axis::Batch) },
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_told_and_drawn() {
        let point =
            |axis, size, threads, ours_ms| Point { axis, size, threads, ours_ms, eager_ms: Some(6.0) };
        let points = [
            point(Axis::Length, 64, 1, Some(4.0)),
            point(Axis::Length, 128, 1, Some(8.0)),
            point(Axis::Batch, 2, 2, None),
        ];
        let text = table(&points);
        assert!(text.contains("| 64 × 1 | 1 | 6.00 | 4.00 | 1.50 |"), "{text}");
        assert!(text.contains("| 128 × 2 | 2 | 6.00 | - | - |"), "{text}");
        // Two of ours and three of PyTorch's.
        assert_eq!(plot(&points).matches("<circle").count(), 5);
    }
}

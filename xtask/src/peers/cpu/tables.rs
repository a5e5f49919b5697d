//! Rows as a Markdown table: every engine, the ratio to the best, the geometric mean.

use std::fmt::Write as _;

use warpforge_measure::stats::geometric_mean;

use super::contest::{Outcome, Row};
use super::roofline::Roof;
use super::stats::figure;

/// What is wanted of ratios.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    /// Of each row.
    pub(super) each: Option<f64>,
    /// Of the geometric mean.
    pub(super) mean: Option<f64>,
}

/// The table of some rows, and how far ours is from the machine's limits where they were measured.
pub(super) fn table(rows: &[Row], roof: Option<&Roof>, wanted: Wanted) -> String {
    let engines: Vec<&str> =
        rows.first().map_or(Vec::new(), |row| row.peers.iter().map(|(engine, _)| engine.as_str()).collect());
    let mut heads = vec!["ms"];
    heads.extend(&engines);
    heads.extend(["ours", "ratio", "max rel error"]);
    if roof.is_some() {
        heads.extend(["GFLOP/s", "of roofline"]);
    }
    let mut out = format!("| {} |\n| ---{} |\n", heads.join(" | "), " | ---:".repeat(heads.len() - 1));
    for row in rows {
        let mut cells = vec![row.workload.clone()];
        let best = row.best().map(|(engine, _)| engine);
        cells.extend(row.peers.iter().map(|(engine, outcome)| time(outcome, best == Some(engine.as_str()))));
        cells.push(time(&row.ours, false));
        cells.push(row.ratio().map_or("-".to_owned(), |ratio| judged(ratio, wanted.each)));
        cells.push(match &row.ours {
            Outcome::Ran(figures) => format!("{:.1e}", figures.distance),
            _ => "-".to_owned(),
        });
        if let Some(roof) = roof {
            cells.extend(roof.cells(row));
        }
        let _ = writeln!(out, "| {} |", cells.join(" | "));
    }
    out + &below(rows, wanted)
}

/// The geometric mean, and what the table cannot say.
fn below(rows: &[Row], wanted: Wanted) -> String {
    let ratios: Vec<f64> = rows.iter().filter_map(Row::ratio).collect();
    let mut out = String::new();
    if let Some(mean) = geometric_mean(&ratios).filter(|_| rows.len() > 1) {
        let mean = judged(mean, wanted.mean);
        let _ = writeln!(out, "\nGeometric mean of {} of {} ratios: {mean}", ratios.len(), rows.len());
    }
    for row in rows {
        let all = row.peers.iter().map(|(engine, outcome)| (engine.as_str(), outcome));
        for (engine, outcome) in all.chain([("ours", &row.ours)]) {
            match outcome {
                Outcome::Failed(reason) => {
                    let line = reason.lines().next().unwrap_or_default();
                    let _ = writeln!(out, "\n{}: {engine} failed: {line}", row.workload);
                }
                Outcome::Ran(figures) if !figures.fallbacks.is_empty() => {
                    let ops = figures.fallbacks.join(", ");
                    let _ = writeln!(out, "\n{}: on the reference: {ops}", row.workload);
                }
                _ => {}
            }
        }
    }
    out
}

fn time(outcome: &Outcome, best: bool) -> String {
    match outcome {
        Outcome::Ran(figures) if best => format!("**{}**", figure(figures.median())),
        Outcome::Ran(figures) => figure(figures.median()),
        Outcome::Absent => String::new(),
        Outcome::Failed(_) => "failed".to_owned(),
    }
}

/// A ratio, and whether it is less than wanted.
fn judged(ratio: f64, wanted: Option<f64>) -> String {
    match wanted {
        Some(wanted) if ratio < wanted => format!("{ratio:.2} (must be {wanted:.2})"),
        _ => format!("{ratio:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::contest::tests::{ran, row};
    use super::*;

    #[test]
    fn the_table_has_all_engines_and_the_mean() {
        let rows = [row("a", 8.0, ran(&[4.0])), row("b", 1.0, ran(&[2.0]))];
        let text = table(&rows, None, Wanted { each: Some(0.9), mean: Some(1.1) });
        assert!(
            text.starts_with("| ms | eager | xla | ours | ratio | max rel error |\n| --- | ---: | "),
            "{text}"
        );
        assert!(text.contains("| a | **8.00** |  | 4.00 | 2.00 | 1.0e-6 |"), "{text}");
        assert!(text.contains("| b | **1.00** |  | 2.00 | 0.50 (must be 0.90) | 1.0e-6 |"), "{text}");
        assert!(text.contains("mean of 2 of 2 ratios: 1.00 (must be 1.10)"), "{text}");
    }

    #[test]
    fn failures_and_the_reference_are_told() {
        let mut rows =
            [row("a", 8.0, Outcome::Failed("no kernel\nmore".to_owned())), row("b", 1.0, ran(&[1.0]))];
        if let Outcome::Ran(figures) = &mut rows[1].ours {
            figures.fallbacks.push("stablehlo.fft".to_owned());
        }
        let text = table(&rows, None, Wanted { each: None, mean: None });
        assert!(text.contains("| a | **8.00** |  | failed | - | - |"), "{text}");
        assert!(text.contains("mean of 1 of 2 ratios: 1.00\n"), "{text}");
        assert!(text.contains("a: ours failed: no kernel\n"), "{text}");
        assert!(text.contains("b: on the reference: stablehlo.fft"), "{text}");
    }
}

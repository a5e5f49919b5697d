//! The table of the zoo, the worst first.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use warpforge_measure::stats::geometric_mean;

use super::results::Row;
use crate::peers::cpu::stats::figure;

/// Every model, the mean, and for each loss our slowest kernels.
pub(super) fn table(rows: &[&Row], bound: f64) -> String {
    let mut sorted = rows.to_vec();
    let place = |row: &Row| row.ratio.unwrap_or(0.0);
    sorted.sort_by(|a, b| place(a).total_cmp(&place(b)));
    let engines: BTreeSet<&str> = rows.iter().flat_map(|row| row.peers.keys().map(String::as_str)).collect();
    let mut out = format!("| ms | {} | ours | ratio | 95 % | max rel error |\n", joined(&engines));
    let _ = writeln!(out, "| ---{} |", " | ---:".repeat(engines.len() + 4));
    for row in &sorted {
        out += &line(row, &engines, bound);
    }
    let ratios: Vec<f64> = rows.iter().filter_map(|row| row.ratio).collect();
    if let Some(mean) = geometric_mean(&ratios) {
        let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
        let slower = ratios.iter().filter(|&&ratio| ratio < 0.9).count();
        let _ = writeln!(
            out,
            "\nGeometric mean of {} of {} ratios: {mean:.2}; least {least:.2}; {slower} below 0.9",
            ratios.len(),
            rows.len()
        );
    }
    out + &losses(&sorted) + &notes(&sorted)
}

fn joined(engines: &BTreeSet<&str>) -> String {
    engines.iter().copied().collect::<Vec<_>>().join(" | ")
}

fn line(row: &Row, engines: &BTreeSet<&str>, bound: f64) -> String {
    let time = |engine: &&str| match row.peers.get(*engine) {
        Some(Ok(ms)) if row.best.as_deref() == Some(engine) => format!("**{}**", figure(*ms)),
        Some(Ok(ms)) => figure(*ms),
        Some(Err(_)) => "failed".to_owned(),
        None => String::new(),
    };
    let mut cells = vec![row.workload.clone()];
    cells.extend(engines.iter().map(time));
    cells.push(row.ours.as_ref().map_or_else(|_| "failed".to_owned(), |&ms| figure(ms)));
    cells.push(row.ratio.map_or("-".to_owned(), |ratio| format!("{ratio:.2}")));
    cells.push(row.interval.map_or("-".to_owned(), |(low, high)| format!("{low:.2} to {high:.2}")));
    cells.push(match row.distance {
        Some(distance) if distance > bound => format!("**{distance:.1e}**"),
        Some(distance) => format!("{distance:.1e}"),
        None => "-".to_owned(),
    });
    format!("| {} |\n", cells.join(" | "))
}

/// Where a peer is faster: our slowest kernels, beside what they would take at the roofline.
fn losses(rows: &[&Row]) -> String {
    let slow: Vec<_> = rows.iter().filter(|row| !row.kernels.is_empty()).collect();
    if slow.is_empty() {
        return String::new();
    }
    let mut out = "\n| model | kernels | count | ms | ms at the roofline |\n".to_owned();
    out += "| --- | --- | ---: | ---: | ---: |\n";
    for row in slow {
        for kernel in &row.kernels {
            let ms = figure(kernel.ms);
            let roofline = kernel.roofline_ms.map_or("-".to_owned(), figure);
            let name = kernel.name.replace('|', "/");
            let _ = writeln!(out, "| {} | {name} | {} | {ms} | {roofline} |", row.workload, kernel.count);
        }
    }
    out
}

/// What failed, and what the reference computed.
fn notes(rows: &[&Row]) -> String {
    let mut out = String::new();
    let first = |reason: &String| reason.lines().next().unwrap_or_default().to_owned();
    for row in rows {
        let all = row.peers.iter().map(|(engine, time)| (engine.as_str(), time));
        for (engine, time) in all.chain([("ours", &row.ours)]) {
            if let Err(reason) = time {
                let _ = writeln!(out, "\n{}: {engine} failed: {}", row.workload, first(reason));
            }
        }
        if !row.fallbacks.is_empty() {
            let _ = writeln!(out, "\n{}: on the reference: {}", row.workload, row.fallbacks.join(", "));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::kernels::Kernel;
    use super::super::results::tests::row;
    use super::*;

    #[test]
    fn the_worst_comes_first_with_its_kernels() {
        let fast = row("fast_b1", &[8.0, 8.0], &[4.0, 4.0]);
        let mut slow = row("slow_b1", &[1.0, 1.0], &[2.0, 2.0]);
        slow.kernels.push(Kernel { name: "conv".to_owned(), count: 3, ms: 1.5, roofline_ms: Some(0.5) });
        slow.fallbacks.push("stablehlo.fft".to_owned());
        let failed = Row::failed("lost_b1", "not exported\nmore".to_owned());
        let text = table(&[&fast, &slow, &failed], 1e-5);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "| ms | eager | ort | ours | ratio | 95 % | max rel error |");
        assert!(lines[2].starts_with("| lost_b1 |  |  | failed | - | - | - |"), "{text}");
        assert!(lines[3].starts_with("| slow_b1 | **1.00** | failed | 2.00 | 0.50 | "), "{text}");
        assert!(lines[4].starts_with("| fast_b1 | **8.00** | failed | 4.00 | 2.00 | "), "{text}");
        assert!(text.contains("mean of 2 of 3 ratios: 1.00; least 0.50; 1 below 0.9"), "{text}");
        assert!(text.contains("| slow_b1 | conv | 3 | 1.50 | 0.500 |"), "{text}");
        assert!(text.contains("lost_b1: ours failed: not exported\n"), "{text}");
        assert!(text.contains("slow_b1: on the reference: stablehlo.fft"), "{text}");
    }
}

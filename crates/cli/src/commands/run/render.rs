//! A run for people.

use std::fmt::Write as _;

use warpforge_measure::stats::LEAST_SAMPLES;
use warpforge_report::{Align, Screen, Style, Table, number};

use super::compare;
use super::kernels::Kernel;
use super::record::{Record, Value};
use super::state::StateRecord;

/// The record as text.
pub(super) fn text(record: &Record, screen: Screen) -> String {
    let mut out = String::new();
    let Record { model, device, tier, backend, .. } = record;
    out += &screen.line(Style::Plain, 2, &format!("{model}: {device}, tier {tier} ({backend})"));
    if !record.inputs.is_empty() {
        let _ = write!(out, "\n{}", values("input", &record.inputs).to_text(screen));
    }
    if record.outputs.is_empty() {
        out.push('\n');
    } else {
        let _ = write!(out, "\n{}\n", values("output", &record.outputs).to_text(screen));
    }
    if !record.kernels.is_empty() {
        let _ = writeln!(out, "{}", slowest(&record.kernels).to_text(screen));
    }
    let milliseconds = |value: f64| number::with_unit(value, "ms");
    let mut facts = vec![format!("compiled in {}", milliseconds(record.compile_ms))];
    if let (Some(median), Some(min)) = (record.median_ms, record.min_ms) {
        facts.push(match record.runs {
            1 => format!("ran in {}", milliseconds(median)),
            runs => format!("{runs} runs: median {}, least {}", milliseconds(median), milliseconds(min)),
        });
    }
    if let Some(bytes) = record.peak_memory_bytes {
        facts.push(format!("peak memory {} (of the {})", number::bytes(bytes), record.peak_memory_of));
    }
    for line in std::iter::once(facts.join(", ")).chain(spread(record)) {
        out += &screen.line(Style::Plain, 2, &line);
    }
    if let Some(state) = &record.state {
        for line in steps(state) {
            out += &screen.line(Style::Plain, 2, &line);
        }
    }
    if let Some(compared) = &record.compared {
        let _ = write!(out, "\n{}", compare::text(compared, screen));
    }
    out
}

/// The state, and the single numbers of each step.
fn steps(state: &StateRecord) -> Vec<String> {
    /// Steps that are shown, at the beginning and at the end.
    const SHOWN: usize = 10;
    let StateRecord { file, loaded, steps_before, values, bytes, steps } = state;
    let from = match (*loaded, *steps_before) {
        (false, _) => "written to".to_owned(),
        (true, 0) => "resumed from and written to".to_owned(),
        (true, made) => format!("resumed after step {made} from and written to"),
    };
    let mut lines = vec![format!("state: {values} values, {}, {from} {file}", number::bytes(*bytes))];
    for (at, step) in steps.iter().enumerate() {
        if at == SHOWN && steps.len() > 2 * SHOWN {
            lines.push(format!("… {} steps", steps.len() - 2 * SHOWN));
        }
        if at >= SHOWN && at + SHOWN < steps.len() {
            continue;
        }
        let numbers =
            step.outputs.iter().map(|(name, value)| format!("{name} {}", number::significant(*value, 6)));
        lines.push(format!("step {}: {}", step.step, numbers.collect::<Vec<_>>().join(", ")));
    }
    lines
}

/// How the times of several runs are spread, and what to do about it.
fn spread(record: &Record) -> Vec<String> {
    let (Some(mad), Some(min), Some(max)) = (record.mad_ms, record.min_ms, record.max_ms) else {
        return Vec::new();
    };
    let number = |value: f64| number::significant(value, 4);
    let (mad, most) = (number(mad), number(max));
    let mut lines = vec![match (record.ci_low_ms, record.ci_high_ms) {
        (Some(low), Some(high)) => {
            let (low, high) = (number(low), number(high));
            format!("95 % interval {low} to {high} ms, deviation {mad} ms, most {most} ms")
        }
        _ => format!(
            "range {} to {most} ms, deviation {mad} ms; a 95 % interval takes {LEAST_SAMPLES} runs",
            number(min)
        ),
    }];
    let count = outliers(record);
    if count > 0 {
        let slow = record.outliers.high_mild + record.outliers.high_severe;
        let first = record.times_ms.first().is_some_and(|first| *first >= max);
        let advice = if first && record.warmup_runs == 0 {
            "the first was the slowest: try --warmup 3"
        } else {
            "other programs may disturb them: try more of --repeat on a quiet machine"
        };
        lines.push(format!("{count} of {} runs are outliers, {slow} of them slow; {advice}", record.runs));
    }
    lines
}

fn outliers(record: &Record) -> usize {
    let found = &record.outliers;
    found.low_severe + found.low_mild + found.high_mild + found.high_severe
}

/// Several records side by side, and how much longer each took than the fastest.
pub(super) fn several(records: &[Record], screen: Screen) -> String {
    let mut table = Table::new(&[
        ("model", Align::Left),
        ("device", Align::Left),
        ("tier", Align::Left),
        ("runs", Align::Right),
        ("median ms", Align::Right),
        ("95 % interval", Align::Right),
        ("least", Align::Right),
        ("most", Align::Right),
        ("outliers", Align::Right),
        ("of the fastest", Align::Right),
    ]);
    let medians = records.iter().filter_map(|record| record.median_ms);
    let fastest = medians.fold(f64::INFINITY, f64::min);
    let known = |value: Option<f64>| value.map_or("-".to_owned(), |value| number::significant(value, 4));
    for record in records {
        let interval = match (record.ci_low_ms, record.ci_high_ms) {
            (Some(low), Some(high)) => format!("{} to {}", known(Some(low)), known(Some(high))),
            _ => "-".to_owned(),
        };
        let cells = [
            record.model.clone(),
            record.device.clone(),
            record.tier.clone(),
            record.runs.to_string(),
            known(record.median_ms),
            interval,
            known(record.min_ms),
            known(record.max_ms),
            outliers(record).to_string(),
            record.median_ms.map_or("-".to_owned(), |median| format!("{:.2}x", median / fastest)),
        ];
        table.row(if record.median_ms == Some(fastest) { Style::Good } else { Style::Plain }, cells);
    }
    table.to_text(screen)
}

/// Kernels that are shown: the slowest.
const SHOWN: usize = 12;

fn slowest(kernels: &[Kernel]) -> Table {
    let mut table = Table::new(&[
        ("slowest kernels", Align::Left),
        ("ms", Align::Right),
        ("tiles", Align::Right),
        ("balance", Align::Right),
        ("min", Align::Right),
        ("mean", Align::Right),
        ("max", Align::Right),
        ("NaN", Align::Right),
        ("inf", Align::Right),
        ("seen", Align::Right),
    ]);
    let mut kernels: Vec<&Kernel> = kernels.iter().collect();
    kernels.sort_by(|a, b| b.ms.total_cmp(&a.ms));
    let number = |value: Option<f64>| value.map_or("-".to_owned(), |value| number::significant(value, 4));
    for kernel in kernels.into_iter().take(SHOWN) {
        let odd = kernel.nan.unwrap_or(0) + kernel.infinite.unwrap_or(0) > 0;
        let count = |value: Option<u64>| value.map_or("-".to_owned(), |value| value.to_string());
        let seen = match (kernel.values_seen, kernel.values) {
            (Some(seen), Some(values)) if values > 0 => {
                format!("{:.0} %", seen as f64 / values as f64 * 100.0)
            }
            _ => "-".to_owned(),
        };
        table.row(
            if odd { Style::Bad } else { Style::Plain },
            [
                kernel.name.clone(),
                number::significant(kernel.ms, 4),
                count(kernel.tiles),
                number(kernel.balance),
                number(kernel.min),
                number(kernel.mean),
                number(kernel.max),
                count(kernel.nan),
                count(kernel.infinite),
                seen,
            ],
        );
    }
    table
}

fn values(what: &str, values: &[Value]) -> Table {
    let mut table = Table::new(&[
        (what, Align::Left),
        ("type", Align::Left),
        ("shape", Align::Left),
        ("min", Align::Right),
        ("mean", Align::Right),
        ("max", Align::Right),
        ("NaN", Align::Right),
        ("inf", Align::Right),
    ]);
    for value in values {
        let summary = &value.summary;
        let number = |value: Option<f64>| value.map_or("-".to_owned(), |value| number::significant(value, 5));
        let shape: Vec<String> = value.shape.iter().map(ToString::to_string).collect();
        let odd = summary.nan + summary.infinite > 0;
        table.row(
            if odd { Style::Bad } else { Style::Plain },
            [
                value.name.clone(),
                value.ty.clone(),
                if shape.is_empty() { "scalar".to_owned() } else { shape.join("x") },
                number(summary.min),
                number(summary.mean),
                number(summary.max),
                summary.nan.to_string(),
                summary.infinite.to_string(),
            ],
        );
    }
    table
}

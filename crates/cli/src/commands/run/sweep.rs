//! Sweeps: a model in every combination of tier, precision, input shapes and threads, in one table.

use std::num::NonZeroUsize;

use clap::Args;
use serde::Serialize;
use warpforge::{Precision, Tier};
use warpforge_measure::stats::LEAST_SAMPLES;
use warpforge_report::{Align, Screen, Style, Table, number};

use super::inputs::{InputArgs, NamedShape, wanted_shapes};
use super::record::Record;
use super::{Loaded, RunArgs, load, one};
use crate::exit::{Exit, Failure, Outcome};
use crate::format::Format;
use crate::{term, values};

/// Timed runs of each combination, where nobody says how many.
pub(super) const REPEAT: usize = LEAST_SAMPLES;

/// Untimed runs before them.
pub(super) const WARMUP: usize = 1;

/// The options that take several values.
#[derive(Debug, Args)]
pub(super) struct SweepArgs {
    /// How to run [default: the fastest that the device has, or correctness where single values are traced or saved].
    /// With --save, a tier that fuses saves what each fused cluster gave. Several, separated by commas, are a sweep
    #[arg(long, value_name = "TIER", value_delimiter = ',', value_parser = values::tiers())]
    tier: Vec<Tier>,
    /// What contractions multiply f32 operands as. Several, separated by commas, are a sweep
    #[arg(
        long,
        value_name = "PRECISION",
        value_delimiter = ',',
        default_value = "model",
        value_parser = values::precisions()
    )]
    precision: Vec<Precision>,
    /// The most threads to use [default: as many as the backend likes]. Several, separated by commas, are a sweep
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = values::count)]
    threads: Vec<NonZeroUsize>,
}

/// One way to run a model.
#[derive(Debug, Clone)]
pub(super) struct Combination {
    pub(super) tier: Option<Tier>,
    pub(super) precision: Precision,
    pub(super) threads: Option<NonZeroUsize>,
    pub(super) shapes: Vec<NamedShape>,
}

impl SweepArgs {
    /// Every combination; that of the last option changes fastest.
    pub(super) fn combinations(&self, inputs: &InputArgs) -> Vec<Combination> {
        let (tiers, threads, shapes) = (each(&self.tier), each(&self.threads), inputs.shapes());
        let mut combinations = Vec::new();
        for &tier in &tiers {
            for &precision in &self.precision {
                for shapes in &shapes {
                    combinations.extend(threads.iter().map(|&threads| Combination {
                        tier,
                        precision,
                        threads,
                        shapes: shapes.clone(),
                    }));
                }
            }
        }
        combinations
    }
}

/// Each value that was given, or the default.
fn each<T: Copy>(values: &[T]) -> Vec<Option<T>> {
    if values.is_empty() { vec![None] } else { values.iter().copied().map(Some).collect() }
}

/// A row of a sweep: one model run in one way.
#[derive(Debug, Serialize)]
struct Row {
    model: String,
    device: String,
    tier: Option<String>,
    precision: String,
    threads: Option<usize>,
    /// The inputs with their shapes.
    inputs: String,
    /// The leading dimension of the first input that has one.
    items: Option<usize>,
    runs: usize,
    median_ms: Option<f64>,
    ci_low_ms: Option<f64>,
    ci_high_ms: Option<f64>,
    mad_ms: Option<f64>,
    min_ms: Option<f64>,
    max_ms: Option<f64>,
    items_per_second: Option<f64>,
    /// Why it could not run.
    error: Option<String>,
}

impl Row {
    fn of(record: &Record) -> Self {
        let items = record.items();
        let per_second = |median_ms: f64| items as f64 * 1e3 / median_ms;
        Self {
            model: record.model.clone(),
            device: record.device.clone(),
            tier: Some(record.tier.clone()),
            precision: record.precision.clone(),
            threads: Some(record.threads),
            inputs: record.input_shapes(),
            items: Some(items),
            runs: record.runs,
            median_ms: record.median_ms,
            ci_low_ms: record.ci_low_ms,
            ci_high_ms: record.ci_high_ms,
            mad_ms: record.mad_ms,
            min_ms: record.min_ms,
            max_ms: record.max_ms,
            items_per_second: record.median_ms.filter(|median| *median > 0.0).map(per_second),
            error: None,
        }
    }

    fn failed(args: &RunArgs, loaded: &Loaded<'_>, combination: &Combination, error: String) -> Self {
        Self {
            model: warpforge::shown(loaded.path),
            device: args.device.to_string(),
            tier: combination.tier.map(|tier| tier.to_string()),
            precision: combination.precision.to_string(),
            threads: combination.threads.map(NonZeroUsize::get),
            inputs: wanted_shapes(&loaded.model, &combination.shapes),
            items: None,
            runs: 0,
            median_ms: None,
            ci_low_ms: None,
            ci_high_ms: None,
            mad_ms: None,
            min_ms: None,
            max_ms: None,
            items_per_second: None,
            error: Some(error),
        }
    }
}

/// Runs every model in every combination. One that cannot run has a row with the reason.
pub(super) fn run(args: &RunArgs, combinations: &[Combination], taken: bool) -> Outcome {
    let (mut rows, mut records, mut failures) = (Vec::new(), Vec::new(), Vec::new());
    let mut exit = Exit::Pass;
    for path in &args.models {
        let loaded = load(args, path)?;
        for combination in combinations {
            match one(args, &loaded, combination) {
                Ok((record, own)) => {
                    exit = if exit == Exit::Pass { own } else { exit };
                    rows.push(Row::of(&record));
                    records.push(record);
                }
                Err(failure) => {
                    rows.push(Row::failed(args, &loaded, combination, failure.reason()));
                    failures.push(failure);
                }
            }
        }
    }
    if records.is_empty() {
        let mut failures = failures.into_iter();
        let Some(first) = failures.next() else { return Ok(exit) };
        // What is wrong with all of them alike is wrong with the command.
        if failures.all(|failure| failure.reason() == first.reason()) {
            return Err(first);
        }
        exit = first.exit;
    } else {
        args.keep.keep(&records, &axes(combinations))?;
    }
    print(&rows, args.format.form(), taken)?;
    Ok(exit)
}

/// What differs between the combinations besides what every kept time is tagged with.
fn axes(combinations: &[Combination]) -> Vec<Axis> {
    let shapes = |combination: &Combination| -> Vec<String> {
        combination.shapes.iter().map(ToString::to_string).collect()
    };
    let differs = |alike: &dyn Fn(&Combination, &Combination) -> bool| {
        combinations.windows(2).any(|pair| !alike(&pair[0], &pair[1]))
    };
    let threads = differs(&|a, b| a.threads == b.threads).then_some(Axis::Threads);
    let inputs = differs(&|a, b| shapes(a) == shapes(b)).then_some(Axis::Inputs);
    threads.into_iter().chain(inputs).collect()
}

/// What a sweep may go over that single runs are compared across.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Axis {
    Threads,
    Inputs,
}

fn print(rows: &[Row], form: Format, taken: bool) -> Result<(), Failure> {
    let text = match form {
        Format::Json => return term::print_json(&rows),
        Format::Csv => spreadsheet(rows).to_csv().map_err(Failure::not_possible)?,
        Format::Markdown => table(rows, &LABELS).to_markdown(),
        Format::Text => text(rows, term::screen(taken)),
    };
    term::print_beside(taken, &text)
}

/// What stands for what is not known.
const UNKNOWN: &str = "-";

/// What says which way a row was run: its heading and its text.
type Label = (&'static str, fn(&Row) -> String);

const LABELS: [Label; 6] = [
    ("model", |row| row.model.clone()),
    ("device", |row| row.device.clone()),
    ("tier", |row| row.tier.clone().unwrap_or_else(|| UNKNOWN.to_owned())),
    ("precision", |row| row.precision.clone()),
    ("inputs", |row| row.inputs.clone()),
    ("threads", |row| row.threads.map_or(UNKNOWN.to_owned(), |threads| threads.to_string())),
];

/// What people read on a terminal: in the table what differs, above it what does not.
fn text(rows: &[Row], screen: Screen) -> String {
    // What could not run does not know everything, such as which tier is the default.
    let known = |(_, label): &Label| {
        let mut texts: Vec<String> = rows.iter().map(label).filter(|text| text != UNKNOWN).collect();
        texts.dedup();
        texts
    };
    let (different, alike): (Vec<Label>, Vec<Label>) =
        LABELS.into_iter().partition(|label| known(label).len() > 1);
    let facts = alike.iter().filter_map(|label| Some(format!("{} {}", label.0, known(label).first()?)));
    let heading = screen.line(Style::Plain, 2, &facts.collect::<Vec<_>>().join(", "));
    format!("{heading}\n{}", table(rows, &different).to_text(screen))
}

/// The rows with these labels, and numbers of a few digits.
fn table(rows: &[Row], labels: &[Label]) -> Table {
    let known = |value: Option<f64>| value.map_or(UNKNOWN.to_owned(), |value| number::significant(value, 4));
    let failed = rows.iter().any(|row| row.error.is_some());
    let mut columns: Vec<(&str, Align)> = labels.iter().map(|(name, _)| (*name, Align::Left)).collect();
    // Few runs have a range and no interval.
    let is_interval = rows.iter().any(|row| row.ci_low_ms.is_some());
    let spread = if is_interval { "95 % interval" } else { "range ms" };
    columns.extend(["runs", "median ms", "deviation ms", spread, "items/s"].map(|name| (name, Align::Right)));
    columns.extend(failed.then_some(("cannot run", Align::Left)));
    let mut table = Table::new(&columns);
    let fastest = rows.iter().filter_map(|row| row.items_per_second).fold(0.0, f64::max);
    for row in rows {
        let ends = if is_interval { (row.ci_low_ms, row.ci_high_ms) } else { (row.min_ms, row.max_ms) };
        let interval = match ends {
            (Some(low), Some(high)) => format!("{} to {}", known(Some(low)), known(Some(high))),
            _ => UNKNOWN.to_owned(),
        };
        let mut cells: Vec<String> = labels.iter().map(|(_, label)| label(row)).collect();
        cells.extend([
            row.runs.to_string(),
            known(row.median_ms),
            known(row.mad_ms),
            interval,
            known(row.items_per_second),
        ]);
        cells.extend(row.error.clone());
        let style = match row.items_per_second {
            _ if row.error.is_some() => Style::Faint,
            Some(rate) if rate >= fastest => Style::Good,
            _ => Style::Plain,
        };
        table.row(style, cells);
    }
    table
}

/// What programs read: every field in full, empty where it is unknown.
fn spreadsheet(rows: &[Row]) -> Table {
    const HEADER: [&str; 16] = [
        "model",
        "device",
        "tier",
        "precision",
        "threads",
        "inputs",
        "items",
        "runs",
        "median_ms",
        "ci_low_ms",
        "ci_high_ms",
        "mad_ms",
        "min_ms",
        "max_ms",
        "items_per_second",
        "error",
    ];
    fn known(value: Option<impl ToString>) -> String {
        value.map(|value| value.to_string()).unwrap_or_default()
    }
    let mut table = Table::new(&HEADER.map(|name| (name, Align::Left)));
    for row in rows {
        let cells: [String; HEADER.len()] = [
            row.model.clone(),
            row.device.clone(),
            known(row.tier.as_ref()),
            row.precision.clone(),
            known(row.threads),
            row.inputs.clone(),
            known(row.items),
            row.runs.to_string(),
            known(row.median_ms),
            known(row.ci_low_ms),
            known(row.ci_high_ms),
            known(row.mad_ms),
            known(row.min_ms),
            known(row.max_ms),
            known(row.items_per_second),
            known(row.error.as_ref()),
        ];
        table.row(Style::Plain, cells);
    }
    table
}

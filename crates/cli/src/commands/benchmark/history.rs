//! `warpt benchmark history`: earlier runs, and one metric over time.

use std::num::NonZeroUsize;

use anyhow::anyhow;
use clap::{Args, Subcommand};
use warpforge_bench::history::{History, TrendPoint};
use warpforge_bench::selection::nearest;
use warpforge_report::number::{significant, with_unit};
use warpforge_report::{Align, Style, Table, plot};

use super::load::{load_run, open_history};
use crate::exit::{Exit, Failure, Outcome};
use crate::format::FormatArgs;
use crate::{term, values};

/// The size of the plot, labels included, where the terminal is not narrower.
const PLOT_COLUMNS: usize = 78;
const PLOT_ROWS: usize = 10;

/// Arguments of `warpt benchmark history`.
#[derive(Debug, Args)]
pub(crate) struct HistoryArgs {
    #[command(subcommand)]
    command: Option<HistoryCommand>,
    /// Print JSON for programs
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum HistoryCommand {
    /// List the newest runs; what `history` does without a subcommand
    List {
        /// How many
        #[arg(long, value_name = "N", default_value = "20", value_parser = values::count)]
        limit: NonZeroUsize,
        /// Print JSON for programs
        #[arg(long)]
        json: bool,
    },
    /// Show one run again
    Show {
        /// A run's id, the beginning of one, `latest`, or `latest~1` for the one before it
        run: String,
        #[command(flatten)]
        format: FormatArgs,
    },
    /// Plot one metric over time
    Trend {
        /// The benchmark, such as `cpu_flops`
        #[arg(value_parser = values::benchmarks())]
        benchmark: String,
        /// The metric, such as `gflops`; without it the metrics are listed
        #[arg(value_parser = values::metrics(), hide_possible_values = true)]
        metric: Option<String>,
        /// Only the metric with these tags; may be given several times
        #[arg(long, value_name = "NAME=VALUE")]
        tag: Vec<String>,
        /// How many of the newest runs
        #[arg(long, value_name = "N", default_value = "60", value_parser = values::count)]
        limit: NonZeroUsize,
        /// Print JSON for programs
        #[arg(long)]
        json: bool,
    },
}

/// Shows the history.
pub(crate) fn run(args: &HistoryArgs) -> Outcome {
    match &args.command {
        None => list(20, args.json),
        Some(HistoryCommand::List { limit, json }) => list(limit.get(), *json),
        Some(HistoryCommand::Show { run, format }) => {
            super::print(&load_run(run)?, format.form(), false)?;
            Ok(Exit::Pass)
        }
        Some(HistoryCommand::Trend { benchmark, metric, tag, limit, json }) => {
            trend(benchmark, metric.as_deref(), tag, limit.get(), *json)
        }
    }
}

fn list(limit: usize, json: bool) -> Outcome {
    let entries = open_history()?.list(limit).map_err(Failure::not_possible)?;
    if json {
        term::print_json(&entries)?;
        return Ok(Exit::Pass);
    }
    if entries.is_empty() {
        crate::term::tell!("the history is empty; `warpt benchmark run` adds to it");
        return Ok(Exit::Pass);
    }
    let columns = ["run", "started (UTC)", "suite", "benchmarks"].map(|name| (name, Align::Left));
    let mut table = Table::new(&columns);
    for entry in entries {
        let started = second(&entry.start_time);
        table
            .row(Style::Plain, [entry.run_id, started, entry.suites.join(", "), entry.benchmarks.join(", ")]);
    }
    term::print(&table.to_text(term::screen(false)))?;
    Ok(Exit::Pass)
}

fn trend(benchmark: &str, metric: Option<&str>, tags: &[String], limit: usize, json: bool) -> Outcome {
    let history = open_history()?;
    let known = history.metric_names(benchmark).map_err(Failure::not_possible)?;
    if known.is_empty() {
        return Err(no_such_benchmark(&history, benchmark)?);
    }
    let fits = |(name, text): &&(String, String)| {
        metric.is_none_or(|metric| metric == name) && tags.iter().all(|tag| text.split(',').any(|t| t == tag))
    };
    let found: Vec<_> = known.iter().filter(fits).collect();
    match found[..] {
        [(name, tags)] => {
            let points = history.trend(benchmark, (name, tags), limit).map_err(Failure::not_possible)?;
            if json {
                term::print_json(&points)?;
            } else {
                term::print(&trend_text(&format!("{benchmark} {name} {tags}"), &points))?;
            }
            Ok(Exit::Pass)
        }
        [] => Err(Failure::bad_input(anyhow!(
            "no such metric of {benchmark} in the history; there are:\n{}",
            names(&known.iter().collect::<Vec<_>>())
        ))),
        _ => Err(Failure::bad_input(anyhow!(
            "{} metrics fit; narrow it down to one of these with a name and --tag NAME=VALUE:\n{}",
            found.len(),
            names(&found)
        ))),
    }
}

fn no_such_benchmark(history: &History, benchmark: &str) -> Result<Failure, Failure> {
    let entries = history.list(usize::MAX).map_err(Failure::not_possible)?;
    let hint = nearest(benchmark, entries.iter().flat_map(|entry| &entry.benchmarks).map(String::as_str))
        .map_or(String::new(), |nearest| format!(", did you mean `{nearest}`?"));
    Ok(Failure::bad_input(anyhow!("the history has no metrics of `{benchmark}`{hint}")))
}

fn names(metrics: &[&(String, String)]) -> String {
    metrics.iter().map(|(name, tags)| format!("  {name}  {tags}")).collect::<Vec<_>>().join("\n")
}

fn trend_text(title: &str, points: &[TrendPoint]) -> String {
    let mut table = Table::new(&[
        ("started (UTC)", Align::Left),
        ("value", Align::Right),
        ("95 % interval", Align::Left),
        ("run", Align::Left),
    ]);
    for point in points {
        let interval = match (point.ci_low, point.ci_high) {
            (Some(low), Some(high)) if low < high => {
                format!("{} – {}", significant(low, 4), significant(high, 4))
            }
            _ => String::new(),
        };
        let value = with_unit(point.value, &point.unit);
        table.row(Style::Plain, [second(&point.start_time), value, interval, point.run_id.clone()]);
    }
    let values: Vec<_> = points.iter().map(|point| point.value).collect();
    let screen = term::screen(false);
    let columns = screen.columns.map_or(PLOT_COLUMNS, |columns| columns.min(PLOT_COLUMNS));
    let heading = screen.line(Style::Plain, 2, title);
    format!("{heading}\n{}\n{}", plot(&values, columns, PLOT_ROWS), table.to_text(screen))
}

/// A time to the second, for people.
fn second(time: &str) -> String {
    time.get(..19).unwrap_or(time).replace('T', " ")
}

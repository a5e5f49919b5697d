//! `cargo xtask aa`: benchmarks repeated on one machine, and how often the comparison calls the same program changed.
//!
//! `warpt benchmark compare --self-test` does this for one kernel; this does it for whole suites, as a user would.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};
use clap::Args;
use serde_json::Value;

use crate::command::output;
use crate::peers::tools;

/// Of so many comparisons one may be called changed.
const ONE_OF: usize = 20;

/// Arguments of `cargo xtask aa`.
#[derive(Debug, Args)]
pub(crate) struct AaArgs {
    /// The suites whose benchmarks are repeated
    #[arg(long, value_delimiter = ',', default_value = "micro,linpack,pepbench")]
    suite: Vec<String>,
    /// Only these benchmarks of them
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// How many pairs of runs each benchmark has
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..))]
    pairs: u16,
    /// Seconds of each run [default: the benchmark's own]
    #[arg(long)]
    duration: Option<f64>,
    /// An existing release build of warpt, instead of building one
    #[arg(long)]
    warpt: Option<PathBuf>,
}

/// What came of the pairs of one benchmark.
#[derive(Debug, Default, PartialEq, Eq)]
struct Tally {
    comparisons: usize,
    changed: usize,
    metrics: usize,
    changed_metrics: usize,
    inconclusive_metrics: usize,
    /// The metrics that were called changed.
    alarms: Vec<String>,
}

impl Tally {
    /// Adds what `warpt benchmark compare --json` says.
    fn add(&mut self, comparison: &Value) -> anyhow::Result<()> {
        let metrics = comparison["metrics"].as_array().context("a comparison without metrics")?;
        let of = |verdicts: &[&str]| {
            let fits = |metric: &&Value| verdicts.iter().any(|verdict| metric["verdict"] == *verdict);
            metrics.iter().filter(fits).collect::<Vec<_>>()
        };
        let alarms = of(&["improved", "regressed"]);
        self.comparisons += 1;
        self.changed += usize::from(!alarms.is_empty());
        self.metrics += metrics.len();
        self.changed_metrics += alarms.len();
        self.inconclusive_metrics += of(&["inconclusive"]).len();
        self.alarms.extend(alarms.into_iter().map(|metric| {
            format!(
                "{} {}: {:+.1} %",
                metric["name"],
                metric["tags"],
                metric["change_percent"].as_f64().unwrap_or(f64::NAN)
            )
        }));
        Ok(())
    }

    /// Whether few enough comparisons were called changed.
    fn passes(&self) -> bool {
        self.changed * ONE_OF <= self.comparisons
    }
}

/// Repeats the benchmarks and prints the table; fails where too many comparisons were called changed.
pub(crate) fn run(args: &AaArgs) -> anyhow::Result<()> {
    let warpt = args.warpt.clone().map_or_else(tools::build_warpt, Ok)?;
    let folder = tempfile::tempdir()?;
    let names = benchmarks(&warpt, args)?;
    let mut rows = Vec::new();
    for name in &names {
        match tally(&warpt, name, args, folder.path()) {
            Ok(tally) => rows.push((name.clone(), tally)),
            Err(error) => eprintln!("{name} is left out: {error:#}"),
        }
    }
    let (text, passes) = table(&rows);
    println!("{text}");
    if !passes {
        bail!("more than one comparison of {ONE_OF} called the same program changed");
    }
    Ok(())
}

/// The benchmarks to repeat.
fn benchmarks(warpt: &Path, args: &AaArgs) -> anyhow::Result<Vec<String>> {
    let listing: Value =
        serde_json::from_str(&output(Command::new(warpt).args(["benchmark", "list", "--json"]))?)?;
    let suites = listing["suites"].as_array().context("no suites")?;
    if let Some(name) = args.suite.iter().find(|name| suites.iter().all(|suite| suite["name"] != **name)) {
        bail!("--suite {name}: there is none of that name");
    }
    let chosen = suites.iter().filter(|suite| args.suite.iter().any(|name| suite["name"] == *name));
    let specs = chosen.flat_map(|suite| suite["benchmarks"].as_array().into_iter().flatten());
    let names: Vec<String> = specs.filter_map(|spec| Some(spec["id"]["name"].as_str()?.to_owned())).collect();
    if let Some(name) = args.only.iter().find(|name| !names.contains(name)) {
        bail!("--only {name}: there are {}", names.join(", "));
    }
    Ok(names.into_iter().filter(|name| args.only.is_empty() || args.only.contains(name)).collect())
}

/// Runs a benchmark twice, as often as asked, and compares the runs of each pair.
fn tally(warpt: &Path, name: &str, args: &AaArgs, folder: &Path) -> anyhow::Result<Tally> {
    let mut tally = Tally::default();
    for pair in 1..=args.pairs {
        eprintln!("{name}: {pair} of {}", args.pairs);
        let files = ["a.json", "b.json"].map(|file| folder.join(file));
        for file in &files {
            let mut command = Command::new(warpt);
            command
                .args(["benchmark", "run", "--benchmark", name, "--no-history", "--export-file"])
                .arg(file);
            if let Some(seconds) = args.duration {
                command.args(["--duration", &seconds.to_string()]);
            }
            output(&mut command)?;
        }
        let mut command = Command::new(warpt);
        let comparison = output(command.args(["benchmark", "compare", "--json"]).args(&files))?;
        tally.add(&serde_json::from_str(&comparison)?)?;
    }
    Ok(tally)
}

/// The table as Markdown with a line of sums, and whether they pass.
fn table(rows: &[(String, Tally)]) -> (String, bool) {
    let mut out =
        "| benchmark | comparisons | called changed | metrics | called changed | inconclusive |\n".to_owned();
    out += "| --- | ---: | ---: | ---: | ---: | ---: |\n";
    let mut all = Tally::default();
    for (name, tally) in rows {
        line(&mut out, name, tally);
        all.comparisons += tally.comparisons;
        all.changed += tally.changed;
        all.metrics += tally.metrics;
        all.changed_metrics += tally.changed_metrics;
        all.inconclusive_metrics += tally.inconclusive_metrics;
    }
    line(&mut out, "all", &all);
    for (name, tally) in rows {
        for alarm in &tally.alarms {
            let _ = writeln!(out, "\n- {name}: {alarm}");
        }
    }
    (out, all.passes())
}

fn line(out: &mut String, name: &str, tally: &Tally) {
    let Tally { comparisons, changed, metrics, changed_metrics, inconclusive_metrics, .. } = tally;
    let _ = writeln!(
        out,
        "| {name} | {comparisons} | {changed} | {metrics} | {changed_metrics} | {inconclusive_metrics} |"
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn comparison(verdicts: &[&str]) -> Value {
        let metric =
            |verdict: &&str| json!({"name": "m", "tags": {}, "verdict": verdict, "change_percent": 7.5});
        json!({"metrics": verdicts.iter().map(metric).collect::<Vec<_>>()})
    }

    #[test]
    fn a_comparison_is_changed_when_any_metric_is() {
        let mut tally = Tally::default();
        tally.add(&comparison(&["unchanged", "inconclusive"])).unwrap();
        assert!(tally.passes());
        tally.add(&comparison(&["improved", "regressed", "unchanged"])).unwrap();
        assert_eq!((tally.comparisons, tally.changed), (2, 1));
        assert_eq!((tally.metrics, tally.changed_metrics, tally.inconclusive_metrics), (5, 2, 1));
        assert_eq!(tally.alarms.len(), 2);
        assert!(!tally.passes());
        assert!(tally.add(&json!({})).is_err());
    }

    #[test]
    fn one_of_twenty_comparisons_may_be_wrong() {
        let rows = |changed| {
            let of = |comparisons, changed| Tally { comparisons, changed, ..Tally::default() };
            [("a".to_owned(), of(18, 0)), ("b".to_owned(), of(2, changed))]
        };
        let (text, passes) = table(&rows(1));
        assert!(passes && text.contains("| all | 20 | 1 |"), "{text}");
        assert!(!table(&rows(2)).1);
    }
}

//! `warpt benchmark describe`: everything about one benchmark.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use clap::Args;
use serde::Serialize;
use warpforge_bench::record::BenchmarkSpec;
use warpforge_bench::selection;
use warpforge_report::{Screen, Style};

use crate::exit::{Exit, Failure, Outcome};
use crate::{term, values};

/// Arguments of `warpt benchmark describe`.
#[derive(Debug, Args)]
pub(crate) struct DescribeArgs {
    /// The suite; without it the name is looked up in all of them
    #[arg(long, value_name = "SUITE", value_parser = values::suites())]
    suite: Option<String>,
    /// The benchmark
    #[arg(long, value_name = "BENCHMARK", value_parser = values::benchmarks())]
    benchmark: String,
    /// Print JSON for programs
    #[arg(long)]
    json: bool,
}

/// Prints one benchmark's specification.
pub(crate) fn run(args: &DescribeArgs) -> Outcome {
    let suite = args.suite.as_deref().map(selection::suite).transpose().map_err(Failure::bad_input)?;
    let benchmark = selection::benchmark(suite, &args.benchmark).map_err(Failure::bad_input)?;
    let described = Described {
        spec: benchmark.spec(),
        takes: benchmark.takes().into_iter().collect(),
        peers: benchmark.peers().iter().map(|peer| (peer.name(), peer.description())).collect(),
    };
    if args.json {
        term::print_json(&described)?;
    } else {
        term::print(&text(&described, term::screen(false)))?;
    }
    Ok(Exit::Pass)
}

/// A benchmark with what its parameters take and what it can be measured beside.
#[derive(Serialize)]
struct Described {
    #[serde(flatten)]
    spec: BenchmarkSpec,
    takes: BTreeMap<&'static str, String>,
    peers: BTreeMap<&'static str, &'static str>,
}

fn text(described: &Described, screen: Screen) -> String {
    let Described { spec, takes, peers } = described;
    let mut out = format!("{}\n", spec.id);
    if let Some(description) = &spec.description {
        out += &screen.line(Style::Plain, 0, &format!("  {description}"));
    }
    let duration =
        spec.default_duration_seconds.map_or("as long as it takes".to_owned(), |s| format!("{s} s"));
    let rows = [
        ("components", super::component_names(&spec.components)),
        ("kind", spec.kind.to_string()),
        ("default duration", duration),
        ("external tool", spec.external_tool.clone().unwrap_or_else(|| "none".to_owned())),
    ];
    out.push('\n');
    for (name, value) in rows {
        out += &screen.labelled(&format!("  {name:<18}"), &value);
    }
    if let Some(params) = &spec.params {
        let _ = writeln!(out, "\n  Parameters, set with --param NAME=VALUE:");
        for (name, value) in params {
            let value = value.to_string();
            let value = if value.is_empty() { "(empty)" } else { &value };
            let takes = takes.get(name.as_str()).map_or(String::new(), |takes| format!("; takes {takes}"));
            out += &screen.labelled(&format!("    {name:<18}"), &format!("{value}{takes}"));
        }
    }
    if !peers.is_empty() {
        let _ = writeln!(out, "\n  Peers, measured in turn with it by --beside PEER:");
        for (name, description) in peers {
            out += &screen.labelled(&format!("    {name:<18}"), description);
        }
    }
    out
}

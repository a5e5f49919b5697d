//! `warpt benchmark list`: the suites and their benchmarks.

use clap::Args;
use serde::Serialize;
use warpforge_bench::record::BenchmarkSpec;
use warpforge_bench::selection;
use warpforge_bench::suites::SUITES;
use warpforge_report::{Screen, Style};

use crate::exit::{Exit, Failure, Outcome};
use crate::{term, values};

/// Arguments of `warpt benchmark list`.
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Only this suite
    #[arg(long, value_name = "SUITE", value_parser = values::suites())]
    suite: Option<String>,
    /// Only benchmarks of these components; may be given several times or separated by commas
    #[arg(long, value_name = "COMPONENT", value_delimiter = ',', value_parser = values::components())]
    component: Vec<String>,
    /// Print JSON for programs
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Listing {
    suites: Vec<SuiteListing>,
}

#[derive(Serialize)]
struct SuiteListing {
    name: &'static str,
    description: &'static str,
    benchmarks: Vec<BenchmarkSpec>,
}

/// Prints the suites and their benchmarks.
pub(crate) fn run(args: &ListArgs) -> Outcome {
    let listing = select(args)?;
    if args.json {
        term::print_json(&listing)?;
    } else if listing.suites.is_empty() {
        crate::term::tell!("no benchmark is of these components");
    } else {
        term::print(&text(&listing, term::screen(false)))?;
    }
    Ok(Exit::Pass)
}

fn select(args: &ListArgs) -> Result<Listing, Failure> {
    let only = args.suite.as_deref().map(selection::suite).transpose().map_err(Failure::bad_input)?;
    let components = args.component.iter().map(|name| selection::component(name.trim()));
    let components = components.collect::<Result<Vec<_>, _>>().map_err(Failure::bad_input)?;
    let fits = |spec: &BenchmarkSpec| {
        components.is_empty() || spec.components.iter().any(|c| components.contains(c))
    };
    let suites = SUITES.iter().filter(|suite| only.is_none_or(|only| only.name == suite.name));
    let suites = suites.map(|suite| SuiteListing {
        name: suite.name,
        description: suite.description,
        benchmarks: suite.list_benchmarks().into_iter().filter(fits).collect(),
    });
    Ok(Listing { suites: suites.filter(|suite| !suite.benchmarks.is_empty()).collect() })
}

fn text(listing: &Listing, screen: Screen) -> String {
    let mut out = String::new();
    let names = listing.suites.iter().flat_map(|suite| &suite.benchmarks).map(|spec| spec.id.name.len());
    let width = names.max().unwrap_or(0);
    for suite in &listing.suites {
        out += &screen.line(Style::Plain, 2, &format!("{}: {}", suite.name, suite.description));
        for spec in &suite.benchmarks {
            let components = super::component_names(&spec.components);
            let description = spec.description.as_deref().unwrap_or_default();
            let description = description.split(". ").next().unwrap_or_default();
            out += &screen.labelled(&format!("  {:<width$}  {components:<7}  ", spec.id.name), description);
        }
    }
    out
}

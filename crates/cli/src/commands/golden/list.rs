//! `warpt golden list`.

use std::collections::BTreeMap;

use clap::Args;
use serde::Serialize;
use warpforge_golden_bench::Description;
use warpforge_golden_bench::description::{Overrides, names};
use warpforge_report::{Screen, Style};

use crate::exit::{Exit, Failure, Outcome};
use crate::term;

/// Arguments of `warpt golden list`.
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Print JSON for programs
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Benchmark {
    name: String,
    title: String,
    presets: BTreeMap<String, Preset>,
}

#[derive(Serialize)]
struct Preset {
    title: String,
    model_licence: String,
    data_licence: String,
}

pub(super) fn run(args: &ListArgs) -> Outcome {
    let benchmarks = names().map(benchmark).collect::<Result<Vec<_>, _>>()?;
    if args.json {
        term::print_json(&benchmarks)?;
    } else {
        term::print(&text(&benchmarks, term::screen(false)))?;
    }
    Ok(Exit::Pass)
}

fn benchmark(name: &str) -> Result<Benchmark, Failure> {
    let description = Description::find(name)?;
    let preset = |(name, title): (&str, &str)| {
        let plan = description.plan(Some(name), &Overrides::default())?;
        let preset = Preset {
            title: title.to_owned(),
            model_licence: plan.model.licence,
            data_licence: plan.data.licence,
        };
        Ok::<_, Failure>((name.to_owned(), preset))
    };
    let presets = description.presets().into_iter().map(preset).collect::<Result<_, _>>()?;
    Ok(Benchmark { name: name.to_owned(), title: description.title().to_owned(), presets })
}

fn text(benchmarks: &[Benchmark], screen: Screen) -> String {
    let mut out = String::new();
    for benchmark in benchmarks {
        out += &screen.line(Style::Plain, 2, &format!("{}: {}", benchmark.name, benchmark.title));
        let width = benchmark.presets.keys().map(String::len).max().unwrap_or(0);
        for (name, preset) in &benchmark.presets {
            let Preset { title, model_licence, data_licence } = preset;
            let line = format!("{title}. Licences: model {model_licence}, data {data_licence}");
            out += &screen.labelled(&format!("  {name:<width$}  "), &line);
        }
    }
    out
}

//! `warpt microbench`: quantized layers, as a YAML file asks.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use clap::Args;
use jiff::Timestamp;
use warpforge_bench::history::History;
use warpforge_bench::microbench::config::{Config, read};
use warpforge_bench::microbench::run::{Row, predicted_seconds, recommended, rows};
use warpforge_bench::microbench::{csv, record};
use warpforge_probes::cpu::Dtype;
use warpforge_probes::limits::Limits;
use warpforge_report::chrome_trace;

use crate::exit::{Exit, Failure, Outcome};
use crate::{output, term};

/// The largest file.
const MOST_BYTES: u64 = 1 << 20;

/// Arguments of `warpt microbench`.
#[derive(Debug, Args)]
pub(crate) struct MicrobenchArgs {
    /// The YAML file: recipes, shapes, models
    #[arg(long, value_name = "FILE.yml")]
    config: PathBuf,
    /// List what would run, with the least time it would take, and run nothing
    #[arg(long)]
    dry_run: bool,
    /// Name the fastest recipe of each shape that keeps the signal of --min-sqnr
    #[arg(long)]
    recommend: bool,
    /// With --recommend, the least signal-to-quantization-noise ratio, in dB
    #[arg(long, value_name = "DB", requires = "recommend", default_value_t = 20.0)]
    min_sqnr: f64,
    /// Print the rows as JSON
    #[arg(long)]
    json: bool,
}

/// Measures what a file asks for.
pub(crate) fn run(args: &MicrobenchArgs) -> Outcome {
    if !args.min_sqnr.is_finite() {
        return Err(Failure::bad_input(anyhow!("--min-sqnr {} is not a number of dB", args.min_sqnr)));
    }
    let path = &args.config;
    let config = load(path)?;
    if args.dry_run {
        return dry_run(&config, args.json);
    }
    let start = Timestamp::now();
    if !args.json {
        println!("{}", line(&HEADER.map(str::to_owned)));
    }
    let mut rows = rows(&config, &mut |row| {
        if !args.json {
            println!("{}", line(&cells(row)));
        }
    });
    let folder = Path::new(&config.output_dir);
    let file = folder.join("results.csv");
    std::fs::create_dir_all(folder)
        .with_context(|| format!("cannot make {}", folder.display()))
        .map_err(Failure::not_possible)?;
    for row in &mut rows {
        write_profiles(folder, row)?;
    }
    output::write(&file, csv::text(&config, &rows).as_bytes())?;
    term::remark(&format!("the rows are in {}", file.display()));
    let run = record::suite_run(&rows, start, Timestamp::now());
    History::open_default().and_then(|mut history| history.save(&run)).map_err(Failure::not_possible)?;
    term::remark(&format!("kept in the history as {}", run.run_id));
    let chosen = if args.recommend { recommended(&rows, args.min_sqnr) } else { Vec::new() };
    if args.json {
        let names: Vec<_> = chosen
            .iter()
            .map(|row| serde_json::json!({ "name": row.name, "m": row.m, "k": row.k, "n": row.n, "quantization": row.quantization }))
            .collect();
        println!("{}", serde_json::json!({ "run_id": run.run_id, "rows": rows, "recommended": names }));
    } else if args.recommend {
        println!("fastest with at least {} dB:", args.min_sqnr);
        for row in &chosen {
            println!("  {}x{}x{}: {}", row.m, row.k, row.n, row.quantization);
        }
        if chosen.is_empty() {
            println!("  none");
        }
    }
    let measured = rows.iter().any(|row| row.time().is_some());
    Ok(if measured { Exit::Pass } else { Exit::NotPossible })
}

/// Writes the trace and the memory timeline of a row, where they are asked for.
fn write_profiles(folder: &Path, row: &mut Row) -> Result<(), Failure> {
    let title = format!("{} {} {}x{}x{}", row.name, row.quantization, row.m, row.k, row.n);
    let stem: String =
        title.chars().map(|c| if c.is_ascii_alphanumeric() || "-.".contains(c) { c } else { '_' }).collect();
    let made = |part: &str| -> Result<PathBuf, Failure> {
        let folder = folder.join(part);
        std::fs::create_dir_all(&folder)
            .with_context(|| format!("cannot make {}", folder.display()))
            .map_err(Failure::not_possible)?;
        Ok(folder)
    };
    if let Some(profile) = &row.profile {
        let path = made("profiler")?.join(format!("{stem}_profile.json"));
        output::write(&path, chrome_trace(profile, &title).as_bytes())?;
        row.profiler_json_path = Some(path.display().to_string());
    }
    if let Some(timeline) = &row.timeline {
        let folder = made("memory_profiler")?;
        let [json, html] = ["json", "html"].map(|ending| folder.join(format!("{stem}_memory.{ending}")));
        output::write(&json, format!("{}\n", timeline.json()).as_bytes())?;
        output::write(&html, timeline.html(&title).as_bytes())?;
        row.memory_paths = Some([json, html].map(|path| path.display().to_string()));
    }
    Ok(())
}

fn load(path: &Path) -> Result<Config, Failure> {
    let shown = path.display();
    let size = std::fs::metadata(path)
        .with_context(|| format!("cannot read {shown}"))
        .map_err(Failure::bad_input)?
        .len();
    if size > MOST_BYTES {
        return Err(Failure::bad_input(anyhow!(
            "{shown} has {size} bytes, more than the {MOST_BYTES} of a configuration"
        )));
    }
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("cannot read {shown}"))
        .map_err(Failure::bad_input)?;
    read(&text).map_err(|error| Failure::bad_input(anyhow!("{shown}:{}: {}", error.line, error.reason)))
}

/// The shapes with their times, nothing run.
fn dry_run(config: &Config, json: bool) -> Outcome {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let limits = Limits::measure(threads).map_err(Failure::not_possible)?;
    let rate =
        limits.operations.iter().find(|(dtype, _)| *dtype == Dtype::F32).map_or(1e9, |(_, rate)| *rate);
    let recipes: Vec<String> =
        config.recipes.iter().map(warpforge_bench::microbench::config::Entry::name).collect();
    let mut all = 0.0;
    let mut listed = Vec::new();
    for model in &config.models {
        for shape in &model.shapes {
            let seconds = predicted_seconds(config, shape, rate);
            all += seconds;
            if json {
                listed.push(serde_json::json!({
                    "name": model.name, "shape": shape.name, "m": shape.m, "k": shape.k, "n": shape.n,
                    "recipes": recipes, "predicted_seconds": seconds,
                }));
            } else {
                println!("{} {} {}x{}x{}: {seconds:.1} s", model.name, shape.name, shape.m, shape.k, shape.n);
            }
        }
    }
    if json {
        println!("{}", serde_json::json!({ "shapes": listed, "predicted_seconds": all }));
    } else {
        println!("recipes: {}", recipes.join(", "));
        println!("at least {all:.0} s on this CPU");
    }
    Ok(Exit::Pass)
}

const HEADER: [&str; 10] =
    ["recipe", "m", "k", "n", "ms", "speedup", "SQNR dB", "weights MB", "of roofline", "verdict"];

fn cells(row: &Row) -> [String; 10] {
    let number = |value: Option<f64>, digits: usize| {
        value.map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$}"))
    };
    let verdict = match &row.reason {
        Some(reason) => format!("{}: {reason}", row.verdict),
        None => row.verdict.to_owned(),
    };
    let limit = match (row.of_roofline, row.bound_by) {
        (Some(part), Some(by)) => format!("{:.0}% {by}", 100.0 * part),
        _ => "-".to_owned(),
    };
    [
        row.quantization.clone(),
        row.m.to_string(),
        row.k.to_string(),
        row.n.to_string(),
        number(row.time(), 3),
        number(row.speedup().filter(|_| row.time().is_some()), 2),
        number(row.sqnr_db, 1),
        number(row.weight_bytes.map(|bytes| bytes as f64 / 1e6), 2),
        limit,
        verdict,
    ]
}

fn line(cells: &[String; 10]) -> String {
    const WIDTHS: [usize; 10] = [16, 6, 6, 6, 10, 8, 8, 11, 16, 0];
    let cells = cells.iter().zip(WIDTHS).enumerate();
    let text =
        cells.map(
            |(at, (cell, width))| {
                if at == 0 || at > 7 { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
            },
        );
    text.collect::<Vec<_>>().join("  ").trim_end().to_owned()
}

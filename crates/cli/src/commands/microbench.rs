//! `warpt microbench`: quantized layers, as a YAML file asks.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use clap::Args;
use jiff::Timestamp;
use warpforge_bench::history::History;
use warpforge_bench::microbench::bounds::Rates;
use warpforge_bench::microbench::config::{Config, Entry, Mode, read};
use warpforge_bench::microbench::row::Row;
use warpforge_bench::microbench::run::{recommended, rows};
use warpforge_bench::microbench::{csv, record};
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
    let table = Table::of(&config);
    if !args.json {
        println!("{}", table.header());
    }
    let mut rows = rows(&config, &mut |row| {
        if !args.json {
            println!("{}", table.line(row));
        }
    });
    let folder = Path::new(&config.output_dir);
    let file = folder.join("results.csv");
    std::fs::create_dir_all(folder)
        .with_context(|| format!("cannot make {}", folder.display()))
        .map_err(Failure::not_possible)?;
    for at in 0..rows.len() {
        let before = rows[..at].iter().filter(|row| row.title() == rows[at].title()).count();
        write_profiles(folder, &mut rows[at], before)?;
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
            .map(|row| {
                serde_json::json!({
                    "name": row.name, "model_type": row.model_type, "device": row.device,
                    "high_precision_dtype": row.high_precision_dtype,
                    "m": row.m, "k": row.k, "n": row.n, "quantization": row.quantization, "ms": row.total(),
                })
            })
            .collect();
        println!("{}", serde_json::json!({ "run_id": run.run_id, "rows": rows, "recommended": names }));
    } else if args.recommend {
        println!("fastest with at least {} dB:", args.min_sqnr);
        for row in &chosen {
            println!("  {}", row.title());
        }
        if chosen.is_empty() {
            println!("  none");
        }
    }
    let measured = rows.iter().any(|row| row.time().is_some());
    Ok(if measured { Exit::Pass } else { Exit::NotPossible })
}

/// Writes the trace and the memory timeline of a row, where they are asked for; so many rows before have the same title.
fn write_profiles(folder: &Path, row: &mut Row, before: usize) -> Result<(), Failure> {
    let title = match before {
        0 => row.title(),
        _ => format!("{} {}", row.title(), before + 1),
    };
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

/// The shapes with their times and what bounds them, nothing run.
fn dry_run(config: &Config, json: bool) -> Outcome {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let rates = Rates::measure(threads).map_err(Failure::not_possible)?;
    let recipes: Vec<String> = config.recipes.iter().map(Entry::name).collect();
    let (mut all, mut unknown) = (0.0, 0);
    let mut listed = Vec::new();
    for model in &config.models {
        for shape in &model.shapes {
            let predicted = rates.predict(config, model, shape);
            all += predicted.as_ref().map_or(0.0, |predicted| predicted.seconds);
            unknown += usize::from(predicted.is_none());
            if json {
                let bound_by = predicted.as_ref().map(|predicted| {
                    predicted.bound_by.iter().map(|(name, by)| (name.clone(), (*by).into())).collect()
                });
                listed.push(serde_json::json!({
                    "name": model.name, "shape": shape.name, "m": shape.m, "k": shape.k, "n": shape.n,
                    "device": model.device, "recipes": recipes,
                    "predicted_seconds": predicted.map(|predicted| predicted.seconds),
                    "bound_by": bound_by.map(serde_json::Value::Object),
                }));
            } else {
                let what = predicted.map_or_else(
                    || format!("not known for {}", model.device),
                    |predicted| {
                        let bounds: Vec<String> =
                            predicted.bound_by.iter().map(|(name, by)| format!("{name} {by}")).collect();
                        format!("{:.1} s; bound by: {}", predicted.seconds, bounds.join(", "))
                    },
                );
                println!("{} {} {}x{}x{}: {what}", model.name, shape.name, shape.m, shape.k, shape.n);
            }
        }
    }
    if json {
        let shapes = serde_json::json!({ "shapes": listed, "predicted_seconds": all, "not_known": unknown });
        println!("{shapes}");
    } else {
        println!("recipes: {}", recipes.join(", "));
        println!("at least {all:.0} s on this CPU");
        if unknown > 0 {
            println!("{unknown} shapes on other devices, whose rates are not known here");
        }
    }
    Ok(Exit::Pass)
}

/// A column of the table: its head, its width, how a row's cell is written.
struct Column {
    head: &'static str,
    width: usize,
    left: bool,
    cell: fn(&Config, &Row) -> String,
}

/// The table of a mode.
struct Table<'c> {
    config: &'c Config,
    columns: Vec<Column>,
}

impl<'c> Table<'c> {
    fn of(config: &'c Config) -> Self {
        let right = |head, width, cell| Column { head, width, left: false, cell };
        let left = |head, width, cell| Column { head, width, left: true, cell };
        let mut columns = vec![
            left("recipe", 16, |_, row| row.quantization.clone()),
            right("m", 6, |_, row| row.m.to_string()),
            right("k", 6, |_, row| row.k.to_string()),
            right("n", 6, |_, row| row.n.to_string()),
        ];
        match config.mode {
            Mode::Inference => columns.push(right("ms", 10, |_, row| number(row.time(), 3))),
            Mode::Training => columns.extend([
                right("forward ms", 10, |_, row| number(row.time(), 3)),
                right("backward ms", 11, |_, row| number(row.backward(), 3)),
                right("total ms", 10, |_, row| number(row.total(), 3)),
            ]),
        }
        columns.push(right("speedup", 8, |_, row| number(row.speedup(), 2)));
        columns.push(right("SQNR dB", 8, |_, row| number(row.sqnr_db, 1)));
        match config.mode {
            Mode::Inference => columns.extend([
                right("weights MB", 11, |_, row| number(row.weight_bytes.map(|bytes| bytes as f64 / 1e6), 2)),
                left("of roofline", 16, |_, row| match (row.of_roofline, row.bound_by) {
                    (Some(part), Some(by)) => format!("{:.0}% {by}", 100.0 * part),
                    _ => "-".to_owned(),
                }),
            ]),
            Mode::Training => {
                columns.push(left("scaling", 34, |config, row| csv::scaling(config, row)[..4].join(" ")));
            }
        }
        columns.push(left("verdict", 0, |_, row| match &row.reason {
            Some(reason) => format!("{}: {reason}", row.verdict),
            None => row.verdict.to_owned(),
        }));
        Self { config, columns }
    }

    fn header(&self) -> String {
        self.joined(|column| column.head.to_owned())
    }

    fn line(&self, row: &Row) -> String {
        self.joined(|column| (column.cell)(self.config, row))
    }

    fn joined(&self, cell: impl Fn(&Column) -> String) -> String {
        let cells = self.columns.iter().map(|column| {
            let (cell, width) = (cell(column), column.width);
            if column.left { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    }
}

fn number(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$}"))
}

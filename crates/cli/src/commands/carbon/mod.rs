//! `warpt carbon`: a command's energy and, for a named grid, its carbon.

mod grids;
mod store;

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::anyhow;
use clap::{Args, Subcommand};
use jiff::Timestamp;
use serde::Serialize;
use warpforge_bench::selection::nearest;
use warpforge_inventory::live::Energy;
use warpforge_report::number::significant;
use warpforge_report::{Align, Screen, Style, Table};

use super::power::interval;
use super::power::measure::{Measured, Request, measure};
use super::power::text::{ended, joules};
use crate::exit::{Exit, Failure, Outcome};
use crate::signals::stop_on_signals;
use crate::{term, values};
use grids::{Factor, GRIDS, find};
use store::Record;

/// Joules of a kilowatt-hour.
const JOULES_PER_KWH: f64 = 3.6e6;

/// What to do where there is no factor.
const NEEDS_GRID: &str = "carbon needs --grid NAME (`warpt carbon grids` lists them) or --intensity GRAMS";

/// What to do where there are no records.
const NOTHING_KEPT: &str = "nothing was kept; `warpt carbon run --keep -- COMMAND` keeps a record";

/// Arguments of the command.
#[derive(Debug, Args)]
pub(crate) struct CarbonArgs {
    #[command(flatten)]
    factors: Factors,
    #[command(subcommand)]
    command: CarbonCommand,
}

/// What energy is multiplied with. They may stand before or after the subcommand.
#[derive(Debug, Args)]
struct Factors {
    /// The grid that the electricity comes from: a code or country of `warpt carbon grids`
    #[arg(long, global = true, value_name = "NAME", conflicts_with = "intensity")]
    grid: Option<String>,
    /// Your own factor: grams of CO2 a kilowatt-hour
    #[arg(long, global = true, value_name = "GRAMS", value_parser = positive)]
    intensity: Option<f64>,
    /// The price of a kilowatt-hour, in any currency
    #[arg(long, global = true, value_name = "PRICE", value_parser = positive)]
    price: Option<f64>,
}

#[derive(Debug, Subcommand)]
enum CarbonCommand {
    /// Run a command and measure its energy from start to end
    Run(RunArgs),
    /// List the grids with their factors, publishers and years
    Grids {
        /// Print JSON for programs
        #[arg(long)]
        json: bool,
    },
    /// List the records that were kept, newest first
    History {
        /// How many
        #[arg(long, value_name = "N", default_value = "20", value_parser = values::count)]
        limit: NonZeroUsize,
        /// Print JSON for programs
        #[arg(long)]
        json: bool,
    },
    /// Add up the records that were kept
    Summary {
        /// Print JSON for programs
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Args)]
struct RunArgs {
    /// The machine's power by your own estimate, used where the machine does not report its own
    #[arg(long, value_name = "W", value_parser = positive)]
    watts: Option<f64>,
    /// Keep the record for `warpt carbon history` and `summary`
    #[arg(long)]
    keep: bool,
    /// Seconds between samples, 0.05 to 60
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = interval)]
    interval: Duration,
    /// Print JSON for programs; what the command writes to standard output goes to standard error
    #[arg(long)]
    json: bool,
    /// Read `/proc` and `/sys` below this folder
    #[arg(long, value_name = "DIR", hide = true, default_value = "/")]
    root: PathBuf,
    /// The command and its arguments, after `--`
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// What the records that were kept come to.
#[derive(Debug, Default, PartialEq, Serialize)]
struct Summary {
    /// Records.
    commands: usize,
    /// Those without energy, which is therefore not in the sums.
    without_energy: usize,
    /// Those whose energy is the user's estimate.
    estimated: usize,
    /// How long they ran.
    seconds: f64,
    /// What they used, where it is known; null where it is known of none.
    energy_joules: Option<f64>,
    /// Those with energy but without a factor, whose carbon is therefore not in the sum.
    without_factor: usize,
    /// Their carbon, where it is known; null where it is known of none.
    carbon_grams: Option<f64>,
    /// Those with energy but without a price, whose cost is therefore not in the sum.
    without_price: usize,
    /// Their cost, where a price was given; null where none was.
    cost: Option<f64>,
}

/// Runs the command.
pub(crate) fn run(args: &CarbonArgs) -> Outcome {
    match &args.command {
        CarbonCommand::Run(run) => run_command(&args.factors, run),
        CarbonCommand::Grids { json } => list_grids(*json),
        CarbonCommand::History { limit, json } => history(limit.get(), *json),
        CarbonCommand::Summary { json } => summary(*json),
    }
}

fn run_command(factors: &Factors, args: &RunArgs) -> Outcome {
    let factor = factor(factors)?;
    let stop = stop_on_signals()?;
    let started = Timestamp::now();
    let request = Request {
        root: &args.root,
        interval: args.interval,
        duration: Duration::ZERO,
        command: &args.command,
        stdout_is_taken: args.json,
        processes: false,
    };
    let Measured { energy, command, .. } = measure(&request, &|| stop.load(Ordering::Relaxed))?;
    let Some(command) = command else {
        return Err(Failure::not_possible(anyhow!("the command did not end")));
    };
    let exit = command.exit();
    let record = Record { exit_code: command.exit_code, ..Record::new(started, command.arguments) };
    let record = with_figures(record, &energy, args.watts, factor, factors.price);
    if args.json {
        term::print_json(&record)?;
    } else {
        term::print(&text(&record, term::screen(false)))?;
    }
    if args.keep {
        let path = store::keep(&record)?;
        crate::term::tell!("kept in {}", path.display());
    }
    Ok(exit)
}

/// The factor that was asked for. Both at once can only be of the configuration file, where the user's own figure counts.
fn factor(factors: &Factors) -> Result<Option<Factor>, Failure> {
    if let Some(grams) = factors.intensity {
        return Ok(Some(Factor::own(grams)));
    }
    let Some(name) = &factors.grid else { return Ok(None) };
    let known = GRIDS.iter().flat_map(|grid| [grid.name, grid.country]);
    let grid = find(name).ok_or_else(|| {
        let hint =
            nearest(name, known).map_or(String::new(), |nearest| format!(", did you mean `{nearest}`?"));
        let way = "`warpt carbon grids` lists them, --intensity takes a factor of your own";
        Failure::bad_input(anyhow!("--grid {name}: there is no such grid{hint}; {way}"))
    })?;
    Ok(Some(Factor::from(grid)))
}

/// Energy as it was measured, or by the user's estimate where it was not; carbon and cost from it.
fn with_figures(
    record: Record,
    energy: &Energy,
    watts: Option<f64>,
    factor: Option<Factor>,
    price: Option<f64>,
) -> Record {
    let estimate = watts.filter(|_| energy.total_joules.is_none());
    let joules = energy.total_joules.or_else(|| estimate.map(|watts| watts * energy.seconds));
    let kwh = joules.map(|joules| joules / JOULES_PER_KWH);
    let source = match (energy.total_joules, estimate) {
        (Some(_), _) => Some("measured"),
        (None, Some(_)) => Some("estimate"),
        (None, None) => None,
    };
    Record {
        seconds: energy.seconds,
        energy_joules: joules,
        energy_source: source.map(str::to_owned),
        energy_of: if energy.total_joules.is_some() { energy.counted() } else { Vec::new() },
        estimated_watts: estimate,
        reason: energy.reason.clone().filter(|_| energy.total_joules.is_none()),
        carbon_grams: kwh.zip(factor.as_ref()).map(|(kwh, factor)| kwh * factor.grams_per_kwh),
        factor,
        cost: kwh.zip(price).map(|(kwh, price)| kwh * price),
        price_per_kwh: price,
        ..record
    }
}

fn text(record: &Record, screen: Screen) -> String {
    let reason = record.reason.as_deref().unwrap_or("not reported");
    let energy = match (record.energy_joules, record.estimated_watts) {
        (Some(used), None) => format!("{} (measured: {})", joules(used), record.energy_of.join(", ")),
        (Some(used), Some(watts)) => {
            format!("{} (your estimate of {watts} W; not measured: {reason})", joules(used))
        }
        (None, _) => format!("not known ({reason}); --watts W takes your own estimate of the power"),
    };
    let carbon = match (&record.factor, record.carbon_grams) {
        (Some(factor), grams) => {
            let amount = grams.map_or("not known without energy".to_owned(), carbon);
            let year = factor.year.map_or(String::new(), |year| format!(", {year}"));
            let Factor { grid, grams_per_kwh, source, .. } = factor;
            format!("{amount} (grid {grid}: {grams_per_kwh} g/kWh{year}; {source})")
        }
        (None, _) => format!("not known; {NEEDS_GRID}"),
    };
    let command =
        format!("{} ({}, {:.2} s)", record.command.join(" "), ended(record.exit_code), record.seconds);
    let cost = record.cost.map(|cost| ("cost", significant(cost, 4)));
    let facts = [("command", command), ("energy", energy), ("carbon", carbon)].into_iter().chain(cost);
    facts.map(|(name, fact)| screen.line(Style::Plain, 2, &format!("{name}: {fact}"))).collect()
}

/// Grams in the unit that people read.
fn carbon(grams: f64) -> String {
    match grams {
        grams if grams < 1.0 => format!("{} mg", significant(grams * 1000.0, 3)),
        grams if grams < 1000.0 => format!("{} g", significant(grams, 3)),
        grams => format!("{} kg", significant(grams / 1000.0, 3)),
    }
}

fn list_grids(json: bool) -> Outcome {
    if json {
        term::print_json(&GRIDS.as_slice())?;
        return Ok(Exit::Pass);
    }
    let columns = [
        ("grid", Align::Left),
        ("country", Align::Left),
        ("g/kWh", Align::Right),
        ("year", Align::Right),
        ("source", Align::Left),
    ];
    let mut table = Table::new(&columns);
    // A source stands below the table once, with what its figures include.
    let mut sources: Vec<(&str, &str)> = Vec::new();
    for grid in GRIDS {
        let source = (grid.source, grid.includes);
        let known = sources.iter().position(|known| *known == source);
        let number = known.unwrap_or_else(|| {
            sources.push(source);
            sources.len() - 1
        });
        table.row(
            Style::Plain,
            [
                grid.name.to_owned(),
                grid.country.to_owned(),
                grid.grams_per_kwh.to_string(),
                grid.year.to_string(),
                format!("[{}]", number + 1),
            ],
        );
    }
    let screen = term::screen(false);
    let mut text = table.to_text(screen) + "\n";
    for (number, (source, includes)) in (1..).zip(sources) {
        text += &screen.labelled(&format!("[{number}] "), &format!("{source}; {includes}"));
    }
    term::print(&text)?;
    Ok(Exit::Pass)
}

fn history(limit: usize, json: bool) -> Outcome {
    let mut records = store::all()?;
    records.reverse();
    records.truncate(limit);
    if json {
        term::print_json(&records)?;
        return Ok(Exit::Pass);
    }
    if records.is_empty() {
        crate::term::tell!("{NOTHING_KEPT}");
        return Ok(Exit::Pass);
    }
    let columns = [
        ("started (UTC)", Align::Left),
        ("seconds", Align::Right),
        ("energy", Align::Right),
        ("carbon", Align::Right),
        ("grid", Align::Left),
        ("command", Align::Left),
    ];
    let mut table = Table::new(&columns);
    for record in &records {
        let estimated = if record.estimated_watts.is_some() { " (estimate)" } else { "" };
        table.row(
            Style::Plain,
            [
                record.started.strftime("%Y-%m-%d %H:%M:%S").to_string(),
                format!("{:.2}", record.seconds),
                record.energy_joules.map_or("-".to_owned(), |used| joules(used) + estimated),
                record.carbon_grams.map_or("-".to_owned(), carbon),
                record.factor.as_ref().map_or("-".to_owned(), |factor| factor.grid.clone()),
                record.command.join(" "),
            ],
        );
    }
    term::print(&table.to_text(term::screen(false)))?;
    Ok(Exit::Pass)
}

fn summary(json: bool) -> Outcome {
    let sums = sums(&store::all()?);
    if json {
        term::print_json(&sums)?;
        return Ok(Exit::Pass);
    }
    if sums.commands == 0 {
        crate::term::tell!("{NOTHING_KEPT}");
        return Ok(Exit::Pass);
    }
    let screen = term::screen(false);
    let text: String = sum_lines(&sums).iter().map(|line| screen.line(Style::Plain, 2, line)).collect();
    term::print(&text)?;
    Ok(Exit::Pass)
}

/// The sums for people, each with what is not in it.
fn sum_lines(sums: &Summary) -> [String; 4] {
    let known = |value: Option<f64>, unit: &dyn Fn(f64) -> String| value.map_or("not known".to_owned(), unit);
    let beside = |count: usize, what: &str| match count {
        0 => String::new(),
        count => format!("; {count} {what}"),
    };
    [
        format!("commands: {} in {:.1} s", sums.commands, sums.seconds),
        format!(
            "energy: {}{}{}",
            known(sums.energy_joules, &joules),
            beside(sums.estimated, "by an estimate"),
            beside(sums.without_energy, "without energy")
        ),
        format!(
            "carbon: {}{}",
            known(sums.carbon_grams, &carbon),
            beside(sums.without_factor, "with energy, without a grid")
        ),
        format!(
            "cost: {}{}",
            known(sums.cost, &|cost| significant(cost, 4)),
            beside(sums.without_price, "with energy, without a price")
        ),
    ]
}

fn sums(records: &[Record]) -> Summary {
    let mut sums = Summary { commands: records.len(), ..Summary::default() };
    let add = |sum: &mut Option<f64>, value: Option<f64>| {
        *sum = value.map_or(*sum, |value| Some(sum.unwrap_or(0.0) + value));
    };
    for record in records {
        let has_energy = record.energy_joules.is_some();
        sums.seconds += record.seconds;
        sums.without_energy += usize::from(!has_energy);
        sums.estimated += usize::from(record.estimated_watts.is_some());
        sums.without_factor += usize::from(has_energy && record.carbon_grams.is_none());
        sums.without_price += usize::from(has_energy && record.cost.is_none());
        add(&mut sums.energy_joules, record.energy_joules);
        add(&mut sums.carbon_grams, record.carbon_grams);
        add(&mut sums.cost, record.cost);
    }
    sums
}

/// Parses a number above zero for clap.
fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value > 0.0 && value.is_finite() => Ok(value),
        _ => Err("expected a number above 0".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn energy(total_joules: Option<f64>) -> Energy {
        let reason = total_joules.is_none().then(|| "no counters".to_owned());
        Energy { seconds: 100.0, total_joules, reason, sources: Vec::new() }
    }

    fn record(joules: Option<f64>, watts: Option<f64>, grid: Option<&str>) -> Record {
        let factor = grid.map(|name| Factor::from(find(name).unwrap()));
        let record = Record::new(Timestamp::UNIX_EPOCH, vec!["make".to_owned()]);
        with_figures(record, &energy(joules), watts, factor, Some(0.25))
    }

    #[test]
    fn a_kilowatt_hour_has_the_grids_carbon() {
        let record = record(Some(3.6e6), Some(5.0), Some("DEU"));
        assert_eq!((record.carbon_grams, record.cost), (Some(381.0), Some(0.25)));
        assert_eq!(record.energy_source.as_deref(), Some("measured"));
        assert_eq!(record.estimated_watts, None, "what is measured beats an estimate");
        assert!(
            text(&record, Screen::PLAIN).contains("381 g (grid DEU: 381 g/kWh, 2023; Ember"),
            "{}",
            text(&record, Screen::PLAIN)
        );
    }

    #[test]
    fn without_a_measurement_only_the_users_estimate_counts_and_is_named() {
        let unknown = record(None, None, Some("FRA"));
        assert_eq!((unknown.energy_joules, unknown.carbon_grams, unknown.cost), (None, None, None));
        assert!(
            text(&unknown, Screen::PLAIN).contains("not known (no counters)"),
            "{}",
            text(&unknown, Screen::PLAIN)
        );
        let estimated = record(None, Some(360.0), Some("FRA"));
        assert_eq!(estimated.energy_joules, Some(36_000.0));
        assert_eq!(estimated.energy_source.as_deref(), Some("estimate"));
        assert!(
            text(&estimated, Screen::PLAIN).contains("your estimate of 360 W"),
            "{}",
            text(&estimated, Screen::PLAIN)
        );
    }

    #[test]
    fn without_a_grid_there_is_energy_and_no_carbon() {
        let record = record(Some(10.0), None, None);
        assert_eq!(record.carbon_grams, None);
        assert!(
            text(&record, Screen::PLAIN).contains("carbon needs --grid"),
            "{}",
            text(&record, Screen::PLAIN)
        );
    }

    #[test]
    fn sums_say_what_they_leave_out() {
        let records =
            [record(Some(3.6e6), None, Some("DEU")), record(None, None, None), record(Some(1.0), None, None)];
        let sums = sums(&records);
        assert_eq!((sums.commands, sums.without_energy, sums.without_factor), (3, 1, 1));
        assert_eq!((sums.energy_joules, sums.carbon_grams), (Some(3.6e6 + 1.0), Some(381.0)));
        assert_eq!((sums.cost.is_some(), sums.without_price), (true, 0));
        let lines = sum_lines(&super::sums(&records[1..2])).join("\n");
        assert!(
            lines.contains("energy: not known; 1 without energy") && lines.ends_with("cost: not known"),
            "{lines}"
        );
    }
}

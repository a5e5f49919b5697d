//! `warpt stress`: load a part of the machine for a time and verify every result.

mod text;

use std::io::Write as _;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::anyhow;
use clap::Args;
use warpforge::Device;
use warpforge_bench::selection::nearest;
use warpforge_report::Style;
use warpforge_stress::{Component, Settings, StressRun, TESTS, Test, Verdict, run as run_test};

use crate::exit::{Exit, Failure, Outcome};
use crate::place::Place;
use crate::signals::stop_on_signals;
use crate::timeline::TimelineArgs;
use crate::{output, term, values};

/// The word for all components.
const ALL: &str = "all";

/// More threads than any machine has.
const MOST_THREADS: u64 = 4096;

/// Arguments of the command.
#[derive(Debug, Args)]
pub(crate) struct StressArgs {
    /// What to load; `all` is every component
    #[arg(value_name = "COMPONENT", value_parser = values::stress_components())]
    components: Vec<String>,
    /// Seconds that each test runs
    #[arg(long, value_name = "SECONDS", default_value_t = 60.0, value_parser = term::positive_seconds)]
    duration: f64,
    /// Only the test of this name; may be given several times
    #[arg(long, value_name = "NAME", value_parser = values::stress_tests())]
    test: Vec<String>,
    /// Threads of tests that use processors [default: one on each]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=MOST_THREADS))]
    threads: Option<u64>,
    /// Bytes of memory, or of the file, that a test uses: a number, or one with K, M, G or T [default: the test's own]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    size: Option<u64>,
    /// The folder for the file of the storage tests [default: the current one]
    #[arg(long, value_name = "DIR")]
    directory: Option<PathBuf>,
    /// The host where `warpt serve` answers, for the network tests
    #[arg(long, value_name = "HOST:PORT", value_parser = target)]
    target: Option<String>,
    /// The GPU [default: the first that works]
    #[arg(long, value_parser = values::devices())]
    device: Option<Device>,
    /// Go on after a wrong result, and count all of them
    #[arg(long)]
    keep_going: bool,
    #[command(flatten)]
    timeline: TimelineArgs,
    /// Print JSON for programs
    #[arg(long)]
    json: bool,
    /// Write the result to this file; `-` is standard output
    #[arg(long, alias = "export-file", value_name = "FILE")]
    export: Option<PathBuf>,
    /// List the tests and run nothing
    #[arg(long)]
    list: bool,
    /// Falsify one result in this iteration of each test: a check of the checks
    #[arg(long, value_name = "ITERATION", hide = true, value_parser = clap::value_parser!(u64).range(1..))]
    inject_fault: Option<u64>,
}

/// Runs the command.
pub(crate) fn run(args: &StressArgs) -> Outcome {
    if args.components.is_empty() && args.test.is_empty() && !args.list {
        let known = component_names().collect::<Vec<_>>().join(", ");
        return Err(Failure::bad_input(anyhow!(
            "say what to load: {known}, or a test with --test; `warpt stress --list` lists the tests"
        )));
    }
    let tests = selected(&args.components, &args.test)?;
    if args.list {
        term::print(&text::list(&tests, term::screen(false)))?;
        return Ok(Exit::Pass);
    }
    let files = [("--export", args.export.as_deref()), args.timeline.file()];
    let taken = output::takes_stdout(files, args.json)?;
    output::check(files.map(|(_, path)| path))?;
    check_options(args, &tests)?;
    let settings = settings(args)?;
    let stop = stop_on_signals()?;
    let stopped = || stop.load(Ordering::Relaxed);

    let mut result = StressRun::begin(args.duration);
    for (number, test) in (1..).zip(&tests) {
        if stopped() {
            break;
        }
        let (component, name, count) = (test.component, test.name, tests.len());
        let heading = format!("{component} {name} ({number} of {count}), {} s: {}", args.duration, test.what);
        let _ = write!(std::io::stderr(), "{}", term::screen(false).line(Style::Plain, 2, &heading));
        let outcome = run_test(test, &settings, &stopped);
        if !args.json {
            term::print_beside(taken, &text::result(&outcome, term::screen(taken)))?;
        }
        result.tests.push(outcome);
    }
    write_files(args, &mut result)?;
    if args.json {
        term::print_json(&result)?;
    }
    Ok(exit(&result, stopped()))
}

/// Refuses options that none of the tests uses.
fn check_options(args: &StressArgs, tests: &[&Test]) -> Result<(), Failure> {
    let of = |components: &[Component]| tests.iter().any(|test| components.contains(&test.component));
    let options = [
        ("--threads", args.threads.is_some(), of(&[Component::Cpu, Component::Ram]), "of cpu and ram"),
        (
            "--size",
            args.size.is_some(),
            tests.iter().any(|test| test.has_size),
            "of ram and storage, and gpu's `memory`",
        ),
        ("--directory", args.directory.is_some(), of(&[Component::Storage]), "of storage"),
        ("--target", args.target.is_some(), of(&[Component::Network]), "of network"),
        ("--device", args.device.is_some(), of(&[Component::Gpu]), "of gpu"),
    ];
    match options.into_iter().find(|(_, given, used, _)| *given && !used) {
        None => Ok(()),
        Some((option, _, _, tests)) => Err(Failure::bad_input(anyhow!("{option} is for tests {tests}"))),
    }
}

/// The tests of these components, or those of them with these names.
fn selected(components: &[String], names: &[String]) -> Result<Vec<&'static Test>, Failure> {
    let every = components.is_empty() || components.iter().any(|component| component == ALL);
    let wanted = |test: &&Test| every || components.iter().any(|name| name == test.component.name());
    let of_components: Vec<&'static Test> = TESTS.iter().filter(wanted).collect();
    for name in names {
        if !of_components.iter().any(|test| test.name == name) {
            let known = of_components.iter().map(|test| test.name);
            let hint = match nearest(name, known.clone()) {
                Some(nearest) => format!(", did you mean `{nearest}`?"),
                None => format!("; there are {}", known.collect::<Vec<_>>().join(", ")),
            };
            return Err(Failure::bad_input(anyhow!("--test {name}: no such test of these components{hint}")));
        }
    }
    let named = |test: &&&Test| names.is_empty() || names.iter().any(|name| name == test.name);
    Ok(of_components.iter().filter(named).copied().collect())
}

fn settings(args: &StressArgs) -> Result<Settings, Failure> {
    if args.device == Some(Device::Cpu) {
        return Err(Failure::bad_input(anyhow!(
            "--device names a GPU; `warpt stress cpu` loads the processors"
        )));
    }
    if let Some(path) = &args.directory {
        let refused =
            |reason: String| Failure::bad_input(anyhow!("--directory {}: {reason}", path.display()));
        match std::fs::metadata(path) {
            Ok(found) if found.is_dir() => {}
            Ok(_) => return Err(refused("not a folder".to_owned())),
            Err(error) => return Err(refused(error.to_string())),
        }
    }
    Ok(Settings {
        threads: args.threads.map(|threads| threads as usize),
        bytes: args.size,
        directory: args.directory.clone(),
        target: args.target.clone(),
        device: args.device,
        keep_going: args.keep_going,
        monitor_interval: args.timeline.interval(),
        falsify: args.inject_fault,
        ..Settings::new(Duration::from_secs_f64(args.duration))
    })
}

fn write_files(args: &StressArgs, result: &mut StressRun) -> Result<(), Failure> {
    let timeline: Vec<_> = result.tests.iter().flat_map(|test| &test.timeline).collect();
    args.timeline.write(&timeline)?;
    if !args.timeline.is_asked() {
        result.tests.iter_mut().for_each(|test| test.timeline.clear());
    }
    if let Some(path) = &args.export {
        let text = serde_json::to_string_pretty(&result).map_err(Failure::not_possible)?;
        output::write(path, text.as_bytes())?;
        crate::term::tell!("result written to {}", path.display());
    }
    Ok(())
}

/// Failed if a result was wrong; inconclusive if it was stopped; not possible if nothing could run.
fn exit(result: &StressRun, stopped: bool) -> Exit {
    let any = |verdict| result.tests.iter().any(|test| test.verdict == verdict);
    if any(Verdict::Fail) {
        Exit::CheckFailed
    } else if stopped {
        Exit::Inconclusive
    } else if any(Verdict::Pass) {
        Exit::Pass
    } else {
        Exit::NotPossible
    }
}

/// Checks a host and port for clap; whether somebody answers there is found by the test.
fn target(text: &str) -> Result<String, String> {
    let place = text.parse::<Place>().map_err(|_| {
        "expected HOST:PORT, such as node7:5210, [::1]:5210: the port where `warpt serve` listens".to_owned()
    })?;
    if place.port() == 0 { Err("there is no port 0".to_owned()) } else { Ok(text.to_owned()) }
}

/// Parses a size in bytes for clap: 4096, 64K, 1.5G.
fn size(text: &str) -> Result<u64, String> {
    let wanted = || "expected bytes such as 4096, 64K, 256M or 1.5G".to_owned();
    let trimmed = text.trim_end_matches("iB").trim_end_matches('B');
    let (digits, shift) = match trimmed.as_bytes().last() {
        Some(b'K' | b'k') => (&trimmed[..trimmed.len() - 1], 10),
        Some(b'M' | b'm') => (&trimmed[..trimmed.len() - 1], 20),
        Some(b'G' | b'g') => (&trimmed[..trimmed.len() - 1], 30),
        Some(b'T' | b't') => (&trimmed[..trimmed.len() - 1], 40),
        _ => (trimmed, 0),
    };
    let value: f64 = digits.parse().map_err(|_| wanted())?;
    let bytes = value * (1_u64 << shift) as f64;
    if !(1.0..=(1_u64 << 60) as f64).contains(&bytes) {
        return Err(wanted());
    }
    Ok(bytes as u64)
}

/// The names of components for arguments.
pub(crate) fn component_names() -> impl Iterator<Item = &'static str> {
    Component::ALL.into_iter().map(Component::name).chain([ALL])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(components: &[&str], tests: &[&str]) -> Result<Vec<&'static str>, String> {
        let owned = |list: &[&str]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
        let tests = selected(&owned(components), &owned(tests)).map_err(|failure| failure.to_string())?;
        Ok(tests.into_iter().map(|test| test.name).collect())
    }

    #[test]
    fn tests_are_chosen_by_component_and_name() {
        assert_eq!(names(&["cpu"], &[]).unwrap(), ["compute", "hashing", "compression"]);
        assert_eq!(names(&["all"], &[]).unwrap().len(), TESTS.len());
        assert_eq!(names(&[], &["mixed", "latency"]).unwrap(), ["latency", "mixed"]);
        assert_eq!(names(&["ram", "cpu"], &["swap"]).unwrap(), ["swap"]);
        let error = names(&["cpu"], &["swap"]).unwrap_err();
        assert!(error.contains("--test swap"), "{error}");
        assert!(names(&["cpu"], &["hashng"]).unwrap_err().contains("did you mean `hashing`?"));
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!(size("4096"), Ok(4096));
        assert_eq!(size("64K"), Ok(64 << 10));
        assert_eq!(size("1.5G"), Ok(3 << 29));
        assert_eq!(size("2MiB"), Ok(2 << 20));
        for bad in ["", "0", "-1", "K", "1X", "1e30", "nan", "inf"] {
            assert!(size(bad).is_err(), "{bad}");
        }
    }
}

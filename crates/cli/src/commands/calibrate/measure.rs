//! `warpt calibrate` itself: measures this machine and writes its profile.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::anyhow;
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use jiff::Timestamp;
use warpforge::io::output::is_standard;
use warpforge::{Device, Precision};
use warpforge_bench::history::History;
use warpforge_calibrate::profile::{ProfileError, Theoretical};
use warpforge_calibrate::roofline::{Roofline, picture};
use warpforge_calibrate::{
    Error, Family, Observer, Profile, Scale, Settings, Step, Verdict, calibrate, default_path, suite_run,
};

use super::place::Place;
use super::{failure, machine, text};
use crate::exit::{Exit, Failure, Outcome};
use crate::signals::stop_on_signals;
use crate::{output, term, values};

/// What was measured is written at most this often.
const CHECKPOINT: Duration = Duration::from_secs(5);

/// The options of a measurement.
#[derive(Debug, Args)]
pub(super) struct MeasureArgs {
    /// What the machine is called [default: its processor or GPU]
    #[arg(long, value_name = "NAME")]
    hardware: Option<String>,
    /// What its maker says that it can compute, in GFLOP/s: noted beside what is measured
    #[arg(long, value_name = "G", value_parser = positive)]
    peak_gflops: Option<f64>,
    /// What its maker says that its memory moves, in GB/s
    #[arg(long, value_name = "B", value_parser = positive)]
    peak_bandwidth: Option<f64>,
    /// The fusion patterns to measure: linear, conv, attention or all, separated by commas
    #[arg(long, value_name = "PATTERNS", default_value = "all", value_delimiter = ',')]
    fusion_patterns: Vec<String>,
    /// The sizes that most questions are about, in one round: about a minute
    #[arg(long)]
    quick: bool,
    /// Where: `cpu`, `cuda[:N]` or `hip[:N]`
    #[arg(long, value_name = "DEVICE", default_value = "cpu", value_parser = values::devices())]
    device: Device,
    /// The precisions of contractions, separated by commas [default: those that the device is used in]
    #[arg(long, value_name = "PRECISION", value_delimiter = ',', value_parser = values::float_precisions())]
    precision: Vec<Precision>,
    /// Threads of the CPU [default: all]
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,
    /// Wait at most so long, in all, for a processor that other guests of the host slow down [default: 300, with --quick 60]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    patience: Option<Duration>,
    /// Write the profile to this file; `-` is standard output [default: where other commands find it]
    #[arg(short, long, visible_alias = "out", value_name = "FILE")]
    output: Option<PathBuf>,
    /// Go on with a measurement that was interrupted, which was left in FILE.partial
    #[arg(long)]
    resume: bool,
    /// Draw the roofline to this file
    #[arg(long, value_name = "FILE.svg")]
    svg: Option<PathBuf>,
    /// Fail where a fusion is slower than the kernels it replaces
    #[arg(long)]
    fail_on_slower: bool,
    /// Print the profile as JSON for programs
    #[arg(long)]
    json: bool,
    /// Tiny sizes: a check of the program, not of the machine
    #[arg(long, hide = true)]
    smoke: bool,
    /// Disturb every time by up to this part: a check of the checks
    #[arg(long, value_name = "PART", hide = true, default_value_t = 0.0)]
    inject_noise: f64,
}

/// Parses a number above zero for clap.
pub(super) fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() && value > 0.0 => Ok(value),
        _ => Err("expected a number above 0".to_owned()),
    }
}

/// Parses a number of seconds, 0 among them, for clap.
pub(super) fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds.ok_or_else(|| "expected a number of seconds".to_owned())
}

/// Runs the command.
pub(super) fn run(args: &MeasureArgs) -> Outcome {
    let settings = settings(args)?;
    let path = match &args.output {
        Some(path) => path.clone(),
        None => default_path(args.device).ok_or_else(|| {
            Failure::not_possible(anyhow!(
                "no place for the profile: neither XDG_DATA_HOME nor HOME is set; use --output"
            ))
        })?,
    };
    let files = [("--output", Some(path.as_path())), ("--svg", args.svg.as_deref())];
    let taken = output::takes_stdout(files, args.json)?;
    let place = Place::new(&path);
    let begun = begun(args, &place)?;
    if args.output.is_none()
        && let Some(folder) = path.parent()
    {
        output::written(&path, std::fs::create_dir_all(folder))?;
    }
    output::check(files.map(|(_, path)| path))?;
    let stop = stop_on_signals()?;
    let mut watch = Watch::new(place, stop);
    let profile = calibrate(&settings, begun, &mut watch).map_err(|error| match error {
        Error::Profile(error @ ProfileError::Io { .. }) => unwritten(&error),
        error => failure(error),
    })?;
    let place = watch.place.of(&profile);
    if let Some(svg) = &args.svg {
        output::write(svg, picture(&Roofline::new(&profile, &args.device.to_string())).as_bytes())?;
    }
    if args.json {
        term::print_json(&profile)?;
    } else {
        term::print_beside(taken, &text::profile(&profile, term::screen(taken)))?;
    }
    if !is_standard(place) {
        term::remark(&format!("profile written to {}", place.display()));
    }
    if profile.complete {
        keep_in_history(&profile);
    }
    Ok(exit(args.fail_on_slower, &profile))
}

fn settings(args: &MeasureArgs) -> Result<Settings, Failure> {
    let mut families = Vec::new();
    for name in &args.fusion_patterns {
        let named = match name.as_str() {
            "all" => Family::NAMED.to_vec(),
            other => {
                let family = other.parse::<Family>();
                vec![
                    family
                        .map_err(|error| Failure::bad_input(anyhow!("--fusion-patterns {other}: {error}")))?,
                ]
            }
        };
        families.extend(named);
    }
    families.sort_unstable();
    families.dedup();
    let scale = match (args.smoke, args.quick) {
        (true, _) => Scale::Smoke,
        (false, true) => Scale::Quick,
        (false, false) => Scale::Full,
    };
    Ok(Settings {
        families,
        precisions: args.precision.clone(),
        threads: args.threads,
        hardware_name: args.hardware.clone(),
        theoretical: Theoretical { peak_gflops: args.peak_gflops, peak_bandwidth_gbps: args.peak_bandwidth },
        patience: args.patience,
        noise: args.inject_noise,
        ..Settings::new(args.device, scale)
    })
}

fn unwritten(error: &ProfileError) -> Failure {
    Failure::not_possible(anyhow!("cannot write {error}"))
}

/// The profile to go on with: what an interrupted calibration left, or else the whole profile, which may lack what is asked for now.
fn begun(args: &MeasureArgs, place: &Place) -> Result<Option<Profile>, Failure> {
    if !args.resume {
        return Ok(None);
    }
    if is_standard(&place.whole) {
        return Err(Failure::bad_input(anyhow!(
            "--resume needs the file of the profile, not standard output"
        )));
    }
    let from = [&place.partial, &place.whole].into_iter().find(|path| path.exists()).unwrap_or(&place.whole);
    let found = machine::read(from)?.profile;
    term::remark(&format!("going on with {}", from.display()));
    Ok(Some(found))
}

/// Keeps a record of the limits and speedups, as every benchmark has one. The profile is written by then, whatever becomes of the record.
fn keep_in_history(profile: &Profile) {
    let run = suite_run(profile, Timestamp::now());
    match History::open_default().and_then(|mut history| history.save(&run)) {
        Ok(()) => term::remark(&format!("kept in the history as {}", run.run_id)),
        Err(error) => crate::term::tell!("warpt: the calibration is not kept in the history: {error}"),
    }
}

/// Inconclusive where it was stopped or the machine is too noisy; failed where a fusion is slower and that is asked for.
fn exit(fail_on_slower: bool, profile: &Profile) -> Exit {
    let check = &profile.self_check;
    if !profile.complete {
        term::remark("interrupted: what was measured is kept, --resume goes on");
        return Exit::Inconclusive;
    }
    if check.is_inconclusive() {
        for disturbance in &check.disturbances {
            crate::term::tell!("warpt: {disturbance}");
        }
        return Exit::Inconclusive;
    }
    let slower = profile.fusion_profiles.iter().filter(|entry| entry.verdict == Verdict::Slower).count();
    if fail_on_slower && slower > 0 {
        crate::term::tell!("warpt: {slower} fusion patterns are slower than the kernels they replace");
        return Exit::CheckFailed;
    }
    Exit::Pass
}

/// Shows progress and keeps what was measured.
struct Watch {
    place: Place,
    stop: Arc<AtomicBool>,
    bar: ProgressBar,
    written: Instant,
}

impl Watch {
    fn new(place: Place, stop: Arc<AtomicBool>) -> Self {
        let bar = ProgressBar::new(0);
        if let Ok(style) = ProgressStyle::with_template("{pos}/{len} {elapsed_precise} {wide_msg}") {
            bar.set_style(style);
        }
        // What is there at once is written at once.
        let written = Instant::now().checked_sub(CHECKPOINT).unwrap_or_else(Instant::now);
        Self { place, stop, bar, written }
    }
}

impl Observer for Watch {
    fn begins(&mut self, step: &Step) {
        self.bar.set_length(step.count as u64);
        self.bar.set_position(step.number as u64);
        self.bar.set_message(step.what.clone());
    }

    fn measured(&mut self, profile: &Profile) -> Result<(), ProfileError> {
        let begun = !profile.operations.is_empty() || !profile.overheads.is_empty();
        if self.place.is_through() || !begun || self.written.elapsed() < CHECKPOINT {
            return Ok(());
        }
        self.written = Instant::now();
        self.place.keep(profile)
    }

    fn ended(&mut self, profile: &Profile) -> Result<(), ProfileError> {
        self.bar.finish_and_clear();
        self.place.keep(profile)
    }

    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn profile(verdict: &str, check: &str, complete: bool) -> Profile {
        let fusion = json!({
            "fusion_pattern": "FullAttention", "operators": [], "input_shape": [4, 1, 256, 64], "dtype": "f32",
            "device": "cpu", "threads": 1, "unfused_latency_ms": 0.7, "unfused_gflops": 1.0, "unfused_bytes": 7,
            "unfused_kernels": 4, "fused_latency_ms": 1.0, "fused_gflops": 0.7, "fused_bytes": 1, "fused_kernels": 1,
            "speedup_factor": 0.7, "speedup_ci": [0.68, 0.72], "memory_reduction": 0.857, "gflops_improvement": -0.3,
            "flops": 1, "num_trials": 9, "verdict": verdict,
        });
        let whole: Value = json!({
            "schema_version": 1, "tool_version": "0.1.0", "created": "2026-11-16T12:00:00Z", "quick": true,
            "complete": complete,
            "machine": {"fingerprint": "", "hardware_name": "", "cpu": "", "isa": [], "caches": [], "threads": 1},
            "conditions": {"load_average_1m": null, "foreign_cpu_percent": null, "steal_percent": null, "min_mhz": null,
                "max_mhz": null, "throttle_events": null, "max_temperature_celsius": null, "governor": null},
            "fusion_profiles": [fusion],
            "self_check": {"verdict": check},
        });
        warpforge_calibrate::profile::read_str(&whole.to_string(), "test").unwrap()
    }

    #[test]
    fn slower_is_a_finding_and_a_failure_only_where_that_is_asked_for() {
        let slower = profile("slower", "PASS", true);
        assert_eq!(exit(false, &slower), Exit::Pass);
        assert_eq!(exit(true, &slower), Exit::CheckFailed);
        assert_eq!(exit(true, &profile("minimal", "PASS", true)), Exit::Pass);
        assert_eq!(exit(true, &profile("slower", "INCONCLUSIVE", true)), Exit::Inconclusive);
        assert_eq!(exit(true, &profile("slower", "PASS", false)), Exit::Inconclusive);
    }
}

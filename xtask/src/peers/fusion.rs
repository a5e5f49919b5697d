//! What fusion is worth: unfused against fused of ours, beside PyTorch eager against `torch.compile`, in turn.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};
use clap::Args;
use serde_json::Value;
use warpforge_measure::stats;

use super::{page, tools, warpt};
use crate::command::{output, root};
use crate::python;

/// Where the table goes.
const PAGE: &str = "docs/calibrate.md";

/// The patterns, in the order of the table, with the size that both sides have.
const PATTERNS: [(&str, &[u64]); 9] = [
    ("Linear_Bias", &[512, 1024, 1024]),
    ("Linear_Bias_ReLU", &[512, 1024, 1024]),
    ("Linear_Bias_GELU", &[512, 1024, 1024]),
    ("Conv2d_ReLU", &[4, 128, 28, 28, 128, 3, 1, 1]),
    ("Conv2d_BatchNorm", &[4, 128, 28, 28, 128, 3, 1, 1]),
    ("Conv2d_BatchNorm_ReLU", &[4, 128, 28, 28, 128, 3, 1, 1]),
    ("QK^T", &[4, 1, 256, 64]),
    ("QK^T_Softmax", &[4, 1, 256, 64]),
    ("FullAttention", &[4, 1, 256, 64]),
];

/// How far the results of PyTorch's two ways may be apart.
const NEAR: f64 = 1e-4;

/// Arguments of `cargo xtask peers fusion`.
#[derive(Debug, Args)]
pub(crate) struct FusionArgs {
    /// How often each side runs, in turn
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..))]
    alternations: u16,
    /// Where both sides run: `cpu` or `cuda`
    #[arg(long, default_value = "cpu", value_parser = ["cpu", "cuda"])]
    device: String,
    /// A Python that has PyTorch [default: an environment made under target/]
    #[arg(long, value_name = "PYTHON")]
    python: Option<PathBuf>,
    /// The warpt to measure [default: built here in release]
    #[arg(long, value_name = "PROGRAM")]
    warpt: Option<PathBuf>,
    /// Keep the profiles of our turns in this folder
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Put the figures into docs/calibrate.md
    #[arg(long)]
    update_docs: bool,
}

/// One side of a pattern in one turn.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Gain {
    apart_ms: f64,
    together_ms: f64,
    speedup: f64,
    low: f64,
    high: f64,
}

type Gains = BTreeMap<String, Gain>;

/// Runs both sides and prints the table.
pub(super) fn run(args: &FusionArgs) -> anyhow::Result<()> {
    let program = match &args.warpt {
        Some(program) => std::path::absolute(program)?,
        None => tools::build_warpt()?,
    };
    let python = match &args.python {
        Some(python) => python.clone(),
        None => match python::environment(&python::PEERS)? {
            Ok(python) => python,
            Err(reason) => bail!("{reason}"),
        },
    };
    let folder = tempfile::tempdir()?;
    let keep = args.keep.as_deref().unwrap_or(folder.path());
    std::fs::create_dir_all(keep)?;
    let (mut theirs, mut ours) = (Vec::new(), Vec::new());
    for turn in 1..=args.alternations {
        eprintln!("fusion: {turn} of {}", args.alternations);
        theirs.push(torch(&python, &args.device)?);
        ours.push(calibrated(&program, &args.device, &keep.join(format!("{turn}.json")))?);
    }
    let table = markdown(&theirs, &ours)?;
    println!("{table}");
    if args.update_docs {
        let heading = format!(
            "{}; f32, medians of {} runs of each side, in turn; intervals are the union of the turns' 95 % intervals.",
            warpt::machine(&program)?,
            args.alternations
        );
        let task = match args.device.as_str() {
            "cpu" => "peers fusion".to_owned(),
            device => format!("peers fusion --device {device}"),
        };
        page::update(&root().join(PAGE), &task, &format!("{heading}\n\n{table}"))?;
    }
    Ok(())
}

/// PyTorch's turn.
fn torch(python: &Path, device: &str) -> anyhow::Result<Gains> {
    let program = root().join("xtask/peers/calibrate/fusion.py");
    let text = output(Command::new(python).arg(program).args(["1", device]))?;
    text.lines().map(|line| compiled(&serde_json::from_str(line)?)).collect()
}

/// What `torch.compile` gains in one pattern.
fn compiled(answer: &Value) -> anyhow::Result<(String, Gain)> {
    let name = answer["pattern"].as_str().context("a line without a pattern")?;
    let error = answer["max_relative_error"].as_f64().unwrap_or(f64::NAN);
    if error.is_nan() || error > NEAR {
        bail!("{name}: torch.compile is {error:.1e} from eager, {NEAR:.0e} allowed");
    }
    let pairs = answer["pairs_ms"].as_array().with_context(|| format!("{name} has no pairs"))?;
    let side = |at: usize| pairs.iter().filter_map(|pair| pair[at].as_f64()).collect::<Vec<f64>>();
    let (eager, compiled) = (side(0), side(1));
    let ratios: Vec<f64> = eager.iter().zip(&compiled).map(|(eager, compiled)| eager / compiled).collect();
    let median = |values: &[f64]| stats::median(values).with_context(|| format!("{name} has no pairs"));
    let interval = stats::order_interval(&ratios, stats::CONFIDENCE);
    let interval = interval.with_context(|| format!("{name} has too few pairs"))?;
    Ok((
        name.to_owned(),
        Gain {
            apart_ms: median(&eager)?,
            together_ms: median(&compiled)?,
            speedup: median(&ratios)?,
            low: interval.low,
            high: interval.high,
        },
    ))
}

/// Our turn: a quick calibration.
fn calibrated(warpt: &Path, device: &str, profile: &Path) -> anyhow::Result<Gains> {
    let mut command = Command::new(warpt);
    command
        .args(["calibrate", "--quick", "--precision", "model", "--device", device, "--output"])
        .arg(profile);
    let done = command.output().with_context(|| warpt.display().to_string())?;
    // A machine too noisy to say has figures as well, and wide intervals.
    if !matches!(done.status.code(), Some(0 | 4)) {
        bail!("warpt ended with {}: {}", done.status, String::from_utf8_lossy(&done.stderr).trim());
    }
    fused(&serde_json::from_slice(&std::fs::read(profile)?)?)
}

/// What fusion gains in a profile.
fn fused(profile: &Value) -> anyhow::Result<Gains> {
    let entries = profile["fusion_profiles"].as_array().context("the profile has no patterns")?;
    let of = |(name, shape): (&str, &[u64])| {
        let shape = serde_json::json!(shape);
        let is_it = |entry: &&Value| {
            entry["fusion_pattern"] == name && entry["input_shape"] == shape && entry["dtype"] == "f32"
        };
        let entry = entries.iter().find(is_it).with_context(|| format!("the profile has no {name}"))?;
        let number =
            |value: &Value| value.as_f64().with_context(|| format!("{name} has something that is no number"));
        let gain = Gain {
            apart_ms: number(&entry["unfused_latency_ms"])?,
            together_ms: number(&entry["fused_latency_ms"])?,
            speedup: number(&entry["speedup_factor"])?,
            low: number(&entry["speedup_ci"][0])?,
            high: number(&entry["speedup_ci"][1])?,
        };
        Ok((name.to_owned(), gain))
    };
    PATTERNS.into_iter().map(of).collect()
}

/// All turns of a pattern together.
fn together(turns: &[Gains], name: &str) -> anyhow::Result<Gain> {
    let all = turns.iter().map(|turn| turn.get(name).copied()).collect::<Option<Vec<Gain>>>();
    let all = all.with_context(|| format!("a turn has no {name}"))?;
    let median = |value: fn(&Gain) -> f64| {
        stats::median(&all.iter().map(value).collect::<Vec<f64>>())
            .with_context(|| format!("no turns of {name}"))
    };
    Ok(Gain {
        apart_ms: median(|gain| gain.apart_ms)?,
        together_ms: median(|gain| gain.together_ms)?,
        speedup: median(|gain| gain.speedup)?,
        low: all.iter().map(|gain| gain.low).fold(f64::INFINITY, f64::min),
        high: all.iter().map(|gain| gain.high).fold(f64::NEG_INFINITY, f64::max),
    })
}

fn markdown(theirs: &[Gains], ours: &[Gains]) -> anyhow::Result<String> {
    let mut out = "| pattern | eager ms | compiled ms | gain of torch.compile | unfused ms | fused ms | gain of ours | \
                   gains more |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |\n"
        .to_owned();
    for (name, _) in PATTERNS {
        let (torch, warpt) = (together(theirs, name)?, together(ours, name)?);
        let more = match (warpt.low > torch.high, torch.low > warpt.high) {
            (true, _) => "ours",
            (_, true) => "torch.compile",
            _ => "neither for sure",
        };
        let gain = |gain: Gain| format!("{:.2} ({:.2} to {:.2})", gain.speedup, gain.low, gain.high);
        let _ = writeln!(
            out,
            "| `{name}` | {:.3} | {:.3} | {} | {:.3} | {:.3} | {} | {more} |",
            torch.apart_ms,
            torch.together_ms,
            gain(torch),
            warpt.apart_ms,
            warpt.together_ms,
            gain(warpt),
        );
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn turn(speedup: f64) -> Gains {
        let gain = Gain {
            apart_ms: 2.0 * speedup,
            together_ms: 2.0,
            speedup,
            low: speedup - 0.1,
            high: speedup + 0.1,
        };
        PATTERNS.iter().map(|(name, _)| ((*name).to_owned(), gain)).collect()
    }

    #[test]
    fn a_side_gains_more_only_where_the_intervals_are_apart() {
        let text = markdown(&[turn(1.0)], &[turn(1.5), turn(1.7), turn(1.6)]).unwrap();
        let line =
            "| `QK^T` | 2.000 | 2.000 | 1.00 (0.90 to 1.10) | 3.200 | 2.000 | 1.60 (1.40 to 1.80) | ours |";
        assert!(text.contains(line), "{text}");
        assert!(markdown(&[turn(1.0)], &[turn(1.15)]).unwrap().contains("| neither for sure |"));
        assert!(markdown(&[turn(2.0)], &[turn(1.0)]).unwrap().contains("| torch.compile |"));
        assert!(markdown(&[Gains::new()], &[turn(1.0)]).unwrap_err().to_string().contains("Linear_Bias"));
    }

    #[test]
    fn pairs_of_pytorch_give_the_ratio_and_its_interval() {
        let pairs: Vec<[f64; 2]> = (0..15).map(|at| [3.0, 2.0 + 0.01 * f64::from(at)]).collect();
        let answer = json!({"pattern": "QK^T", "pairs_ms": pairs, "max_relative_error": 1e-7});
        let (name, gain) = compiled(&answer).unwrap();
        assert_eq!((name.as_str(), gain.apart_ms), ("QK^T", 3.0));
        assert!(
            gain.low < gain.speedup && gain.speedup < gain.high && (gain.speedup - 3.0 / 2.07).abs() < 1e-9
        );
        let wrong = json!({"pattern": "QK^T", "pairs_ms": pairs, "max_relative_error": 0.1});
        assert!(compiled(&wrong).unwrap_err().to_string().contains("1.0e-1 from eager"));
    }

    #[test]
    fn a_profile_gives_the_size_that_both_sides_have() {
        let entry = |name: &str, shape: &[u64], speedup: f64| {
            json!({"fusion_pattern": name, "input_shape": shape, "dtype": "f32", "unfused_latency_ms": 3.0,
                   "fused_latency_ms": 2.0, "speedup_factor": speedup, "speedup_ci": [1.4, 1.6]})
        };
        let mut entries: Vec<Value> = PATTERNS.iter().map(|(name, shape)| entry(name, shape, 1.5)).collect();
        entries.insert(0, entry("QK^T", &[1, 12, 64, 64], 9.0));
        let found = fused(&json!({ "fusion_profiles": entries })).unwrap();
        assert_eq!(found["QK^T"].speedup, 1.5);
        entries.pop();
        let lacking = fused(&json!({ "fusion_profiles": entries })).unwrap_err();
        assert!(lacking.to_string().contains("no FullAttention"), "{lacking}");
    }
}

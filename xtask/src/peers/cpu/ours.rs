//! Our side: `warpt run` on the exported archive.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};
use serde_json::Value;
use warpforge_tensor::Tensor;
use warpforge_tensor::io::safetensors;

use super::peer::{Accuracy, numbers};
use super::stats::median;
use crate::command::output;

/// Runs that are not counted, as for the peers.
const WARM_UP: usize = 2;
/// The fewest and the most that are.
const RUNS: (f64, f64) = (5.0, 20_000.0);

/// A workload and how to run it.
#[derive(Debug, Clone)]
pub(in crate::peers) struct Ours<'a> {
    pub(in crate::peers) warpt: &'a Path,
    /// The workload's folder.
    pub(in crate::peers) folder: PathBuf,
    pub(in crate::peers) device: &'a str,
    pub(in crate::peers) threads: usize,
    pub(in crate::peers) precision: &'a str,
}

/// What `warpt run --json` says.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::peers) struct Run {
    pub(in crate::peers) times_ms: Vec<f64>,
    pub(in crate::peers) load_ms: f64,
    pub(in crate::peers) compile_ms: f64,
    /// What the reference computed because there is no kernel.
    pub(in crate::peers) fallbacks: Vec<String>,
    /// The names of the outputs, in order.
    outputs: Vec<String>,
}

impl Ours<'_> {
    /// The command for so many runs.
    pub(in crate::peers) fn command(&self, runs: usize) -> Command {
        let mut command = Command::new(self.warpt);
        command.arg("run").arg(self.folder.join("model.pt2"));
        command.arg("--inputs").arg(self.folder.join("inputs.safetensors"));
        command.args(["--tier", "production", "--json", "--precision", self.precision]);
        command.args(["--device", self.device]);
        command.args(["--threads", &self.threads.to_string(), "--repeat", &runs.to_string()]);
        command
    }

    /// A few runs, and how far the outputs are from the expected ones.
    pub(in crate::peers) fn check(&self) -> anyhow::Result<(Run, Accuracy)> {
        let folder = tempfile::tempdir()?;
        let results = folder.path().join("outputs.safetensors");
        let run = parse(&output(self.command(WARM_UP + 1).arg("--outputs").arg(&results))?)?;
        let found = safetensors::read(&results)?;
        let expected = safetensors::read(&self.folder.join("outputs.safetensors"))?;
        let facts: Value = serde_json::from_str(&std::fs::read_to_string(self.folder.join("facts.json"))?)?;
        let least_scale = facts["least_scale"].as_f64().context("facts.json has no least_scale")?;
        let accuracy = accuracy(&run.outputs, &found, &expected, least_scale)?;
        Ok((run, accuracy))
    }

    /// Runs for about so long, given how long one takes: the milliseconds of each run.
    pub(in crate::peers) fn times(&self, seconds: f64, one_ms: f64) -> anyhow::Result<Vec<f64>> {
        let mut run = parse(&output(&mut self.command(WARM_UP + runs(seconds, one_ms)))?)?;
        Ok(run.times_ms.split_off(WARM_UP))
    }
}

impl Run {
    /// About how long one run takes.
    pub(in crate::peers) fn one_ms(&self) -> f64 {
        median(&self.times_ms)
    }
}

fn runs(seconds: f64, one_ms: f64) -> usize {
    (seconds * 1e3 / one_ms.max(1e-3)).clamp(RUNS.0, RUNS.1) as usize
}

/// Reads what `warpt run --json` printed.
pub(in crate::peers) fn parse(text: &str) -> anyhow::Result<Run> {
    let record: Value = serde_json::from_str(text).context("warpt printed no JSON")?;
    let number = |field: &str| record[field].as_f64().with_context(|| format!("warpt gives no {field}"));
    let strings = |list: &Value, field: Option<&str>| -> anyhow::Result<Vec<String>> {
        let items = list.as_array().into_iter().flatten();
        items
            .map(|item| field.map_or(item, |field| &item[field]).as_str().map(str::to_owned))
            .collect::<Option<_>>()
            .with_context(|| format!("warpt gives an unexpected list: {list}"))
    };
    Ok(Run {
        times_ms: numbers(&record["times_ms"]).context("warpt gives no times")?,
        load_ms: number("load_ms")?,
        compile_ms: number("compile_ms")?,
        fallbacks: strings(&record["fallbacks"], None)?,
        outputs: strings(&record["outputs"], Some("name"))?,
    })
}

/// The accuracy of outputs, which go by position. Those whose scale is less than the least are measured by it.
fn accuracy(
    names: &[String],
    found: &BTreeMap<String, Tensor>,
    expected: &BTreeMap<String, Tensor>,
    least_scale: f64,
) -> anyhow::Result<Accuracy> {
    if names.len() != expected.len() {
        bail!("{} outputs, PyTorch has {}", names.len(), expected.len());
    }
    let (mut worst, mut ratios) = (0.0f64, Vec::new());
    for (position, name) in names.iter().enumerate() {
        let ours = found.get(name).with_context(|| format!("there is no output {name} in the file"))?;
        let theirs = expected
            .get(&format!("out{position}"))
            .with_context(|| format!("PyTorch's output {position} is missing"))?;
        if ours.dims() != theirs.dims() {
            bail!("output {name} is of shape {:?}, PyTorch's of {:?}", ours.dims(), theirs.dims());
        }
        let (mut error, mut scale, mut signal, mut noise) = (0.0f64, least_scale, 0.0f64, 0.0f64);
        for (a, b) in ours.iter().zip(theirs.iter()) {
            let (a, b) = (a.to_f64(), b.to_f64());
            let difference = (a - b).abs();
            if difference.is_nan() {
                bail!("output {name} is {a} where PyTorch's is {b}");
            }
            error = error.max(difference);
            scale = scale.max(b.abs());
            signal += b * b;
            noise += difference * difference;
        }
        worst = worst.max(if scale > 0.0 { error / scale } else { error });
        if signal > 0.0 && noise > 0.0 {
            ratios.push(10.0 * (signal / noise).log10());
        }
    }
    Ok(Accuracy { distance: worst, sqnr_db: ratios.into_iter().reduce(f64::min) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read() {
        let text = r#"{"times_ms": [3.0, 1.0, 2.0], "load_ms": 4.0, "compile_ms": 5.0, "fallbacks": ["fft"],
                       "outputs": [{"name": "y"}, {"name": "x"}]}"#;
        let run = parse(text).unwrap();
        assert_eq!(run.one_ms(), 2.0);
        assert_eq!((run.load_ms, run.compile_ms), (4.0, 5.0));
        assert_eq!(run.outputs, ["y", "x"]);
        assert_eq!(run.fallbacks, ["fft"]);
        assert!(parse("warpt: no").is_err());
        assert!(parse(&text.replace("load_ms", "other")).is_err());
        assert!(parse(&text.replace("[3.0, 1.0, 2.0]", "[]")).is_err());
    }

    #[test]
    fn runs_fill_the_time_within_bounds() {
        assert_eq!(runs(1.0, 10.0), 100);
        assert_eq!(runs(1.0, 1e6), 5);
        assert_eq!(runs(1.0, 0.0), 20_000);
    }

    #[test]
    fn outputs_are_compared_by_position_and_scale() {
        let file = |name: &str, values: &[f32]| {
            BTreeMap::from([(name.to_owned(), Tensor::from_slice(&[values.len()], values).unwrap())])
        };
        let names = ["logits".to_owned()];
        let expected = file("out0", &[1.0, -4.0]);
        let found = accuracy(&names, &file("logits", &[1.5, -4.0]), &expected, 0.0).unwrap();
        assert_eq!(found.distance, 0.125);
        assert!((found.sqnr_db.unwrap() - 10.0 * 68.0f64.log10()).abs() < 1e-9);
        assert_eq!(accuracy(&names, &file("logits", &[1.0, -4.0]), &expected, 0.0).unwrap().sqnr_db, None);
        assert!(accuracy(&names, &file("logits", &[1.5]), &expected, 0.0).is_err());
        assert!(accuracy(&names, &file("logits", &[f32::NAN, -4.0]), &expected, 0.0).is_err());
        assert!(accuracy(&names, &file("other", &[1.0, -4.0]), &expected, 0.0).is_err());
        assert!(accuracy(&[], &file("logits", &[1.0, -4.0]), &expected, 0.0).is_err());
    }
}

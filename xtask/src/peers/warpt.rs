//! Our own program: its benchmarks, and the machine that it sees.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, bail};
use serde_json::Value;

use crate::command::output;

/// Runs one benchmark in one fresh process, and returns its metrics.
pub(super) fn measure(
    warpt: &Path,
    benchmark: &str,
    seconds: f64,
    params: &[String],
) -> anyhow::Result<Vec<Value>> {
    let mut command = Command::new(warpt);
    command.args(["benchmark", "run", "--benchmark", benchmark, "--json", "--no-history", "--rounds", "1"]);
    command.args(["--duration", &seconds.to_string()]);
    for param in params {
        command.args(["--param", param]);
    }
    let run: Value = serde_json::from_str(&output(&mut command)?)?;
    let result = &run["benchmarks"][0];
    match result["metrics"].as_array() {
        Some(metrics) if result["success"] == true => Ok(metrics.clone()),
        _ => bail!("{benchmark} gave no result: {}", result["error_message"]),
    }
}

/// The value of the one metric with this name and these tags.
pub(super) fn find(metrics: &[Value], name: &str, tags: &[(&str, &str)]) -> anyhow::Result<f64> {
    find_metric(metrics, name, tags)?["value"].as_f64().with_context(|| format!("{name} is no number"))
}

/// The one metric with this name and these tags.
pub(super) fn find_metric<'a>(
    metrics: &'a [Value],
    name: &str,
    tags: &[(&str, &str)],
) -> anyhow::Result<&'a Value> {
    let fits = |metric: &&Value| {
        metric["name"] == name && tags.iter().all(|(tag, value)| metric["tags"][tag] == *value)
    };
    let found: Vec<_> = metrics.iter().filter(fits).collect();
    match found[..] {
        [metric] => Ok(metric),
        _ => bail!("{} metrics {name} with {tags:?}", found.len()),
    }
}

/// The day and the machine that figures are of.
pub(super) fn machine(warpt: &Path) -> anyhow::Result<String> {
    let list: Value = serde_json::from_str(&output(Command::new(warpt).args(["list", "--json"]))?)?;
    let day = output(Command::new("date").arg("+%Y-%m-%d"))?;
    let cpu = &list["hardware"]["cpu"];
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    Ok(format!("{}, {}, {} threads", day.trim(), text(&cpu["model"]), text(&cpu["threads"])))
}

/// The first GPU.
pub(super) fn gpu(warpt: &Path) -> anyhow::Result<String> {
    let list: Value = serde_json::from_str(&output(Command::new(warpt).args(["list", "--json"]))?)?;
    let name = list["hardware"]["gpus"][0]["model"].as_str();
    name.map(str::to_owned).context("warpt list names no GPU")
}

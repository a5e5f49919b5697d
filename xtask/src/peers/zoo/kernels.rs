//! Our slowest kernels of a model, beside what they would take at the roofline.

use std::collections::BTreeMap;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::command::output;
use crate::peers::cpu::ours::Ours;

/// So many are named.
const NAMED: usize = 4;
/// Before the run that is profiled.
const RUNS: usize = 3;

/// Kernels of one name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Kernel {
    pub(super) name: String,
    pub(super) count: usize,
    /// Of all of them together.
    pub(super) ms: f64,
    /// What they would take at the roofline; none where the machine's is not known.
    pub(super) roofline_ms: Option<f64>,
}

/// Profiles a model: the names whose kernels take the most time.
pub(super) fn slowest(ours: &Ours<'_>) -> anyhow::Result<Vec<Kernel>> {
    let folder = tempfile::tempdir()?;
    let trace = folder.path().join("trace.json");
    output(ours.command(RUNS).arg("--profile").arg(&trace))?;
    let text = std::fs::read_to_string(&trace).with_context(|| trace.display().to_string())?;
    parse(&text)
}

fn parse(text: &str) -> anyhow::Result<Vec<Kernel>> {
    let trace: Value = serde_json::from_str(text).context("the profile")?;
    let events = trace["traceEvents"].as_array().context("the profile has no events")?;
    let mut by_name: BTreeMap<&str, Kernel> = BTreeMap::new();
    for event in events.iter().filter(|event| event["cat"] == "kernel") {
        let (Some(name), Some(microseconds)) = (event["name"].as_str(), event["dur"].as_f64()) else {
            continue;
        };
        let share = event["args"]["of_roofline"].as_f64();
        let kernel = by_name.entry(name).or_insert_with(|| Kernel {
            name: name.to_owned(),
            count: 0,
            ms: 0.0,
            roofline_ms: Some(0.0),
        });
        kernel.count += 1;
        kernel.ms += microseconds / 1e3;
        let at_roofline = share.map(|share| microseconds / 1e3 * share.min(1.0));
        kernel.roofline_ms = kernel.roofline_ms.zip(at_roofline).map(|(all, one)| all + one);
    }
    let mut kernels: Vec<Kernel> = by_name.into_values().collect();
    kernels.sort_by(|a, b| b.ms.total_cmp(&a.ms));
    kernels.truncate(NAMED);
    Ok(kernels)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_of_one_name_are_counted_together() {
        let text = r#"{"traceEvents": [
            {"cat": "kernel", "name": "conv", "dur": 1000, "args": {"of_roofline": 0.5}},
            {"cat": "kernel", "name": "gather", "dur": 1500, "args": {}},
            {"cat": "kernel", "name": "conv", "dur": 3000, "args": {"of_roofline": 1.25}},
            {"ph": "M", "name": "process_name"}]}"#;
        let kernels = parse(text).unwrap();
        let conv = Kernel { name: "conv".to_owned(), count: 2, ms: 4.0, roofline_ms: Some(3.5) };
        let gather = Kernel { name: "gather".to_owned(), count: 1, ms: 1.5, roofline_ms: None };
        assert_eq!(kernels, [conv, gather]);
        assert!(parse("{}").is_err());
    }
}

//! Many machines of one kind: what they do at the median, and which of them stray from it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::record::{
    BenchmarkId, BenchmarkMetric, BenchmarkRunResult, BenchmarkSuiteRun, SCHEMA_VERSION, Tags,
};

/// The fewest records of which a median says what is usual.
pub const FEWEST: usize = 3;
/// The smallest deviation that is called one, in percent, by default.
pub const DEFAULT_THRESHOLD_PERCENT: f64 = 5.0;
/// A value further from the median than so many scaled median absolute deviations is no chance: one in fifteen thousand of normal ones
/// is.
const DEVIATIONS: f64 = 4.0;
/// The median absolute deviation of a normal distribution, times this, is its standard deviation.
const SCALE: f64 = 1.4826;

/// What many records come to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fleet {
    /// What the records are called.
    pub nodes: Vec<String>,
    /// Deviations up to this size, in percent, are none.
    pub threshold_percent: f64,
    /// The metrics that enough records have.
    pub metrics: Vec<FleetMetric>,
    /// Values far from the median, the furthest first.
    pub strays: Vec<Stray>,
}

/// A metric over all nodes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FleetMetric {
    /// The benchmark.
    pub benchmark: BenchmarkId,
    /// The metric's name.
    pub name: String,
    /// Its tags.
    pub tags: Tags,
    /// Its unit.
    pub unit: String,
    /// Whether a larger value is the better one.
    pub higher_is_better: bool,
    /// The median of the nodes' values.
    pub median: f64,
    /// The median absolute deviation from it, scaled to a standard deviation.
    pub deviation: f64,
    /// How many nodes have it.
    pub nodes: usize,
}

/// A value of one node that is far from the others'.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stray {
    /// What the record is called.
    pub node: String,
    /// The benchmark.
    pub benchmark: BenchmarkId,
    /// The metric's name.
    pub name: String,
    /// Its tags.
    pub tags: Tags,
    /// Its unit.
    pub unit: String,
    /// The node's value.
    pub value: f64,
    /// The median of all.
    pub median: f64,
    /// How far away, in percent of the median.
    pub percent: f64,
    /// Whether it is on the bad side.
    pub worse: bool,
}

/// Why there is no baseline.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum FleetError {
    /// Too few records to say what is usual.
    #[error("a fleet needs at least {FEWEST} records; the number given is {0}")]
    TooFew(usize),
    /// No metric is in enough of them.
    #[error("no metric is in {FEWEST} of the records: they are of different benchmarks or parameters")]
    NothingInCommon,
    /// The threshold makes no sense.
    #[error("a threshold of {0} %: it must be a number that is not negative")]
    BadThreshold(f64),
}

type Key = (BenchmarkId, String, Tags);

/// Finds the medians of many records, and what strays from them.
///
/// # Errors
/// If there are too few records, or they have nothing in common.
pub fn fleet(records: &[(String, BenchmarkSuiteRun)], threshold_percent: f64) -> Result<Fleet, FleetError> {
    if !(threshold_percent.is_finite() && threshold_percent >= 0.0) {
        return Err(FleetError::BadThreshold(threshold_percent));
    }
    if records.len() < FEWEST {
        return Err(FleetError::TooFew(records.len()));
    }
    let mut found: BTreeMap<Key, Vec<(&str, &BenchmarkMetric)>> = BTreeMap::new();
    for (node, run) in records {
        for result in &run.benchmarks {
            for metric in result.metrics.iter().filter(|metric| metric.value.is_finite()) {
                let tags = metric.tags.clone().unwrap_or_default();
                let key = (result.spec.id.clone(), metric.name.clone(), tags);
                let values = found.entry(key).or_default();
                // A record has each metric once; another of the same name would count its node twice.
                if values.last().is_none_or(|(last, _)| last != node) {
                    values.push((node, metric));
                }
            }
        }
    }
    let (mut metrics, mut strays) = (Vec::new(), Vec::new());
    for ((benchmark, name, tags), values) in found {
        let (Some((_, first)), true) = (values.first(), values.len() >= FEWEST) else { continue };
        let centre = median(values.iter().map(|(_, metric)| metric.value));
        let deviation = SCALE * median(values.iter().map(|(_, metric)| (metric.value - centre).abs()));
        for (node, metric) in &values {
            let away = metric.value - centre;
            let percent = if centre == 0.0 { 0.0 } else { 100.0 * away / centre.abs() };
            if percent.abs() > threshold_percent && away.abs() > DEVIATIONS * deviation {
                strays.push(Stray {
                    node: (*node).to_owned(),
                    benchmark: benchmark.clone(),
                    name: name.clone(),
                    tags: tags.clone(),
                    unit: metric.unit.clone(),
                    value: metric.value,
                    median: centre,
                    percent,
                    worse: (away < 0.0) == metric.higher_is_better,
                });
            }
        }
        metrics.push(FleetMetric {
            unit: first.unit.clone(),
            higher_is_better: first.higher_is_better,
            benchmark,
            name,
            tags,
            median: centre,
            deviation,
            nodes: values.len(),
        });
    }
    if metrics.is_empty() {
        return Err(FleetError::NothingInCommon);
    }
    strays.sort_by(|a, b| b.percent.abs().total_cmp(&a.percent.abs()));
    let nodes = records.iter().map(|(node, _)| node.clone()).collect();
    Ok(Fleet { nodes, threshold_percent, metrics, strays })
}

impl Fleet {
    /// The medians as a record, to compare and score runs with. What identifies benchmarks and parameters is that of the
    /// first record that has them.
    #[must_use]
    pub fn baseline(&self, records: &[(String, BenchmarkSuiteRun)]) -> BenchmarkSuiteRun {
        let mut benchmarks: Vec<BenchmarkRunResult> = Vec::new();
        for metric in &self.metrics {
            let value = BenchmarkMetric {
                name: metric.name.clone(),
                value: metric.median,
                unit: metric.unit.clone(),
                higher_is_better: metric.higher_is_better,
                tags: (!metric.tags.is_empty()).then(|| metric.tags.clone()),
                statistics: None,
            };
            if let Some(result) = benchmarks.iter_mut().find(|result| result.spec.id == metric.benchmark) {
                result.metrics.push(value);
                continue;
            }
            let results = records.iter().flat_map(|(_, run)| &run.benchmarks);
            if let Some(first) = results.into_iter().find(|result| result.spec.id == metric.benchmark) {
                benchmarks.push(BenchmarkRunResult {
                    metrics: vec![value],
                    success: true,
                    error_message: None,
                    system: None,
                    conditions: None,
                    warnings: Vec::new(),
                    beside: Vec::new(),
                    ..first.clone()
                });
            }
        }
        let metadata =
            BTreeMap::from([("fleet".to_owned(), format!("medians of {} records", self.nodes.len()))]);
        BenchmarkSuiteRun {
            schema_version: SCHEMA_VERSION,
            run_id: String::new(),
            tool_version: env!("CARGO_PKG_VERSION").to_owned(),
            suite: "fleet".to_owned(),
            components: Vec::new(),
            benchmarks,
            metadata: Some(metadata),
            timeline: Vec::new(),
        }
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => f64::NAN,
        count if count.is_multiple_of(2) => f64::midpoint(sorted[middle - 1], sorted[middle]),
        _ => sorted[middle],
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::record::BenchmarkKind;

    /// A run of benchmarks with a metric each: benchmark, name, unit, direction, value.
    pub(crate) fn run(metrics: &[(&str, &str, &str, bool, f64)]) -> BenchmarkSuiteRun {
        let mut benchmarks: Vec<BenchmarkRunResult> = Vec::new();
        for &(benchmark, name, unit, higher_is_better, value) in metrics {
            let id = BenchmarkId::new("micro", benchmark);
            let metric = BenchmarkMetric {
                name: name.to_owned(),
                value,
                unit: unit.to_owned(),
                higher_is_better,
                tags: None,
                statistics: None,
            };
            match benchmarks.iter_mut().find(|result| result.spec.id == id) {
                Some(result) => result.metrics.push(metric),
                None => benchmarks.push(BenchmarkRunResult {
                    spec: id.spec(BenchmarkKind::Synthetic),
                    metrics: vec![metric],
                    success: true,
                    error_message: None,
                    start_time: jiff::Timestamp::UNIX_EPOCH,
                    end_time: jiff::Timestamp::UNIX_EPOCH,
                    system: None,
                    verdict: None,
                    conditions: None,
                    warnings: Vec::new(),
                    beside: Vec::new(),
                }),
            }
        }
        BenchmarkSuiteRun {
            schema_version: SCHEMA_VERSION,
            run_id: "x".to_owned(),
            tool_version: String::new(),
            suite: "micro".to_owned(),
            components: Vec::new(),
            benchmarks,
            metadata: None,
            timeline: Vec::new(),
        }
    }

    fn nodes(values: &[f64]) -> Vec<(String, BenchmarkSuiteRun)> {
        let node =
            |(at, &value): (usize, &f64)| (format!("n{at}"), run(&[("a", "rate", "GB/s", true, value)]));
        values.iter().enumerate().map(node).collect()
    }

    #[test]
    fn a_node_that_strays_is_found_and_the_spread_of_the_others_is_none() {
        let records = nodes(&[100.0, 101.0, 99.0, 100.5, 99.5, 80.0, 100.2]);
        let found = fleet(&records, 5.0).unwrap();
        let strays: Vec<(&str, bool)> =
            found.strays.iter().map(|stray| (stray.node.as_str(), stray.worse)).collect();
        assert_eq!(strays, [("n5", true)]);
        assert!((found.strays[0].percent + 20.0).abs() < 0.5);
        let baseline = found.baseline(&records);
        assert_eq!(baseline.benchmarks[0].metrics[0].value, 100.0);
        // Where all differ, none strays.
        assert!(fleet(&nodes(&[80.0, 90.0, 100.0, 110.0, 120.0]), 5.0).unwrap().strays.is_empty());
        // Better by much is far from the others too, but not worse.
        assert!(!fleet(&nodes(&[100.0, 100.0, 100.0, 130.0]), 5.0).unwrap().strays[0].worse);
    }

    #[test]
    fn too_few_or_unlike_records_are_refused() {
        assert_eq!(fleet(&nodes(&[1.0, 2.0]), 5.0), Err(FleetError::TooFew(2)));
        let unlike: Vec<(String, BenchmarkSuiteRun)> =
            ["a", "b", "c"].map(|name| (name.to_owned(), run(&[(name, "rate", "GB/s", true, 1.0)]))).into();
        assert_eq!(fleet(&unlike, 5.0), Err(FleetError::NothingInCommon));
        assert!(matches!(fleet(&unlike, f64::NAN), Err(FleetError::BadThreshold(_))));
    }
}

//! Temperatures, power and throttling over a run.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use warpforge_inventory::live::TimelineRecord;

/// The least, the mean and the largest value of something sampled.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Range {
    /// What was sampled: a sensor or a power domain.
    pub source: String,
    /// The least value.
    pub min: f64,
    /// The mean of the samples.
    pub mean: f64,
    /// The largest value.
    pub max: f64,
}

/// What a timeline says about heat and power. A machine without sensors has empty lists.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Telemetry {
    /// Degrees Celsius of each sensor.
    #[serde(default)]
    pub temperature_celsius: Vec<Range>,
    /// Watts of each power domain and GPU.
    #[serde(default)]
    pub power_watts: Vec<Range>,
    /// Why a GPU held down its clocks, as `gpu 0: sw_power_cap`; null where no GPU reports it.
    pub gpu_throttle_reasons: Option<Vec<String>>,
}

impl Telemetry {
    pub(crate) fn of(timeline: &[TimelineRecord]) -> Self {
        let (mut celsius, mut watts) = (Series::default(), Series::default());
        let mut reasons: Option<BTreeSet<String>> = None;
        for record in timeline {
            for sensor in &record.temperatures {
                let label = sensor.label.as_deref().unwrap_or(&sensor.id);
                celsius.add(format!("{} {label} ({})", sensor.chip, sensor.id), Some(sensor.celsius));
            }
            for domain in &record.power {
                watts.add(domain.domain.clone(), domain.watts);
            }
            for gpu in &record.gpu_usage {
                let name = format!("gpu {}", gpu.index);
                celsius.add(name.clone(), gpu.temperature_celsius);
                watts.add(name.clone(), gpu.power_watts);
                if let Some(found) = &gpu.throttle_reasons {
                    let reasons = reasons.get_or_insert_default();
                    reasons.extend(found.iter().map(|reason| format!("{name}: {reason}")));
                }
            }
        }
        Self {
            temperature_celsius: celsius.ranges(),
            power_watts: watts.ranges(),
            gpu_throttle_reasons: reasons.map(|reasons| reasons.into_iter().collect()),
        }
    }
}

/// Samples by their source.
#[derive(Default)]
struct Series(BTreeMap<String, Vec<f64>>);

impl Series {
    fn add(&mut self, source: String, value: Option<f64>) {
        if let Some(value) = value {
            self.0.entry(source).or_default().push(value);
        }
    }

    fn ranges(self) -> Vec<Range> {
        let range = |(source, values): (String, Vec<f64>)| Range {
            source,
            min: values.iter().copied().fold(f64::INFINITY, f64::min),
            mean: values.iter().sum::<f64>() / values.len() as f64,
            max: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        };
        self.0.into_iter().map(range).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpforge_inventory::live::{GpuUsage, PowerUsage};

    #[test]
    fn each_source_has_its_range_and_unknown_values_do_not_count() {
        let record = |watts: Option<f64>, reasons: &[&str]| TimelineRecord {
            power: vec![PowerUsage { domain: "package-0".to_owned(), watts, energy_joules: None }],
            gpu_usage: vec![GpuUsage {
                index: 1,
                temperature_celsius: Some(61.0),
                throttle_reasons: Some(reasons.iter().map(ToString::to_string).collect()),
                ..GpuUsage::default()
            }],
            ..TimelineRecord::default()
        };
        let timeline =
            [record(Some(10.0), &[]), record(None, &["sw_power_cap"]), record(Some(40.0), &["sw_power_cap"])];
        let telemetry = Telemetry::of(&timeline);
        let [power] = telemetry.power_watts.as_slice() else { panic!("{telemetry:?}") };
        assert_eq!((power.min, power.mean, power.max), (10.0, 25.0, 40.0));
        assert_eq!(telemetry.temperature_celsius[0].source, "gpu 1");
        assert_eq!(telemetry.gpu_throttle_reasons, Some(vec!["gpu 1: sw_power_cap".to_owned()]));
        assert_eq!(Telemetry::of(&[]), Telemetry::default());
    }
}

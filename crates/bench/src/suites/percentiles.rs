//! Latency percentiles as metrics.

use warpforge_probes::latency::{Latencies, PERCENTILES};

use crate::benchmark::{BenchmarkError, MetricKey, RunContext};

/// Reports each percentile as a metric `<prefix>_p50` and so on, in microseconds, with the tags that `tagged` adds.
/// Those for which there were too few operations are left out, with a warning.
pub(crate) fn record(
    context: &mut RunContext<'_>,
    prefix: &str,
    latencies: &Latencies,
    tagged: impl Fn(MetricKey) -> MetricKey,
) -> Result<(), BenchmarkError> {
    let mut missing = Vec::new();
    for (name, share) in PERCENTILES {
        let key = tagged(MetricKey::less_is_better(&format!("{prefix}_{name}"), "us"));
        match latencies.percentile(share) {
            Some(latency) => context.record(key, vec![latency.as_secs_f64() * 1e6])?,
            None if context.stopped() => return Err(BenchmarkError::Stopped),
            None => missing.push(key.label()),
        }
    }
    if !missing.is_empty() {
        let count = latencies.count();
        context.warn(format!("{count} operations are too few for {}; run it longer", missing.join(", ")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::benchmark::{Event, Round};
    use crate::record::{BenchmarkId, Params};

    #[test]
    fn far_percentiles_of_few_operations_are_left_out_and_named() {
        let mut latencies = Latencies::new();
        (0..200).for_each(|_| latencies.add(Duration::from_micros(50)));
        let id = BenchmarkId::new("micro", "disk_io");
        let round = Round { id, params: Params::new(), seconds: 1.0, burn_in_seconds: 0.0, beside: None };
        let mut events = Vec::new();
        let mut report = |event| events.push(event);
        let mut context = RunContext::new(&round, &|| false, &mut report);
        record(&mut context, "latency", &latencies, |key| key.tag("operation", "read")).unwrap();

        let names: Vec<_> = events
            .iter()
            .filter_map(|event| match event {
                Event::Metric { key, values } => {
                    assert!((values[0] - 50.0).abs() < 0.1 && values.len() == 1);
                    Some(key.name.as_str())
                }
                _ => None,
            })
            .collect();
        assert_eq!(names, ["latency_p50", "latency_p95", "latency_p99"]);
        let Some(Event::Warning { message }) = events.last() else { panic!("no warning") };
        assert!(message.contains("latency_p99_9 read") && message.contains("200"), "{message}");
    }
}

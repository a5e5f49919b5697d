//! A profile in the trace event format, which `chrome://tracing` and Perfetto show as a timeline.

use serde_json::{Map, Value, json};
use warpforge_runtime::profile::{Event, Profile};

/// The profile as JSON text: one complete event for each, a track for each thread or stream.
#[must_use]
pub fn chrome_trace(profile: &Profile, process: &str) -> String {
    let mut events = vec![json!({"name": "process_name", "ph": "M", "pid": 1, "args": {"name": process}})];
    events.extend(profile.events.iter().map(event));
    events.extend(profile.tiles().map(|tile| event(&tile)));
    let whole = json!({
        "displayTimeUnit": "ms",
        "otherData": {"dropped_events": profile.dropped},
        "traceEvents": events,
    });
    format!("{whole}\n")
}

fn event(event: &Event) -> Value {
    let details: Map<String, Value> =
        event.details.iter().map(|(name, text)| ((*name).to_owned(), json!(text))).collect();
    json!({
        "name": event.name,
        "cat": event.category,
        "ph": "X",
        // Microseconds, with the nanoseconds behind the point.
        "ts": event.start.as_nanos() as f64 / 1e3,
        "dur": event.duration.as_nanos() as f64 / 1e3,
        "pid": 1,
        "tid": event.track,
        "args": details,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn events_have_microseconds_and_their_track() {
        let mut profile = Profile::default();
        profile.push(Event {
            name: "stablehlo.add".to_owned(),
            category: "op",
            track: 2,
            start: Duration::from_nanos(1500),
            duration: Duration::from_micros(3),
            details: vec![("location", "loc(\"add\")".to_owned())],
        });
        let trace: Value = serde_json::from_str(&chrome_trace(&profile, "m.mlir")).unwrap();
        assert_eq!(trace["traceEvents"][0]["args"]["name"], "m.mlir");
        let event = &trace["traceEvents"][1];
        assert_eq!((&event["ph"], &event["tid"]), (&json!("X"), &json!(2)));
        assert_eq!((&event["ts"], &event["dur"]), (&json!(1.5), &json!(3.0)));
        assert_eq!(event["args"]["location"], "loc(\"add\")");
    }
}

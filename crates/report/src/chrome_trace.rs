//! A profile in the trace event format, which `chrome://tracing` and Perfetto show as a timeline.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use warpforge_runtime::profile::{Event, NODE, Profile, SOURCE};

/// The profile as JSON text: one complete event for each, a track for each thread or stream.
#[must_use]
pub fn chrome_trace(profile: &Profile, process: &str) -> String {
    let mut events = vec![json!({"name": "process_name", "ph": "M", "pid": 1, "args": {"name": process}})];
    events.extend(tracks(profile));
    events.extend(profile.events.iter().map(event));
    events.extend(profile.tiles().map(|tile| event(&tile)));
    let whole = json!({
        "displayTimeUnit": "ms",
        "otherData": {"dropped_events": profile.dropped},
        "traceEvents": events,
    });
    format!("{whole}\n")
}

/// The names of the tracks: a stream of a device, or a thread of the host.
fn tracks(profile: &Profile) -> Vec<Value> {
    let on_device =
        |event: &Event| event.details.iter().any(|(name, text)| *name == "on" && text == "device");
    let mut names: BTreeMap<u32, String> = BTreeMap::new();
    let parts = profile.parts.iter().flat_map(|(_, parts)| parts);
    for track in parts.map(|part| part.track).chain(profile.events.iter().map(|event| event.track)) {
        names.entry(track).or_insert_with(|| format!("thread {track}"));
    }
    for event in profile.events.iter().filter(|event| on_device(event)) {
        names.insert(event.track, format!("stream {}", event.track));
    }
    let named = |(track, name): (u32, String)| json!({"name": "thread_name", "ph": "M", "pid": 1, "tid": track, "args": {"name": name}});
    names.into_iter().map(named).collect()
}

/// Details that are words even where they look like numbers.
const WORDS: [&str; 4] = [NODE, SOURCE, "location", "results"];

/// A detail as JSON: figures are numbers.
fn value(name: &str, text: &str) -> Value {
    let number = || -> Option<Value> {
        match text.parse::<i64>() {
            Ok(integer) => Some(json!(integer)),
            Err(_) => {
                text.parse::<f64>().ok().filter(|number| number.is_finite()).map(|number| json!(number))
            }
        }
    };
    if WORDS.contains(&name) { json!(text) } else { number().unwrap_or_else(|| json!(text)) }
}

fn event(event: &Event) -> Value {
    let details: Map<String, Value> =
        event.details.iter().map(|(name, text)| ((*name).to_owned(), value(name, text))).collect();
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
            details: vec![
                ("location", "loc(\"add\")".to_owned()),
                ("flop", "12".to_owned()),
                ("gflop_per_s", "0.50".to_owned()),
                ("arithmetic", "f32".to_owned()),
                (NODE, "7".to_owned()),
            ],
        });
        let trace: Value = serde_json::from_str(&chrome_trace(&profile, "m.mlir")).unwrap();
        assert_eq!(trace["traceEvents"][0]["args"]["name"], "m.mlir");
        let track = &trace["traceEvents"][1];
        assert_eq!((&track["tid"], &track["args"]["name"]), (&json!(2), &json!("thread 2")));
        let event = &trace["traceEvents"][2];
        assert_eq!((&event["ph"], &event["tid"]), (&json!("X"), &json!(2)));
        assert_eq!((&event["ts"], &event["dur"]), (&json!(1.5), &json!(3.0)));
        assert_eq!(event["args"]["location"], "loc(\"add\")");
        let figures = (&event["args"]["flop"], &event["args"]["gflop_per_s"]);
        assert_eq!(figures, (&json!(12), &json!(0.5)));
        assert_eq!((&event["args"]["arithmetic"], &event["args"][NODE]), (&json!("f32"), &json!("7")));
    }
}

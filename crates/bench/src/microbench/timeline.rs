//! What a run holds in memory over time: as JSON, and as a picture in a page of its own.

use serde_json::{Value, json};
use warpforge::Lifetime;
use warpforge::profile::Profile;
use warpforge_svg::{Anchor, Document, Point, Rectangle};

/// Allocations of a run and when its kernels ran.
#[derive(Debug, Clone, PartialEq)]
pub struct Timeline {
    allocations: Vec<Allocation>,
    /// The end of the run, in microseconds.
    end: f64,
}

/// An allocation and its time.
#[derive(Debug, Clone, PartialEq)]
struct Allocation {
    lifetime: Lifetime,
    /// In microseconds from the beginning of the run.
    from: f64,
    until: f64,
}

impl Timeline {
    /// Puts the lifetimes of an executable, which count kernels, on the clock of a run of it. None where the executable tells none: a run
    /// always holds something.
    #[must_use]
    pub fn new(lifetimes: Vec<Lifetime>, profile: &Profile) -> Option<Self> {
        if lifetimes.is_empty() {
            return None;
        }
        let micros = |duration: std::time::Duration| duration.as_nanos() as f64 / 1e3;
        let kernels: Vec<(f64, f64)> = profile
            .events
            .iter()
            .filter(|event| event.category == "kernel")
            .map(|event| (micros(event.start), micros(event.start + event.duration)))
            .collect();
        let end = kernels.iter().fold(0.0, |end: f64, kernel| end.max(kernel.1));
        let allocations = lifetimes
            .into_iter()
            .map(|lifetime| {
                let kernel = |at: Option<usize>| at.and_then(|at| kernels.get(at));
                let from = kernel(lifetime.first).map_or(0.0, |kernel| kernel.0);
                let until = kernel(lifetime.last).map_or(end, |kernel| kernel.1);
                Allocation { lifetime, from, until }
            })
            .collect();
        Some(Self { allocations, end })
    }

    /// The same, and then another run in the same memory: what stays after the first is there during the other, and what the other has
    /// before it begins is there during the first.
    #[must_use]
    pub fn then(self, other: Self) -> Self {
        let Self { mut allocations, end: between } = self;
        let end = between + other.end;
        for one in allocations.iter_mut().filter(|one| one.lifetime.last.is_none()) {
            one.until = end;
        }
        allocations.extend(other.allocations.into_iter().map(|one| {
            let from = if one.lifetime.first.is_none() { 0.0 } else { between + one.from };
            Allocation { from, until: between + one.until, ..one }
        }));
        Self { allocations, end }
    }

    /// Bytes in use from each moment on at which that changes.
    fn points(&self) -> Vec<(f64, u64)> {
        let mut times: Vec<f64> = self.allocations.iter().flat_map(|one| [one.from, one.until]).collect();
        times.sort_by(f64::total_cmp);
        times.dedup();
        let held = |time: f64| -> u64 {
            let alive = self.allocations.iter().filter(|one| {
                one.from <= time && (time < one.until || (one.lifetime.last.is_none() && time <= self.end))
            });
            alive.map(|one| one.lifetime.bytes).sum()
        };
        times.into_iter().map(|time| (time, held(time))).collect()
    }

    fn bytes_of(&self, kinds: &[&str]) -> u64 {
        let of = self.allocations.iter().filter(|one| kinds.contains(&one.lifetime.kind));
        of.map(|one| one.lifetime.bytes).sum()
    }

    /// The most bytes, and what they are of.
    #[must_use]
    pub fn stats(&self) -> Value {
        let peak = self.points().into_iter().map(|(_, bytes)| bytes).max().unwrap_or(0);
        json!({
            "peak_bytes": peak,
            "weight_bytes": self.bytes_of(&["weights", "constant"]),
            "output_bytes": self.bytes_of(&["output"]),
            "allocations": self.allocations.len(),
        })
    }

    /// The allocations with their times, the bytes over time and the figures of [`Timeline::stats`].
    #[must_use]
    pub fn json(&self) -> Value {
        let allocations: Vec<Value> = self
            .allocations
            .iter()
            .map(|one| {
                json!({
                    "name": one.lifetime.name,
                    "kind": one.lifetime.kind,
                    "bytes": one.lifetime.bytes,
                    "offset": one.lifetime.offset,
                    "from_us": one.from,
                    "until_us": one.until,
                })
            })
            .collect();
        let points: Vec<Value> =
            self.points().iter().map(|(time, bytes)| json!({ "time_us": time, "bytes": bytes })).collect();
        json!({ "stats": self.stats(), "timeline": points, "allocations": allocations })
    }

    /// A page with a picture: time to the right, bytes upwards, a rectangle for each allocation.
    #[must_use]
    pub fn html(&self, title: &str) -> String {
        let title = title.replace('&', "&amp;").replace('<', "&lt;");
        let stats = self.stats().to_string().replace('&', "&amp;").replace('<', "&lt;");
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title></head>\n<body>\n<h1>{title}</h1>\n\
             {}<p>{stats}</p>\n</body></html>\n",
            self.svg()
        )
    }

    fn svg(&self) -> String {
        const SIZE: Point = (960.0, 420.0);
        const MARGIN: Point = (90.0, 30.0);
        // What is there all the time lies below, values where the plan has put them above it, outputs on top.
        let below = self.bytes_of(&["weights", "constant"]);
        let ends = self.allocations.iter().filter_map(|one| Some(one.lifetime.offset? + one.lifetime.bytes));
        let block = ends.max().unwrap_or(0);
        let total = (below + block + self.bytes_of(&["output"])).max(1) as f64;
        let x = |time: f64| MARGIN.0 + (SIZE.0 - MARGIN.0 - 20.0) * time / self.end.max(1e-9);
        let y = |bytes: u64| SIZE.1 - MARGIN.1 - (SIZE.1 - 2.0 * MARGIN.1) * bytes as f64 / total;
        let mut picture = Document::new(SIZE.0, SIZE.1, 12);
        let (mut held, mut outputs) = (0, below + block);
        for one in &self.allocations {
            let Lifetime { kind, bytes, offset, name, .. } = &one.lifetime;
            let (from, fill) = match (*kind, offset) {
                (_, Some(offset)) => (below + offset, "#6baed6"),
                ("output", None) => (outputs, "#74c476"),
                ("constant", None) => (held, "#bdbdbd"),
                _ => (held, "#fdae6b"),
            };
            match (*kind, offset) {
                (_, Some(_)) => {}
                ("output", None) => outputs += bytes,
                _ => held += bytes,
            }
            let title = format!("{kind}: {name}, {bytes} bytes, {:.1} to {:.1} µs", one.from, one.until);
            let look = Rectangle { fill, stroke: Some("white"), radius: 0.0, title: Some(&title) };
            let size = ((x(one.until) - x(one.from)).max(1.0), y(from) - y(from + bytes));
            picture.rectangle((x(one.from), y(from + bytes)), size, &look);
        }
        picture.line((MARGIN.0, y(0)), (SIZE.0 - 20.0, y(0)), "black", 1.0);
        picture.line((MARGIN.0, y(0)), (MARGIN.0, MARGIN.1), "black", 1.0);
        for part in 0..=4u32 {
            let (share, bytes) = (f64::from(part) / 4.0, total * f64::from(part) / 4.0);
            let place = (MARGIN.0 - 6.0, y(bytes as u64) + 4.0);
            picture.text(place, Anchor::End, &format!("{:.2} MB", bytes / 1e6));
            let time = self.end * share;
            picture.text((x(time), SIZE.1 - 10.0), Anchor::Middle, &format!("{time:.0} µs"));
        }
        let legend =
            [("weights", "#fdae6b"), ("constants", "#bdbdbd"), ("values", "#6baed6"), ("outputs", "#74c476")];
        for (at, (name, fill)) in legend.into_iter().enumerate() {
            let left = MARGIN.0 + 110.0 * at as f64;
            let look = Rectangle { fill, stroke: None, radius: 0.0, title: None };
            picture.rectangle((left, 8.0), (12.0, 12.0), &look);
            picture.text((left + 18.0, 18.0), Anchor::Start, name);
        }
        picture.finish()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use warpforge::profile::Event;

    use super::*;

    fn timeline() -> Timeline {
        let mut profile = Profile::default();
        for at in 0..3u64 {
            profile.push(Event {
                name: format!("kernel {at}"),
                category: "kernel",
                track: 0,
                start: Duration::from_micros(10 * at),
                duration: Duration::from_micros(10),
                details: Vec::new(),
            });
        }
        let one = |kind, bytes, offset, first, last| Lifetime {
            name: "a < b".to_owned(),
            kind,
            bytes,
            offset,
            first,
            last,
        };
        let lifetimes = vec![
            one("weights", 1000, None, None, None),
            one("value", 100, Some(0), Some(0), Some(1)),
            one("value", 50, Some(128), Some(1), Some(2)),
            one("output", 10, None, Some(2), None),
        ];
        Timeline::new(lifetimes, &profile).unwrap()
    }

    #[test]
    fn bytes_follow_the_kernels() {
        let found = timeline();
        assert_eq!(found.points(), [(0.0, 1100), (10.0, 1150), (20.0, 1060), (30.0, 1010)]);
        assert_eq!(found.stats()["peak_bytes"], 1150);
        assert_eq!(found.json()["allocations"][2]["from_us"], 10.0);
        assert_eq!(Timeline::new(Vec::new(), &Profile::default()), None, "no lifetimes are not zero bytes");
    }

    #[test]
    fn what_a_run_leaves_is_held_during_the_next() {
        let found = timeline().then(timeline());
        let points = found.points();
        // Weights of both at first; the output of the first stays, that of the second comes at its end.
        assert_eq!(points[0], (0.0, 2100));
        assert_eq!(points[3], (30.0, 2110));
        assert_eq!(points.last(), Some(&(60.0, 2020)));
    }

    #[test]
    fn the_page_has_a_rectangle_for_each_allocation_and_is_escaped() {
        let page = timeline().html("a & b <c>");
        assert!(page.contains("<h1>a &amp; b &lt;c></h1>"), "{page}");
        assert_eq!(page.matches("<title>weights: a &lt; b, 1000 bytes").count(), 1);
        assert_eq!(page.matches("stroke=\"white\"").count(), 4);
        assert!(!page.contains("NaN"));
    }
}

//! What happened when during a run.

use std::time::Duration;

use warpforge_ir::OpId;
use warpforge_ir::nodes::Nodes;

/// Most events that a run keeps: a loop of millions of iterations must not fill the memory.
pub const MOST_EVENTS: usize = 1 << 20;

/// The detail that names the nodes of the traced graph.
pub const NODE: &str = "node";
/// The detail that names the lines of their source.
pub const SOURCE: &str = "source";

/// Something that took time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// What ran: an operation, a kernel, a copy.
    pub name: String,
    /// What kind of thing it is: `op`, `kernel`, `copy`.
    pub category: &'static str,
    /// The thread or stream it ran on, numbered from zero.
    pub track: u32,
    /// When it began, from the beginning of the run.
    pub start: Duration,
    /// How long it took, what it called included.
    pub duration: Duration,
    /// What else is known, by name: where it is in the source, what it gives.
    pub details: Vec<(&'static str, String)>,
}

/// What is known of a kernel's origin: the nodes of the traced graph that it computes, and the lines of their source.
#[must_use]
pub fn provenance(nodes: &Nodes, ops: &[OpId]) -> Vec<(&'static str, String)> {
    let found = nodes.among(ops);
    let names: Vec<&str> = found.iter().map(|node| node.name.as_str()).collect();
    let mut lines: Vec<String> =
        found.iter().filter_map(|node| node.source.as_ref()).map(ToString::to_string).collect();
    lines.dedup();
    let said = [(NODE, names.join(", ")), (SOURCE, lines.join(", "))];
    said.into_iter().filter(|(_, text)| !text.is_empty()).collect()
}

/// A part of an event that one worker did: what there are many of, so it has no text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// Its number among the parts of the event.
    pub number: usize,
    /// The thread it ran on; see [`Event::track`].
    pub track: u32,
    /// When it began, from the beginning of the run.
    pub start: Duration,
    /// How long it took.
    pub duration: Duration,
}

/// The events of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Profile {
    /// The events in the order in which they ended.
    pub events: Vec<Event>,
    /// The parts of events, by the event's place.
    pub parts: Vec<(usize, Vec<Part>)>,
    /// Events and parts beyond [`MOST_EVENTS`], which were not kept.
    pub dropped: u64,
    /// How many parts there are.
    kept_parts: usize,
}

impl Profile {
    /// Notes an event, while there is room.
    pub fn push(&mut self, event: Event) {
        if self.events.len() + self.kept_parts < MOST_EVENTS {
            self.events.push(event);
        } else {
            self.dropped += 1;
        }
    }

    /// Notes an event and its parts, while there is room for all of them.
    pub fn push_with_parts(&mut self, event: Event, parts: Vec<Part>) {
        if self.events.len() + self.kept_parts + parts.len() < MOST_EVENTS {
            self.kept_parts += parts.len();
            self.parts.push((self.events.len(), parts));
            self.events.push(event);
        } else {
            self.dropped += 1 + parts.len() as u64;
        }
    }

    /// The parts as events of their own, of category `tile`.
    pub fn tiles(&self) -> impl Iterator<Item = Event> + '_ {
        let named = self.parts.iter().filter_map(|(at, parts)| Some((&self.events.get(*at)?.name, parts)));
        named.flat_map(|(name, parts)| {
            parts.iter().map(move |part| Event {
                name: format!("{name} tile"),
                category: "tile",
                track: part.track,
                start: part.start,
                duration: part.duration,
                details: vec![("tile", part.number.to_string())],
            })
        })
    }
}

//! What happened when during a run.

use std::time::Duration;

/// Most events that a run keeps: a loop of millions of iterations must not fill the memory.
pub const MOST_EVENTS: usize = 1 << 20;

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

/// The events of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Profile {
    /// The events in the order in which they ended.
    pub events: Vec<Event>,
    /// Events beyond [`MOST_EVENTS`], which were not kept.
    pub dropped: u64,
}

impl Profile {
    /// Notes an event, while there is room.
    pub fn push(&mut self, event: Event) {
        if self.events.len() < MOST_EVENTS {
            self.events.push(event);
        } else {
            self.dropped += 1;
        }
    }
}

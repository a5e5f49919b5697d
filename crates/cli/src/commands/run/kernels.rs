//! What the observable tier says about each kernel.

use serde::Serialize;
use warpforge::profile::{Event, NODE, Profile, SOURCE};

/// A kernel of a run.
#[derive(Debug, Serialize)]
pub(super) struct Kernel {
    pub(super) name: String,
    /// The nodes of the traced graph that it computes, and the lines of their source.
    pub(super) node: Option<String>,
    pub(super) source: Option<String>,
    pub(super) ms: f64,
    pub(super) tiles: Option<u64>,
    pub(super) longest_tile_us: Option<f64>,
    /// How evenly the workers were busy: 1 when all were as long.
    pub(super) balance: Option<f64>,
    pub(super) min: Option<f64>,
    pub(super) max: Option<f64>,
    pub(super) mean: Option<f64>,
    pub(super) nan: Option<u64>,
    pub(super) infinite: Option<u64>,
    /// How many values it gave, and how many of them the figures are about.
    pub(super) values: Option<u64>,
    pub(super) values_seen: Option<u64>,
}

/// The kernels of a profile, in order.
pub(super) fn kernels(profile: &Profile) -> Vec<Kernel> {
    profile.events.iter().filter(|event| event.category == "kernel").map(kernel).collect()
}

fn kernel(event: &Event) -> Kernel {
    let count = |name: &str| detail(event, name).and_then(|text| text.parse().ok());
    let number = |name: &str| detail(event, name).and_then(|text| text.parse().ok());
    Kernel {
        name: event.name.clone(),
        node: detail(event, NODE).map(str::to_owned),
        source: detail(event, SOURCE).map(str::to_owned),
        ms: event.duration.as_secs_f64() * 1e3,
        tiles: count("tiles"),
        longest_tile_us: number("longest_tile_us"),
        balance: number("balance"),
        min: number("min"),
        max: number("max"),
        mean: number("mean"),
        nan: count("nan"),
        infinite: count("infinite"),
        values: count("values"),
        values_seen: count("values_seen"),
    }
}

/// What an event says of something, by name.
pub(super) fn detail<'a>(event: &'a Event, name: &str) -> Option<&'a str> {
    event.details.iter().find(|(known, _)| *known == name).map(|(_, text)| text.as_str())
}

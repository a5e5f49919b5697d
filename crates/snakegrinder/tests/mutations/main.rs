//! Graphs of every operation, changed at random: whatever comes of it is a module or an error, never a panic.
//!
//! `nodes.jsonl` has one node a line, collected from real archives by `collect.py`, or written by hand where few models have
//! the operation. `WARPFORGE_MUTATIONS=N` changes each
//! of them N times instead of a few, with another random sequence each time where `WARPFORGE_SEED` says which.

mod archive;
mod mutate;
#[path = "../common/zip.rs"]
mod zip;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

use mutate::Choices;
use serde_json::Value;
use warpforge_snakegrinder::{Archive, ImportOptions};
use warpforge_tensor::Blob;

const NODES: &str = include_str!("nodes.jsonl");

impl Choices for fastrand::Rng {
    fn below(&mut self, count: usize) -> usize {
        self.usize(..count.max(1))
    }
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn import(program: &Value) -> Result<(), String> {
    let file = Blob::from(archive::around(&program.to_string()));
    let archive = Archive::from_blob(file).map_err(|error| error.to_string())?;
    archive.import(&ImportOptions::default()).map(drop).map_err(|error| error.to_string())
}

fn programs() -> impl Iterator<Item = Value> {
    NODES.lines().map(|line| archive::program(&serde_json::from_str(line).unwrap()))
}

#[test]
fn the_collected_nodes_are_read() {
    let errors: Vec<String> = programs().filter_map(|program| import(&program).err()).collect();
    let malformed: Vec<&String> =
        errors.iter().filter(|error| !error.contains("cannot be lowered")).collect();
    assert!(malformed.is_empty(), "PyTorch's own nodes are well formed: {malformed:#?}");
    assert!(errors.len() < NODES.lines().count() / 2, "{errors:#?}");
}

#[test]
fn changed_graphs_never_panic() {
    let mut random = fastrand::Rng::with_seed(number("WARPFORGE_SEED", 7));
    let rounds = number("WARPFORGE_MUTATIONS", 6);
    let place = Arc::new(Mutex::new(String::new()));
    let noted = Arc::clone(&place);
    std::panic::set_hook(Box::new(move |info| {
        *noted.lock().unwrap() = info.to_string();
    }));
    // Each place that panicked, with how often and one example of how to get there.
    let mut found: BTreeMap<String, (usize, String)> = BTreeMap::new();
    for program in programs() {
        for _ in 0..rounds {
            let mut changed = program.clone();
            for _ in 0..=random.below(3) {
                mutate::mutate(&mut changed, &mut random);
            }
            if catch_unwind(AssertUnwindSafe(|| drop(import(&changed)))).is_err() {
                let entry = found.entry(place.lock().unwrap().clone());
                entry.or_insert_with(|| (0, changed.to_string())).0 += 1;
            }
        }
    }
    drop(std::panic::take_hook());
    for (place, (count, example)) in &found {
        eprintln!("{count} times: {place}\n    {example}");
    }
    assert!(found.is_empty(), "{} places panicked", found.len());
}

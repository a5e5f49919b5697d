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
use serde_json::{Value, json};
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

/// Operations of the collected nodes that are refused, and why: all others must be imported.
const REFUSED: &[(&str, &str)] = &[("torch.ops.aten.rand.default", "it draws random numbers")];

#[test]
fn the_collected_nodes_are_imported() {
    let mut refused = BTreeMap::new();
    for line in NODES.lines() {
        let node: Value = serde_json::from_str(line).unwrap();
        if let Err(error) = import(&archive::program(&node)) {
            assert!(error.contains("cannot be lowered"), "PyTorch's own nodes are well formed: {error}");
            refused.insert(node["target"].as_str().unwrap().to_owned(), error);
        }
    }
    let expected: Vec<&str> = REFUSED.iter().map(|(target, _)| *target).collect();
    let found: Vec<&String> = refused.keys().collect();
    assert_eq!(found, expected, "{refused:#?}");
}

#[test]
fn only_what_something_uses_must_have_the_recorded_shape() {
    let maximum = |values: [i64; 1], indices: [i64; 2]| {
        let tensor = |name: &str| json!({"as_tensor": {"name": name}});
        archive::program(&json!({
            "target": "torch.ops.aten.max.dim",
            "inputs": [{"name": "self", "arg": tensor("x")}, {"name": "dim", "arg": {"as_int": 1}}],
            "outputs": [tensor("values"), tensor("indices_unused_")],
            "tensors": {"x": [7, [2, 3]], "values": [7, values], "indices_unused_": [5, indices]}
        }))
    };
    import(&maximum([2], [2, 1])).unwrap();
    let error = import(&maximum([3], [2, 1])).unwrap_err();
    assert!(error.contains("f32[2] for `values`, PyTorch recorded f32[3]"), "{error}");
}

#[test]
fn changed_graphs_never_panic() {
    let mut random = fastrand::Rng::with_seed(number("WARPFORGE_SEED", 7));
    let rounds = number("WARPFORGE_MUTATIONS", 6);
    let place = Arc::new(Mutex::new(String::new()));
    let noted = Arc::clone(&place);
    let (thread, others) = (std::thread::current().id(), std::panic::take_hook());
    std::panic::set_hook(Box::new(move |info| {
        if std::thread::current().id() == thread {
            *noted.lock().unwrap() = info.to_string();
        } else {
            others(info);
        }
    }));
    // Each place that panicked, with how often and one example of how to get there.
    let mut found: BTreeMap<String, (usize, String)> = BTreeMap::new();
    let (mut changes, mut refused) = (0, 0);
    for program in programs() {
        for _ in 0..rounds {
            let mut changed = program.clone();
            for _ in 0..=random.below(3) {
                mutate::mutate(&mut changed, &mut random);
            }
            if changed == program {
                continue;
            }
            changes += 1;
            match catch_unwind(AssertUnwindSafe(|| import(&changed))) {
                Ok(outcome) => refused += usize::from(outcome.is_err()),
                Err(_) => {
                    let entry = found.entry(place.lock().unwrap().clone());
                    entry.or_insert_with(|| (0, changed.to_string())).0 += 1;
                }
            }
        }
    }
    drop(std::panic::take_hook());
    for (place, (count, example)) in &found {
        eprintln!("{count} times: {place}\n    {example}");
    }
    assert!(found.is_empty(), "{} places panicked", found.len());
    // A graph that contradicts what PyTorch recorded for its tensors is refused. A change to a number that nothing
    // contradicts, such as a diagonal or a fill value, is another sound graph.
    assert!(2 * refused > changes, "only {refused} of {changes} changed graphs are refused");
    assert!(refused < changes, "no changed graph reached a lowering");
}

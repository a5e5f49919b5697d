//! Comparing two runs as a whole.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::Class;
use crate::explain::explain;
use crate::folder::{Folder, Key};
use crate::judge::Pair;
use crate::report::{RunInfo, SCHEMA_VERSION, Status, TensorReport, Validation, Verdict};
use crate::summary::{classes, counts, verdict};
use crate::tolerance::Tolerances;

/// How to validate.
#[derive(Debug, Clone)]
pub struct Options<'r> {
    /// How far apart the runs may be.
    pub tolerances: Tolerances,
    /// A run in binary64 that judges both, where their own types are narrow.
    pub reference: Option<&'r Folder>,
    /// Threads that compare tensors.
    pub threads: usize,
}

impl Default for Options<'_> {
    fn default() -> Self {
        Self { tolerances: Tolerances::default(), reference: None, threads: 1 }
    }
}

/// Judges a candidate by a golden run. The operations out of tolerance are those that the manifests tell;
/// [`explain()`] says more with a model.
#[must_use]
pub fn validate(golden: &Folder, candidate: &Folder, options: &Options<'_>) -> Validation {
    let keys: BTreeSet<&Key> = golden.items().chain(candidate.items()).map(|(key, _)| key).collect();
    let pairs: Vec<Pair<'_>> = keys
        .into_iter()
        .map(|key| Pair {
            key,
            golden: golden.get(key),
            candidate: candidate.get(key),
            reference: options.reference.and_then(|folder| folder.get(key)),
        })
        .collect();
    let tensors = judge_all(&pairs, golden, candidate, options);
    let mut validation = Validation {
        schema_version: SCHEMA_VERSION,
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        // A run that left nothing has failed; there is nothing to be undecided about.
        verdict: if is_empty(candidate) && !is_empty(golden) {
            Verdict::Fail
        } else {
            verdict(tensors.iter())
        },
        golden: run_info(golden),
        candidate: run_info(candidate),
        reference: options.reference.map(run_info),
        model: None,
        counts: counts(tensors.iter()),
        classes: classes(&tensors),
        first_operation: None,
        cause: None,
        first_operation_unknown: None,
        bisection: None,
        operations: Vec::new(),
        notes: notes(golden, candidate, &tensors),
        tensors,
    };
    explain(&mut validation, golden, candidate, None, 0);
    validation
}

/// Judges all pairs, several at a time. The order of the answers is that of the pairs.
fn judge_all(
    pairs: &[Pair<'_>],
    golden: &Folder,
    candidate: &Folder,
    options: &Options<'_>,
) -> Vec<TensorReport> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(pairs.len()));
    std::thread::scope(|scope| {
        for _ in 0..options.threads.clamp(1, pairs.len().max(1)) {
            scope.spawn(|| {
                while let Some((index, pair)) = {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    pairs.get(index).map(|pair| (index, pair))
                } {
                    let report = pair.judge(golden, candidate, &options.tolerances);
                    done.lock().unwrap_or_else(PoisonError::into_inner).push((index, report));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, report)| report).collect()
}

fn is_empty(folder: &Folder) -> bool {
    folder.items().next().is_none()
}

fn run_info(folder: &Folder) -> RunInfo {
    let manifest = folder.manifest();
    RunInfo {
        path: folder.path().display().to_string(),
        model: manifest.and_then(|manifest| manifest.model.clone()),
        seed: manifest.and_then(|manifest| manifest.seed),
        versions: manifest.map(|manifest| manifest.versions.clone()).unwrap_or_default(),
    }
}

fn notes(golden: &Folder, candidate: &Folder, tensors: &[TensorReport]) -> Vec<String> {
    let mut notes = Vec::new();
    for (folder, what) in [(golden, "golden run"), (candidate, "candidate")] {
        if is_empty(folder) {
            let path = folder.path().display();
            notes.push(format!("nothing was found in the {what}'s folder {path}: no tensors and no numbers"));
        }
    }
    if tensors.iter().any(|report| report.class == Class::Inputs && report.failed) {
        notes.push("the candidate was given other inputs, so other results are to be expected".to_owned());
    }
    notes.extend(within_noise(tensors));
    for folder in [golden, candidate] {
        for file in folder.skipped() {
            notes.push(format!("{} is left out: {}", folder.path().join(&file.path).display(), file.reason));
        }
    }
    let said = |folder: &Folder| folder.manifest().map(|manifest| (manifest.seed, manifest.model.clone()));
    if let (Some((left, one)), Some((right, other))) = (said(golden), said(candidate)) {
        if let (Some(left), Some(right)) = (left, right)
            && left != right
        {
            notes.push(format!("the runs have different seeds: {left} and {right}"));
        }
        if let (Some(one), Some(other)) = (one, other)
            && one != other
        {
            notes.push(format!("the runs are of different models: {one} and {other}"));
        }
    }
    notes
}

/// The tensors that needed the noise floor, by class and reason: a note for each reason, with the names once, whatever the steps.
fn within_noise(tensors: &[TensorReport]) -> Vec<String> {
    let mut found: BTreeMap<(Class, &str), BTreeSet<&str>> = BTreeMap::new();
    for report in tensors.iter().filter(|report| report.status == Status::WithinNoise) {
        let reason = report.reason.as_deref().unwrap_or_default();
        let reason = reason.split_once(": ").map_or(reason, |(_, reason)| reason);
        found.entry((report.class, reason)).or_default().insert(&report.name);
    }
    let note = |((class, reason), names): ((Class, &str), BTreeSet<&str>)| {
        let names: Vec<&str> = names.into_iter().collect();
        format!("{class} judged by the noise floor of the golden run: {}: {reason}", names.join(", "))
    };
    found.into_iter().map(note).collect()
}

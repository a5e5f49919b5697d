//! A family of contests: those that are asked for are held, their table is printed and put into its page.

use std::path::Path;

use anyhow::bail;

use super::table::{self, Row};
use super::{page, warpt};
use crate::command::root;

/// The contests of one benchmark, by the name that `--only` takes.
pub(super) type Named<S> = (&'static str, fn(&S) -> anyhow::Result<Vec<Row>>);

/// Refuses a name that no contest has.
pub(super) fn check<S>(contests: &[Named<S>], only: &[String]) -> anyhow::Result<()> {
    let names: Vec<&str> = contests.iter().map(|(name, _)| *name).collect();
    match only.iter().find(|name| !names.contains(&name.as_str())) {
        Some(name) => bail!("--only {name}: there are {}", names.join(", ")),
        None => Ok(()),
    }
}

/// Where the figures go.
pub(super) struct Destination<'a> {
    /// Our program, which names the machine.
    pub(super) warpt: &'a Path,
    /// The task, as `peers micro`.
    pub(super) task: &'a str,
    /// The page, from the root of the repository.
    pub(super) page: &'a str,
    /// How the figures were taken.
    pub(super) method: &'a str,
    /// Whether the page is to be written.
    pub(super) update_docs: bool,
}

/// How figures are taken: each side so often.
pub(super) fn medians(alternations: usize) -> String {
    format!("medians of {alternations} runs of each side, in turn")
}

/// Holds the contests that are asked for, all where none is named; fails where one has no figures or misses its bound.
pub(super) fn hold<S>(
    contests: &[Named<S>],
    only: &[String],
    stage: &S,
    destination: &Destination<'_>,
) -> anyhow::Result<()> {
    let mut rows = Vec::new();
    let mut failures = Vec::new();
    for (name, hold) in contests {
        if only.is_empty() || only.iter().any(|only| only == name) {
            match hold(stage) {
                Ok(more) => rows.extend(more),
                Err(error) => failures.push(format!("{name}: {error:#}")),
            }
        }
    }
    let (table, holds) = table::markdown(&rows);
    println!("{table}");
    if !failures.is_empty() {
        bail!("no figures of {}", failures.join("; "));
    }
    if destination.update_docs {
        let heading = format!("{}; {}.", warpt::machine(destination.warpt)?, destination.method);
        let path = root().join(destination.page);
        // Where only some contests were held, the figures of the others stay.
        let table = if only.is_empty() { table } else { page::merged(&path, destination.task, &table)? };
        page::update(&path, destination.task, &format!("{heading}\n\n{table}"))?;
    }
    if !holds {
        bail!("a ratio is out of its bound");
    }
    Ok(())
}

//! `cargo xtask coverage`: which operation is read, verified, evaluated and tested, as a page of the documentation.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, bail};
use warpforge_interp::conformance::{Judge, Status, files_below, run_file};
use warpforge_interp::{Observer, Options, Value, is_evaluated};
use warpforge_ir::table::{self, OpDef, Trait};
use warpforge_ir::{OpKind, OpRef};

use crate::command::root;
use crate::core_aten;

/// Run by the machine itself, whenever anything runs.
const RUN_WITH_ANYTHING: [OpKind; 4] = [OpKind::Module, OpKind::Func, OpKind::FuncReturn, OpKind::Return];

/// Notes which operations are executed.
#[derive(Default)]
struct Executed(Mutex<BTreeSet<OpKind>>);

impl Observer for Executed {
    fn results(&self, op: OpRef<'_>, _: &[Value]) -> Result<(), String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(op.kind());
        Ok(())
    }
}

/// Writes the page.
pub(crate) fn write() -> anyhow::Result<()> {
    let path = page_path();
    std::fs::write(&path, page()?).with_context(|| format!("cannot write {}", path.display()))
}

fn page_path() -> PathBuf {
    root().join("docs/coverage.md")
}

/// The folder of programs with checks that the tests execute.
fn programs() -> PathBuf {
    root().join("crates/interp/tests/programs")
}

/// How many of the programs execute each operation, all of their checks holding.
fn executions() -> anyhow::Result<BTreeMap<OpKind, usize>> {
    let mut counts = BTreeMap::new();
    for file in files_below(&programs())? {
        let executed = Arc::new(Executed::default());
        let options = Options { observer: Some(executed.clone()), ..Options::default() };
        let judge = Judge { options, ..Judge::default() };
        if let Some(failed) = run_file(&file, &judge).iter().find(|case| case.status != Status::Passed) {
            bail!("{}:{} does not pass", failed.file, failed.line);
        }
        let mut kinds = executed.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        kinds.extend(RUN_WITH_ANYTHING);
        for kind in kinds {
            *counts.entry(kind).or_default() += 1;
        }
    }
    Ok(counts)
}

/// The page's text.
fn page() -> anyhow::Result<String> {
    let executions = executions()?;
    let mut page = "# Coverage\n\n<!-- Written by `cargo xtask coverage`; a test holds it against the tables. -->\n\n\
        Every operation of the table and what is done with it.\n\n\
        - **text**: read and printed in its own form, or in MLIR's generic form, in which all are read.\n\
        - **verified**: by constraints of its own, which also infer its results, or by its declared types and traits \
        alone.\n\
        - **evaluated**: by the reference; *machine* where the machine itself runs it.\n\
        - **tested**: in how many of the programs in `crates/interp/tests/programs` it is executed, all of whose \
        checks hold.\n\n"
        .to_owned();
    let mut totals = [0usize; 4];
    let mut dialects: BTreeMap<&str, Vec<&OpDef>> = BTreeMap::new();
    for def in table::all() {
        dialects.entry(def.kind.dialect()).or_default().push(def);
    }
    let mut tables = String::new();
    for (dialect, mut defs) in dialects {
        defs.sort_by_key(|def| def.name());
        tables += &format!(
            "## {dialect}\n\n| operation | text | verified | evaluated | tested |\n| --- | --- | --- | --- | ---: |\n"
        );
        for def in defs {
            let tested = executions.get(&def.kind).copied().unwrap_or(0);
            let cells = [text(def), verified(def), evaluated(def.kind)];
            totals[0] += 1;
            totals[1] += usize::from(def.rule.is_some());
            totals[2] += usize::from(cells[2] != "no");
            totals[3] += usize::from(tested > 0);
            let name = def.name();
            tables += &format!("| `{name}` | {} | {} | {} | {tested} |\n", cells[0], cells[1], cells[2]);
        }
        tables.push('\n');
    }
    let [all, ruled, evaluated, tested] = totals;
    page += &format!(
        "{all} operations: {ruled} with constraints of their own, {evaluated} evaluated, {tested} tested.\n\n"
    );
    Ok(page + &tables + &core_aten::section()?)
}

fn text(def: &OpDef) -> &'static str {
    if def.format.is_empty() { "generic" } else { "own form" }
}

fn verified(def: &OpDef) -> &'static str {
    match def.rule {
        Some(_) => "constraints",
        None if def.is(Trait::SameTypes) => "same types",
        None => "declared types",
    }
}

fn evaluated(kind: OpKind) -> &'static str {
    match kind {
        kind if RUN_WITH_ANYTHING.contains(&kind) => "machine",
        kind if is_evaluated(kind) => "yes",
        _ => "no",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_up_to_date() {
        let written = std::fs::read_to_string(page_path()).unwrap_or_default();
        assert!(written == page().unwrap(), "docs/coverage.md is old: run `cargo xtask coverage`");
    }

    #[test]
    fn every_operation_that_is_evaluated_is_executed_by_a_program() {
        let executions = executions().unwrap();
        let untested: Vec<&str> = OpKind::ALL
            .iter()
            .filter(|kind| is_evaluated(**kind) && !executions.contains_key(kind))
            .map(|kind| kind.name())
            .collect();
        assert!(untested.is_empty(), "no program in {} executes {untested:?}", programs().display());
    }
}

//! `protein_search` beside diamond, at the sensitivity that has our recall.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::process::Command;

use super::{Source, Stage, find, output, seconds};
use crate::peers::table::{Bound, Contest, Figures, Row};

/// The recall at which both are compared.
const RECALL: f64 = 0.98;

/// Sensitivities of diamond, the fastest first.
const MODES: [&str; 3] = ["--sensitive", "--very-sensitive", "--ultra-sensitive"];

/// Queries per second, and recall at 50 hits against exhaustive Smith–Waterman.
pub(super) fn hold(stage: &Stage) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for source in stage.sources("protein_search", &["proteins"])? {
        rows.extend(hold_database(stage, &source)?);
    }
    Ok(rows)
}

fn hold_database(stage: &Stage, source: &Source) -> anyhow::Result<Vec<Row>> {
    let given = stage.data.iter().find(|(name, _)| name == "protein_search_queries");
    let queries = match (given, source.label.as_str()) {
        (Some((_, data)), _) => Source::given(data)?.path,
        (None, "proteins") => Source::set("protein-queries")?.path,
        (None, _) => None,
    };
    let own = source.with(&queries.iter().map(|path| ("queries", path.as_str())).collect::<Vec<_>>());
    let (folder, metrics) = stage.export("protein_search", &own)?;
    let queries = std::fs::read_to_string(folder.join("queries.fa"))?.matches('>').count() as f64;
    let database = folder.join("diamond.dmnd");
    output(
        Command::new("diamond")
            .args(["makedb", "--in"])
            .arg(folder.join("database.fa"))
            .arg("-d")
            .arg(&database),
    )?;
    let hits = folder.join("diamond.tsv");
    let search = |mode: &str| -> anyhow::Result<f64> {
        let mut command = Command::new("diamond");
        command.args(["blastp", mode, "-d"]).arg(&database).arg("-q").arg(folder.join("queries.fa"));
        command.args(["-k", "50", "-e", "0.001", "--comp-based-stats", "0", "--masking", "0"]);
        command.args(["-p", &stage.threads.to_string(), "-f", "6", "qseqid", "sseqid", "score", "-o"]);
        seconds(command.arg(&hits))
    };
    // The fastest sensitivity that has the recall that is asked for, or the highest there is.
    let mut mode = MODES[0];
    for other in MODES {
        mode = other;
        search(mode)?;
        let recall = recall(&folder.join("truth.tsv"), &hits)?;
        eprintln!("diamond {mode}: recall {recall:.4}");
        if recall >= RECALL {
            break;
        }
    }
    let name = format!("diamond {mode}");
    let label = format!("queries, {}", source.label);
    let share = format!("recall, {}", source.label);
    let theirs = || Ok(Figures::from([(label.clone(), queries / search(mode)?)]));
    let ours = || stage.figure(&label, "protein_search", &own, "queries_per_second");
    let contest = Contest {
        name: "protein_search",
        peer: &name,
        unit: "queries/s",
        bound: Bound::AtLeast(0.5),
        theirs: &theirs,
        ours: &ours,
    };
    let mut rows = contest.hold(stage.alternations)?;
    let theirs = || Ok(Figures::from([(share.clone(), recall(&folder.join("truth.tsv"), &hits)?)]));
    let ours = || Ok(Figures::from([(share.clone(), find(&metrics, "recall", &[])?)]));
    let contest = Contest {
        name: "protein_search",
        peer: &name,
        unit: "share",
        bound: Bound::AtLeast(RECALL),
        theirs: &theirs,
        ours: &ours,
    };
    rows.extend(contest.hold(1)?);
    Ok(rows)
}

/// Part of the true hits that a table of query and target has.
fn recall(truth: &Path, found: &Path) -> anyhow::Result<f64> {
    let table = |path: &Path| -> anyhow::Result<HashMap<String, HashSet<String>>> {
        let mut table: HashMap<String, HashSet<String>> = HashMap::new();
        for line in std::fs::read_to_string(path)?.lines() {
            if let [query, target, ..] = line.split('\t').collect::<Vec<_>>()[..] {
                table.entry(query.to_owned()).or_default().insert(target.to_owned());
            }
        }
        Ok(table)
    };
    let (truth, found) = (table(truth)?, table(found)?);
    let all: usize = truth.values().map(HashSet::len).sum();
    let hit: usize = truth
        .iter()
        .map(|(query, targets)| found.get(query).map_or(0, |other| targets.intersection(other).count()))
        .sum();
    Ok(if all == 0 { 1.0 } else { hit as f64 / all as f64 })
}

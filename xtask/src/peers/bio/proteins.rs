//! `protein_search` beside diamond, at the sensitivity that has our recall.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::process::Command;

use super::{Stage, find, output, seconds};
use crate::peers::table::{Bound, Contest, Figures, Row};

/// Queries per second, and recall at 50 hits against exhaustive Smith–Waterman.
pub(super) fn hold(stage: &Stage) -> anyhow::Result<Vec<Row>> {
    let given = stage.data.iter().find(|(name, _)| name == "protein_search_queries");
    let own: Vec<(&str, &str)> = given.iter().map(|(_, path)| ("queries", path.as_str())).collect();
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
    let mut rows = Vec::new();
    for (name, bound, flags) in [
        ("diamond --sensitive", 0.5, &["--sensitive"][..]),
        ("diamond --ultra-sensitive", 0.5, &["--ultra-sensitive"]),
    ] {
        let theirs = || {
            let mut command = Command::new("diamond");
            command
                .arg("blastp")
                .args(flags)
                .arg("-d")
                .arg(&database)
                .arg("-q")
                .arg(folder.join("queries.fa"));
            command.args(["-k", "50", "-e", "0.001", "--comp-based-stats", "0", "--masking", "0"]);
            command.args(["-p", &stage.threads.to_string(), "-f", "6", "qseqid", "sseqid", "score", "-o"]);
            Ok(Figures::from([("queries".to_owned(), queries / seconds(command.arg(&hits))?)]))
        };
        let ours = || {
            let metrics = stage.measure("protein_search", &own)?;
            Ok(Figures::from([("queries".to_owned(), find(&metrics, "queries_per_second", &[])?)]))
        };
        let contest = Contest {
            name: "protein_search",
            peer: name,
            unit: "queries/s",
            bound: Bound::AtLeast(bound),
            theirs: &theirs,
            ours: &ours,
        };
        rows.extend(contest.hold(stage.alternations)?);
        let recall = || Ok(Figures::from([("recall".to_owned(), recall(&folder.join("truth.tsv"), &hits)?)]));
        let own_recall = || Ok(Figures::from([("recall".to_owned(), find(&metrics, "recall", &[])?)]));
        let contest = Contest {
            name: "protein_search",
            peer: name,
            unit: "share",
            bound: Bound::AtLeast(0.98),
            theirs: &recall,
            ours: &own_recall,
        };
        rows.extend(contest.hold(1)?);
    }
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

//! `protein_search`: the relatives of protein queries in a database.

use std::path::Path;

use warpforge_bio::formats::read_proteins;
use warpforge_bio::protein::{ALPHABET, Database, Hit, SearchSettings, exhaustive, recall, search};
use warpforge_bio::sets;
use warpforge_bio::simulate::{ProteinSet, protein_families};

use super::workload::{Common, bad_data, measure, report_memory, report_share, require, spec, timed};
use crate::benchmark::{Benchmark, BenchmarkError, MetricKey, RunContext, text};
use crate::record::{BenchmarkSpec, ParamValue, Params};

/// The benchmark.
#[derive(Debug)]
pub(super) struct ProteinSearch;

/// Part of the true hits that must be found.
const LEAST_RECALL: f64 = 0.98;

/// Cells of exhaustive Smith–Waterman that the gate may take: some seconds.
const GATE_CELLS: f64 = 2e11;

impl Benchmark for ProteinSearch {
    fn spec(&self) -> BenchmarkSpec {
        let description = "Searches a protein database: at most 50 hits of a query with an E-value of at most 0.001, \
                           BLOSUM62, gaps of 11 + n. `data` is the database and `queries` the queries.";
        spec("protein_search", description, &[("queries", ParamValue::Text(String::new()))])
    }

    fn takes(&self) -> Vec<(&'static str, String)> {
        super::workload::takes(&[("queries", "a file, with `data`; empty for generated ones".to_owned())])
    }

    fn prepare(&self, params: &Params) -> Result<(), BenchmarkError> {
        proteins(params, &Common::from(params)?, true).map(drop)
    }

    fn run(&self, context: &mut RunContext<'_>) -> Result<(), BenchmarkError> {
        let common = Common::from(context.params())?;
        context.begin("search");
        let set = proteins(context.params(), &common, false)?;
        let began = std::time::Instant::now();
        let database = Database::new(&set.database, common.threads);
        let index_seconds = began.elapsed().as_secs_f64();
        let settings = SearchSettings::default();
        let work = |stages: &mut _| {
            Ok(timed(stages, "search", || search(&database, &set.queries, &settings, common.threads)))
        };
        let (chosen, truth) = truth(&database, &set.queries, &settings, common.threads);
        let of_chosen = |found: &Vec<Vec<Hit>>| {
            recall(&truth, &chosen.iter().map(|&i| found[i].clone()).collect::<Vec<_>>())
        };
        let gate = |found: &Vec<Vec<Hit>>| require("recall", of_chosen(found), LEAST_RECALL);
        let (found, samples) = measure(context, work, gate, context.time())?;
        let rate = MetricKey::more_is_better("queries_per_second", "queries/s");
        samples.report(context, &common, rate, set.queries.len() as f64)?;
        context.record(common.tag(MetricKey::less_is_better("index_time", "s")), vec![index_seconds])?;
        report_share(context, &common, "recall", of_chosen(&found))?;
        if let Some(folder) = &common.export {
            export(folder, &set, &found, &chosen, &truth)
                .map_err(|error| BenchmarkError::Failed(format!("export: {error}")))?;
        }
        report_memory(context, &common)
    }
}

/// The hits of exhaustive search for as many queries as there is time for, evenly taken, and which queries those are.
fn truth(
    database: &Database,
    queries: &[Vec<u8>],
    settings: &SearchSettings,
    threads: usize,
) -> (Vec<usize>, Vec<Vec<Hit>>) {
    let residues: usize = queries.iter().map(Vec::len).sum();
    let step = (residues as f64 * database.residues() as f64 / GATE_CELLS).ceil().max(1.0) as usize;
    let chosen: Vec<usize> = (0..queries.len()).step_by(step).collect();
    let sample: Vec<&[u8]> = chosen.iter().map(|&index| queries[index].as_slice()).collect();
    let truth = exhaustive(database, &sample, settings, threads);
    (chosen, truth)
}

/// The database and the queries; only that they can be found if `only_look`.
fn proteins(params: &Params, common: &Common, only_look: bool) -> Result<ProteinSet, BenchmarkError> {
    let queries = text(params, "queries");
    let Some(database) = &common.data else {
        if !queries.is_empty() {
            return Err(BenchmarkError::BadInput(format!("queries={queries}: it needs a database, `data`")));
        }
        if only_look {
            return Ok(ProteinSet { database: Vec::new(), queries: Vec::new() });
        }
        let size = common.size;
        return Ok(protein_families(
            size.pick(5_000, 50_000, 500_000),
            size.pick(200, 1_000, 5_000),
            common.seed,
        ));
    };
    if queries.is_empty() {
        return Err(BenchmarkError::BadInput("data: it needs the queries as well, `queries`".to_owned()));
    }
    let queries = sets::locate(queries)
        .map_err(|reason| BenchmarkError::BadInput(format!("queries={queries}: {reason}")))?;
    if only_look {
        return Ok(ProteinSet { database: Vec::new(), queries: Vec::new() });
    }
    let read = |path: &Path| -> Result<Vec<Vec<u8>>, BenchmarkError> {
        let records = read_proteins(path).map_err(bad_data)?;
        Ok(records.into_iter().map(|record| record.codes).collect())
    };
    Ok(ProteinSet { database: read(database)?, queries: read(&queries)? })
}

/// Database and queries as FASTA, hits and true hits as tables of query, target and score.
fn export(
    folder: &Path,
    set: &ProteinSet,
    found: &[Vec<Hit>],
    chosen: &[usize],
    truth: &[Vec<Hit>],
) -> std::io::Result<()> {
    let fasta = |proteins: &[Vec<u8>], letter: char| {
        let text = |protein: &Vec<u8>| {
            protein.iter().map(|&code| char::from(ALPHABET[code as usize])).collect::<String>()
        };
        let records = proteins.iter().enumerate();
        records.map(|(index, protein)| format!(">{letter}{index}\n{}\n", text(protein))).collect::<String>()
    };
    std::fs::write(folder.join("database.fa"), fasta(&set.database, 't'))?;
    std::fs::write(folder.join("queries.fa"), fasta(&set.queries, 'q'))?;
    let table = |queries: &mut dyn Iterator<Item = (usize, &Vec<Hit>)>| {
        let rows = queries.flat_map(|(query, hits)| {
            hits.iter().map(move |hit| format!("q{query}\tt{}\t{}\n", hit.target, hit.score))
        });
        rows.collect::<String>()
    };
    std::fs::write(folder.join("hits.tsv"), table(&mut found.iter().enumerate()))?;
    std::fs::write(folder.join("truth.tsv"), table(&mut chosen.iter().copied().zip(truth)))
}

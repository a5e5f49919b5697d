//! `consensus_poa`: the true sequence of windows of noisy reads.

use warpforge_bio::align::edit_distances;
use warpforge_bio::formats::write_fasta;
use warpforge_bio::poa::{PoaScoring, consensus_of_windows};
use warpforge_bio::simulate::{ReadWindow, noisy_windows};

use super::references;
use super::workload::{
    Common, Size, bad_export, measure, report_memory, report_share, require, spec, timed, within,
};
use crate::benchmark::{Benchmark, BenchmarkError, MetricKey, RunContext};
use crate::record::{BenchmarkSpec, ParamValue, Params};

/// The benchmark.
#[derive(Debug)]
pub(super) struct ConsensusPoa;

/// With fewer reads spoa's identity was not measured.
const LEAST_DEPTH: i64 = 20;

/// The least and the most of each parameter.
const LENGTHS: (i64, i64) = (50, 5_000);
const DEPTHS: (i64, i64) = (LEAST_DEPTH, 500);

/// The windows that a size is made for: length and reads.
const USUAL: (usize, usize) = (500, 30);

/// Share of wrong bases in a read.
const ERROR: f64 = 0.10;

/// The parameters, checked: the common ones, a window's length and the reads over it.
fn settings(params: &Params) -> Result<(Common, usize, usize), BenchmarkError> {
    let length = within(params, "length", LENGTHS.0, LENGTHS.1)?;
    let depth = within(params, "depth", DEPTHS.0, DEPTHS.1)?;
    Ok((Common::from(params)?, length, depth))
}

impl Benchmark for ConsensusPoa {
    fn spec(&self) -> BenchmarkSpec {
        let description = "Consensus of windows of noisy long reads (10 % errors) by partial-order alignment. `length` is a \
                           window's, `depth` the reads over it; `data` is a genome.";
        spec(
            "consensus_poa",
            description,
            &[("length", ParamValue::Int(500)), ("depth", ParamValue::Int(30))],
        )
    }

    fn takes(&self) -> Vec<(&'static str, String)> {
        let [length, depth] = [LENGTHS, DEPTHS].map(|(least, most)| format!("{least} to {most}"));
        super::workload::takes(&[("length", length), ("depth", depth)])
    }

    fn prepare(&self, params: &Params) -> Result<(), BenchmarkError> {
        settings(params).map(drop)
    }

    fn run(&self, context: &mut RunContext<'_>) -> Result<(), BenchmarkError> {
        let (common, length, depth) = settings(context.params())?;
        context.begin("windows");
        let reference = common.genome(1_000_000)?;
        let genome = reference.sequence(Common::longest(&reference, length)?);
        let count = windows(common.size, length, depth);
        let windows = noisy_windows(genome, count, length, depth, ERROR, common.seed);
        if windows.is_empty() {
            let reason = format!("data: the longest sequence has no {length} known bases in a row");
            return Err(BenchmarkError::BadInput(reason));
        }
        let reads: Vec<&[Vec<u8>]> = windows.iter().map(|window| window.reads.as_slice()).collect();
        let work = |stages: &mut _| {
            let scoring = PoaScoring::default();
            Ok(timed(stages, "consensus", || consensus_of_windows(&reads, &scoring, common.threads)))
        };
        let least = references::spoa_identity(&common, length, depth, count);
        let gate = |found: &Vec<Vec<u8>>| {
            let found = identity(&windows, found, common.threads);
            require("the identity of the consensus", found, least)
        };
        let (found, samples) = measure(context, work, gate, context.time())?;
        let rate = MetricKey::more_is_better("windows_per_second", "windows/s");
        samples.report(context, &common, rate.tag("length", length).tag("depth", depth), count as f64)?;
        report_share(context, &common, "identity", identity(&windows, &found, common.threads))?;
        if let Some(folder) = &common.export {
            export(folder, &windows, &found)?;
        }
        report_memory(context, &common)
    }
}

/// How many windows a size has: fewer of them where each is more work, so that a size takes about the same time whatever the
/// parameters. The band of the alignment grows with the length.
fn windows(size: Size, length: usize, depth: usize) -> usize {
    let cells = |length: usize, depth: usize| depth * length * (40 + length / 10);
    let usual = size.pick(200, 2_000, 20_000);
    (usual * cells(USUAL.0, USUAL.1) / cells(length, depth)).clamp(2, usual)
}

/// Part of the true bases that the consensus has right.
fn identity(windows: &[ReadWindow], found: &[Vec<u8>], threads: usize) -> f64 {
    let pairs: Vec<(&[u8], &[u8])> =
        windows.iter().zip(found).map(|(window, found)| (&window.truth[..], &found[..])).collect();
    let wrong: u64 = edit_distances(&pairs, threads).into_iter().map(u64::from).sum();
    let all: usize = windows.iter().map(|window| window.truth.len()).sum();
    1.0 - wrong as f64 / all.max(1) as f64
}

/// Reads, truths and consensus sequences; the names begin with the window's number.
fn export(folder: &std::path::Path, windows: &[ReadWindow], found: &[Vec<u8>]) -> Result<(), BenchmarkError> {
    let mut reads = Vec::new();
    for (number, window) in windows.iter().enumerate() {
        reads.extend(window.reads.iter().map(|read| (format!("w{number}"), read.as_slice())));
    }
    let records = |list: &[(String, &[u8])], name: &str| {
        let records = list.iter().map(|(name, bases)| (name.as_str(), *bases));
        write_fasta(&folder.join(name), records).map_err(bad_export)
    };
    records(&reads, "reads.fa")?;
    let named = |index: usize| format!("w{index}");
    let truths: Vec<_> =
        windows.iter().enumerate().map(|(i, window)| (named(i), &window.truth[..])).collect();
    records(&truths, "truth.fa")?;
    let found: Vec<_> = found.iter().enumerate().map(|(i, bases)| (named(i), &bases[..])).collect();
    records(&found, "consensus.fa")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longer_windows_and_more_reads_are_fewer_windows() {
        assert_eq!(windows(Size::Small, 500, 30), 200);
        assert_eq!(windows(Size::Small, 50, 20), 200);
        assert_eq!(windows(Size::Medium, 500, 30), 2_000);
        assert_eq!(windows(Size::Large, 500, 60), 10_000);
        assert_eq!(windows(Size::Small, 5_000, 500), 2);
    }
}

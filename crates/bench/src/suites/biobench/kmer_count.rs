//! `kmer_count`: how often each k-mer of a read set occurs.

use std::path::{Path, PathBuf};

use warpforge_bio::formats::{SequenceRecord, read_nucleotides, write_fastq};
use warpforge_bio::kmer::{Counts, count_in_stages};
use warpforge_bio::simulate::{self, short_reads};

use super::kmer_peers::{JELLYFISH, KMC};
use super::workload::{
    Common, StageTimes, bad_data, bad_export, measure, odd_within, report_memory, spec, timed,
};
use crate::benchmark::{Benchmark, BenchmarkError, MetricKey, Peer, RunContext};
use crate::record::{BenchmarkSpec, ParamValue, Params};

/// The benchmark.
#[derive(Debug)]
pub(super) struct KmerCount;

/// The most k-mers that the gate counts again by sorting.
const GATE_KMERS: usize = 40_000_000;

/// Coverage of the generated genome by reads.
const DEPTH: usize = 20;

/// The parameters, checked: the common ones and the length of a k-mer.
pub(super) fn settings(params: &Params) -> Result<(Common, usize), BenchmarkError> {
    let k = odd_within(params, "k", 1, 31)?;
    Ok((Common::from(params)?, k))
}

impl Benchmark for KmerCount {
    fn spec(&self) -> BenchmarkSpec {
        let description = "Reads a FASTA or FASTQ file and counts its canonical k-mers. `k` is odd, at most 31; `data` is \
                           the file, else reads of 20-fold coverage are generated.";
        spec("kmer_count", description, &[("k", ParamValue::Int(31))])
    }

    fn takes(&self) -> Vec<(&'static str, String)> {
        super::workload::takes(&[("k", "an odd number from 1 to 31".to_owned())])
    }

    fn peers(&self) -> &'static [&'static dyn Peer] {
        &[&KMC, &JELLYFISH]
    }

    fn prepare(&self, params: &Params) -> Result<(), BenchmarkError> {
        settings(params).map(drop)
    }

    fn run(&self, context: &mut RunContext<'_>) -> Result<(), BenchmarkError> {
        let (common, k) = settings(context.params())?;
        context.begin("k-mers");
        let scratch = crate::benchmark::scratch_folder()?;
        let path = input(&common, scratch.path())?;
        let work = |stages: &mut StageTimes| {
            let records = timed(stages, "read", || read_nucleotides(&path)).map_err(bad_data)?;
            let sequences: Vec<&[u8]> = records.iter().map(|record| record.codes.as_slice()).collect();
            let (counts, steps) = count_in_stages::<u64, _>(&sequences, k, common.threads)
                .map_err(|error| BenchmarkError::BadInput(error.to_string()))?;
            stages.push(("scatter", steps.scatter));
            stages.push(("count", steps.count));
            let total = counts.total();
            Ok((total, Some((counts, records))))
        };
        let gate = |(_, result): &Counted| match result {
            Some((counts, records)) => gate(counts, records, k),
            None => Ok(()),
        };
        let ((total, result), samples) = measure(context, work, gate, context.time())?;
        if let (Some(folder), Some((counts, _))) = (&common.export, &result) {
            write_histogram(folder, counts)?;
        }
        let rate = MetricKey::more_is_better("kmers_per_second", "k-mers/s").tag("k", k);
        samples.report(context, &common, rate, total as f64)?;
        report_memory(context, &common)
    }
}

/// K-mers in all, and the counts with what they are of.
type Counted = (u64, Option<(Counts<u64>, Vec<SequenceRecord>)>);

/// The file to count: the user's, or generated reads.
pub(super) fn input(common: &Common, scratch: &Path) -> Result<PathBuf, BenchmarkError> {
    if let Some(path) = &common.data {
        return Ok(path.clone());
    }
    let genome = simulate::genome(common.size.pick(1_000_000, 10_000_000, 60_000_000), common.seed);
    let reads = short_reads(&genome, DEPTH * genome.len() / 150, 150, common.seed);
    let path = common.export.as_deref().unwrap_or(scratch).join("reads.fq");
    let records = reads.iter().map(|read| (&read.name[..], &read.bases[..], &read.qualities[..]));
    write_fastq(&path, records).map_err(bad_export)?;
    Ok(path)
}

/// The histogram as jellyfish writes it: how often, and how many k-mers.
fn write_histogram(folder: &Path, counts: &Counts<u64>) -> Result<(), BenchmarkError> {
    let rows = counts.histogram(10_000).into_iter().enumerate().filter(|&(_, kmers)| kmers > 0);
    let lines: Vec<String> = rows.map(|(times, kmers)| format!("{times} {kmers}\n")).collect();
    std::fs::write(folder.join("histogram.txt"), lines.concat())
        .map_err(|error| BenchmarkError::Failed(format!("export: {error}")))
}

/// The histogram is that of sorting all k-mers. Of a large set, the k-mers of one slice of all hashes are compared.
fn gate(counts: &Counts<u64>, records: &[SequenceRecord], k: usize) -> Result<(), BenchmarkError> {
    let slices = (counts.total() as usize).div_ceil(GATE_KMERS).max(1) as u64;
    let chosen =
        |kmer: u64| slices == 1 || kmer.wrapping_mul(0xD6E8_FEB8_6659_FD93) >> 32 < (1 << 32) / slices;
    let mut all = Vec::new();
    for record in records {
        // Slow and obvious: each window on its own, both strands written out.
        for window in record.codes.windows(k) {
            if window.iter().all(|&code| code < 4) {
                let forward = window.iter().fold(0u64, |word, &code| word << 2 | u64::from(code));
                let reverse = window.iter().rev().fold(0u64, |word, &code| word << 2 | u64::from(3 - code));
                let kmer = forward.min(reverse);
                if chosen(kmer) {
                    all.push(kmer);
                }
            }
        }
    }
    all.sort_unstable();
    let mut counted: Vec<(u64, u32)> = counts.iter().filter(|&(kmer, _)| chosen(kmer)).collect();
    counted.sort_unstable();
    let mut counted = counted.into_iter();
    for same in all.chunk_by(|a, b| a == b) {
        let (kmer, count) = counted.next().unwrap_or_default();
        if kmer != same[0] || count as usize != same.len() {
            return Err(BenchmarkError::Failed(format!(
                "wrong answer: the k-mer {:x} occurs {} times; {kmer:x} is counted {count} times",
                same[0],
                same.len()
            )));
        }
    }
    if let Some((kmer, count)) = counted.next() {
        return Err(BenchmarkError::Failed(format!(
            "wrong answer: the k-mer {kmer:x} is counted {count} times and does not occur"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_of_other_sequences_is_a_failure() {
        let record =
            |codes: &[u8]| SequenceRecord { name: "x".to_owned(), codes: codes.to_vec(), qualities: vec![] };
        let records = [record(&[0, 1, 2, 3, 3, 2, 0, 0, 1]), record(&[4, 1, 1, 1])];
        let counts = |records: &[SequenceRecord]| {
            let sequences: Vec<&[u8]> = records.iter().map(|record| record.codes.as_slice()).collect();
            count_in_stages::<u64, _>(&sequences, 3, 1).unwrap().0
        };
        assert_eq!(gate(&counts(&records), &records, 3), Ok(()));
        assert!(gate(&counts(&records[..1]), &records, 3).is_err());
        assert!(gate(&counts(&records), &records[..1], 3).is_err());
    }
}

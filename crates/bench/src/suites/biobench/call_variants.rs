//! `call_variants`: spiked variants back from mapped reads.

use std::path::Path;

use warpforge_bio::formats::{write_bam, write_fasta, write_vcf};
use warpforge_bio::map::{Index, ReadKind, Reference, map_reads};
use warpforge_bio::simulate::{short_reads, spike_variants};
use warpforge_bio::variants::{AlignedRead, CallSettings, Variant, call_variants, compare};

use super::map_reads::aligned_reads;
use super::references;
use super::workload::{
    Common, bad_export, measure, report_memory, report_share, require, spec, timed, within,
};
use crate::benchmark::{Benchmark, BenchmarkError, MetricKey, RunContext};
use crate::record::{BenchmarkSpec, ParamValue, Params};

/// The benchmark.
#[derive(Debug)]
pub(super) struct CallVariants;

/// By how much F1 may be below that of bcftools.
const BELOW_BCFTOOLS: f64 = 0.01;

/// With few reads over a base, variants are missed by every caller; the gate is for coverages that people sequence to.
const LEAST_DEPTH: i64 = 15;
const MOST_DEPTH: i64 = 500;

/// Bases from one spiked variant to the next, about.
const SPACING: usize = 1_000;

/// The parameters, checked: the common ones and the coverage.
fn settings(params: &Params) -> Result<(Common, usize), BenchmarkError> {
    let depth = within(params, "depth", LEAST_DEPTH, MOST_DEPTH)?;
    Ok((Common::from(params)?, depth))
}

/// What is called, and the truth.
struct Individual {
    reference: Reference,
    contig: usize,
    reads: Vec<AlignedRead>,
    truth: Vec<Variant>,
}

impl Individual {
    /// A diploid individual's reads, mapped and sorted.
    fn new(common: &Common, depth: usize) -> Result<Self, BenchmarkError> {
        let reference = common.genome(common.size.pick(1_000_000, 10_000_000, 60_000_000))?;
        let contig = Common::longest(&reference, 150)?;
        let spiked = spike_variants(reference.sequence(contig), SPACING, common.seed);
        let index = Index::build(reference, ReadKind::Short, common.threads);
        let mut reads = Vec::new();
        for (copy, haplotype) in spiked.haplotypes.iter().enumerate() {
            let count = depth * haplotype.len() / 150 / 2;
            let mut simulated = short_reads(haplotype, count, 150, common.seed + copy as u64);
            for read in &mut simulated {
                read.name = format!("copy{copy}_{}", read.name);
            }
            let sequences: Vec<&[u8]> = simulated.iter().map(|read| read.bases.as_slice()).collect();
            let mapped = map_reads(&index, &sequences, common.threads);
            reads.extend(aligned_reads(simulated, mapped));
        }
        reads.sort_by_key(|read| (read.contig.unwrap_or(usize::MAX), read.position));
        Ok(Self { reference: index.reference().clone(), contig, reads, truth: spiked.variants })
    }

    fn export(&self, folder: &Path, calls: &[Vec<Variant>]) -> Result<(), BenchmarkError> {
        let names = self.reference.names().iter().enumerate();
        let sequences = names.map(|(contig, name)| (name.as_str(), self.reference.sequence(contig)));
        write_fasta(&folder.join("reference.fa"), sequences).map_err(bad_export)?;
        write_bam(&folder.join("reads.bam"), &self.reference, &self.reads).map_err(bad_export)?;
        write_vcf(&folder.join("calls.vcf"), &self.reference, calls).map_err(bad_export)?;
        let mut truth = vec![Vec::new(); self.reference.names().len()];
        truth[self.contig].clone_from(&self.truth);
        write_vcf(&folder.join("truth.vcf"), &self.reference, &truth).map_err(bad_export)
    }
}

impl Benchmark for CallVariants {
    fn spec(&self) -> BenchmarkSpec {
        let description = "Calls the variants of a diploid individual from mapped short reads: single bases, insertions \
                           and deletions. `depth` is the coverage; `data` is a genome.";
        spec("call_variants", description, &[("depth", ParamValue::Int(30))])
    }

    fn takes(&self) -> Vec<(&'static str, String)> {
        super::workload::takes(&[("depth", format!("{LEAST_DEPTH} to {MOST_DEPTH}"))])
    }

    fn prepare(&self, params: &Params) -> Result<(), BenchmarkError> {
        settings(params).map(drop)
    }

    fn run(&self, context: &mut RunContext<'_>) -> Result<(), BenchmarkError> {
        let (common, depth) = &settings(context.params())?;
        context.begin("reads");
        let individual = Individual::new(common, *depth)?;
        context.begin("calls");
        let work = |stages: &mut _| {
            Ok(timed(stages, "call", || {
                call_variants(
                    &individual.reference,
                    &individual.reads,
                    &CallSettings::default(),
                    common.threads,
                )
            }))
        };
        let f1 = |calls: &Vec<Vec<Variant>>| compare(&individual.truth, &calls[individual.contig]).f1();
        let least = references::bcftools_f1(common, *depth, individual.truth.len()) - BELOW_BCFTOOLS;
        let gate = |calls: &Vec<Vec<Variant>>| require("F1 of the calls", f1(calls), least);
        let (calls, samples) = measure(context, work, gate, context.time())?;
        let rate = MetricKey::more_is_better("megabases_per_second", "Mbp/s").tag("depth", depth);
        samples.report(context, common, rate, individual.reference.bases().len() as f64 / 1e6)?;
        let accuracy = compare(&individual.truth, &calls[individual.contig]);
        report_share(context, common, "f1", accuracy.f1())?;
        report_share(context, common, "precision", accuracy.precision())?;
        report_share(context, common, "recall", accuracy.recall())?;
        if let Some(folder) = &common.export {
            individual.export(folder, &calls)?;
        }
        report_memory(context, common)
    }
}

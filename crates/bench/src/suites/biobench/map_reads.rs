//! `map_reads`: simulated reads back to where they came from.

use std::ops::Range;
use std::path::Path;

use warpforge_bio::align::{Scoring, plain};
use warpforge_bio::formats::{write_bam, write_fasta, write_fastq};
use warpforge_bio::map::{self, Index, Mapping, ReadKind, Reference};
use warpforge_bio::seq::{OTHER, reverse_complement};
use warpforge_bio::simulate::{LongReadModel, SimulatedRead, long_reads, short_reads};
use warpforge_bio::variants::AlignedRead;

use super::minimap2::Minimap2;
use super::references;
use super::workload::{
    Common, bad_export, bad_value, measure, report_memory, report_share, require, spec, timed,
};
use crate::benchmark::{Benchmark, BenchmarkError, MetricKey, Peer, RunContext, text};
use crate::record::{BenchmarkSpec, ParamValue, Params};

/// The benchmark.
#[derive(Debug)]
pub(super) struct MapReads;

/// Bases of a short read.
const SHORT_LENGTH: usize = 150;

/// Part of the reads that may lie worse than at their origin: the half point that minimap2's share may be missed by.
const MOST_WORSE: f64 = 0.005;

pub(super) struct Settings {
    pub(super) common: Common,
    pub(super) kind: ReadKind,
}

impl Settings {
    pub(super) fn from(params: &Params) -> Result<Self, BenchmarkError> {
        let kind = match text(params, "reads") {
            "short" => ReadKind::Short,
            "long" => ReadKind::Long,
            other => return Err(bad_value("reads", &other, "it takes short or long")),
        };
        Ok(Self { common: Common::from(params)?, kind })
    }

    /// The genome, the sequence of it that the reads come from, and the reads.
    pub(super) fn workload(&self) -> Result<(Reference, usize, Vec<SimulatedRead>), BenchmarkError> {
        let reference = self.common.genome(self.common.size.pick(2_000_000, 20_000_000, 100_000_000))?;
        let contig = Common::longest(&reference, SHORT_LENGTH)?;
        let reads = self.reads(reference.sequence(contig));
        Ok((reference, contig, reads))
    }

    fn reads(&self, genome: &[u8]) -> Vec<SimulatedRead> {
        let size = self.common.size;
        match self.kind {
            ReadKind::Short => {
                short_reads(genome, size.pick(50_000, 500_000, 5_000_000), SHORT_LENGTH, self.common.seed)
            }
            ReadKind::Long => {
                let count = size.pick(500, 5_000, 50_000);
                long_reads(genome, count, LongReadModel::default(), self.common.seed)
            }
        }
    }
}

impl Benchmark for MapReads {
    fn spec(&self) -> BenchmarkSpec {
        let description = "Maps simulated reads to a genome, with base-level alignments. `reads` is short (150 bases, \
                           Illumina-like errors) or long (8,000 bases, 8 % errors); `data` is a genome.";
        spec("map_reads", description, &[("reads", ParamValue::Text("short".to_owned()))])
    }

    fn takes(&self) -> Vec<(&'static str, String)> {
        super::workload::takes(&[("reads", "short or long".to_owned())])
    }

    fn peers(&self) -> &'static [&'static dyn Peer] {
        &[&Minimap2]
    }

    fn prepare(&self, params: &Params) -> Result<(), BenchmarkError> {
        Settings::from(params).map(drop)
    }

    fn run(&self, context: &mut RunContext<'_>) -> Result<(), BenchmarkError> {
        let settings = Settings::from(context.params())?;
        let common = &settings.common;
        let (reference, contig, reads) = settings.workload()?;
        let sequences: Vec<&[u8]> = reads.iter().map(|read| read.bases.as_slice()).collect();
        let name = context.text("reads").to_owned();
        context.begin(&name);
        let began = std::time::Instant::now();
        let index = Index::build(reference, settings.kind, common.threads);
        let index_seconds = began.elapsed().as_secs_f64();
        let least = references::minimap2_share(common, settings.kind).map(|share| share - MOST_WORSE);
        let work =
            |stages: &mut _| Ok(timed(stages, "map", || map::map_reads(&index, &sequences, common.threads)));
        let gate = |mapped: &Vec<Option<Mapping>>| {
            if let Some(least) = least {
                let share = share_at_origin(contig, &reads, mapped);
                require("the share of reads at their origin", share, least)?;
            }
            let placed = share_placed_well(index.reference(), contig, &reads, mapped);
            require(
                "the share of reads that lie at least as well as at their origin",
                placed,
                1.0 - MOST_WORSE,
            )
        };
        let (mapped, samples) = measure(context, work, gate, context.time())?;
        let tagged = |key: MetricKey| key.tag("reads", &name);
        let rate = tagged(MetricKey::more_is_better("reads_per_second", "reads/s"));
        samples.report(context, common, rate, reads.len() as f64)?;
        let key = common.tag(tagged(MetricKey::less_is_better("index_time", "s")));
        context.record(key, vec![index_seconds])?;
        report_share(context, common, "reads_at_origin", share_at_origin(contig, &reads, &mapped))?;
        if let Some(folder) = &common.export {
            let reference = index.reference();
            export(folder, reference, &reads)?;
            let mut aligned = aligned_reads(reads, mapped);
            aligned.sort_by_key(|read| (read.contig.unwrap_or(usize::MAX), read.position));
            write_bam(&folder.join("mapped.bam"), reference, &aligned).map_err(bad_export)?;
        }
        report_memory(context, common)
    }
}

/// Writes the genome and the reads as `reference.fa` and `reads.fq`.
pub(super) fn export(
    folder: &Path,
    reference: &Reference,
    reads: &[SimulatedRead],
) -> Result<(), BenchmarkError> {
    let names = reference.names().iter().enumerate();
    let sequences = names.map(|(contig, name)| (name.as_str(), reference.sequence(contig)));
    write_fasta(&folder.join("reference.fa"), sequences).map_err(bad_export)?;
    let records = reads.iter().map(|read| (&read.name[..], &read.bases[..], &read.qualities[..]));
    write_fastq(&folder.join("reads.fq"), records).map_err(bad_export)
}

/// Part of the reads whose mapping is at the origin.
pub(super) fn share_at_origin(contig: usize, reads: &[SimulatedRead], mapped: &[Option<Mapping>]) -> f64 {
    let right = reads.iter().zip(mapped).filter(|(read, mapping)| {
        mapping.as_ref().is_some_and(|mapping| is_at_origin(contig, read, mapping))
    });
    right.count() as f64 / reads.len().max(1) as f64
}

/// Whether a mapping shares at least a tenth of what it and the origin cover: paftools' criterion.
fn is_at_origin(contig: usize, read: &SimulatedRead, mapping: &Mapping) -> bool {
    let both = mapping.end().min(read.origin.end).saturating_sub(mapping.position.max(read.origin.start));
    let either = mapping.end().max(read.origin.end) - mapping.position.min(read.origin.start);
    mapping.contig == contig && mapping.reverse == read.origin.reverse && 10 * both > either
}

/// Bases on either side of a place that its alignment may reach to.
const AROUND: usize = 50;

/// Part of the reads that are at their origin, or at another place where plain dynamic programming scores at least as
/// much: of two equal copies of a repeat no mapper can know which. Reads of which half is unknown do not count.
fn share_placed_well(
    reference: &Reference,
    contig: usize,
    reads: &[SimulatedRead],
    mapped: &[Option<Mapping>],
) -> f64 {
    let score = |read: &SimulatedRead, contig: usize, place: Range<usize>, reverse: bool| {
        let sequence = reference.sequence(contig);
        let target = &sequence[place.start.saturating_sub(AROUND)..(place.end + AROUND).min(sequence.len())];
        let strand = if reverse { &reverse_complement(&read.bases) } else { &read.bases };
        plain::local(strand, target, &Scoring::READS)
    };
    let judged: Vec<_> = reads.iter().zip(mapped).filter(|(read, _)| is_known(read)).collect();
    let well = judged.iter().filter(|(read, mapping)| {
        mapping.as_ref().is_some_and(|mapping| {
            let origin = read.origin;
            is_at_origin(contig, read, mapping)
                || score(read, mapping.contig, mapping.position..mapping.end(), mapping.reverse)
                    >= score(read, contig, origin.start..origin.end, origin.reverse)
        })
    });
    well.count() as f64 / judged.len().max(1) as f64
}

/// Whether more than half of a read's bases are known.
fn is_known(read: &SimulatedRead) -> bool {
    2 * read.bases.iter().filter(|&&base| base < OTHER).count() > read.bases.len()
}

/// Reads with their mappings, as a BAM file has them.
pub(super) fn aligned_reads(reads: Vec<SimulatedRead>, mapped: Vec<Option<Mapping>>) -> Vec<AlignedRead> {
    let joined = reads.into_iter().zip(mapped).map(|(read, mapping)| {
        let SimulatedRead { name, mut bases, mut qualities, .. } = read;
        let reverse = mapping.as_ref().is_some_and(|mapping| mapping.reverse);
        if reverse {
            bases = reverse_complement(&bases);
            qualities.reverse();
        }
        AlignedRead {
            name,
            contig: mapping.as_ref().map(|mapping| mapping.contig),
            position: mapping.as_ref().map_or(0, |mapping| mapping.position),
            quality: mapping.as_ref().map_or(0, |mapping| mapping.quality),
            reverse,
            cigar: mapping.map(|mapping| mapping.cigar).unwrap_or_default(),
            bases,
            qualities,
        }
    });
    joined.collect()
}

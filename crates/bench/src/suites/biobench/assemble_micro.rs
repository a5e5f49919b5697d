//! `assemble_micro`: a small genome back from its short reads.

use warpforge_bio::assemble::{AssemblySettings, Evaluation, Unitig, assemble, evaluate, n50};
use warpforge_bio::formats::{write_fasta, write_fastq};
use warpforge_bio::simulate::short_reads;

use super::workload::{
    Common, StageTimes, bad_export, bad_value, measure, odd_within, report_memory, report_share, require,
    spec,
};
use crate::benchmark::{Benchmark, BenchmarkError, MetricKey, RunContext, text};
use crate::record::{BenchmarkSpec, ParamValue, Params};

/// The benchmark.
#[derive(Debug)]
pub(super) struct AssembleMicro;

/// Part of the contigs' bases that are the genome's, at least.
const LEAST_IDENTITY: f64 = 0.999;

/// Part of the genome that contigs cover, at least; a repeat longer than k is covered by one contig for all its copies.
const LEAST_FRACTION: f64 = 0.99;

/// Coverage of the genome by reads.
const DEPTH: usize = 50;

struct Settings {
    common: Common,
    assembly: AssemblySettings,
    circular: bool,
}

impl Settings {
    fn from(params: &Params) -> Result<Self, BenchmarkError> {
        let k = odd_within(params, "k", 15, 63)?;
        let circular = match text(params, "shape") {
            "linear" => false,
            "circular" => true,
            other => return Err(bad_value("shape", &other, "it takes linear or circular")),
        };
        let assembly = AssemblySettings { k, ..AssemblySettings::default() };
        Ok(Self { common: Common::from(params)?, assembly, circular })
    }
}

impl Benchmark for AssembleMicro {
    fn spec(&self) -> BenchmarkSpec {
        let description = "Assembles a small genome from short reads of 50-fold coverage to unitigs. `k` is odd, 15 to 63; \
                           `shape` is linear or circular; `data` is a genome.";
        let own = [("k", ParamValue::Int(51)), ("shape", ParamValue::Text("linear".to_owned()))];
        spec("assemble_micro", description, &own)
    }

    fn takes(&self) -> Vec<(&'static str, String)> {
        super::workload::takes(&[
            ("k", "an odd number from 15 to 63".to_owned()),
            ("shape", "linear or circular".to_owned()),
        ])
    }

    fn prepare(&self, params: &Params) -> Result<(), BenchmarkError> {
        Settings::from(params).map(drop)
    }

    fn run(&self, context: &mut RunContext<'_>) -> Result<(), BenchmarkError> {
        let settings = Settings::from(context.params())?;
        let common = &settings.common;
        context.begin("assembly");
        let reference = common.genome(common.size.pick(50_000, 500_000, 5_000_000))?;
        let genome = reference.sequence(Common::longest(&reference, 150)?);
        let mut template = genome.to_vec();
        if settings.circular {
            template.extend_from_slice(&genome[..genome.len().min(200)]);
        }
        let reads = short_reads(&template, DEPTH * genome.len() / 150, 150, common.seed);
        let sequences: Vec<&[u8]> = reads.iter().map(|read| read.bases.as_slice()).collect();
        let work = |stages: &mut StageTimes| {
            let (contigs, steps) = assemble(&sequences, &settings.assembly, common.threads)
                .map_err(|error| BenchmarkError::BadInput(error.to_string()))?;
            stages.push(("scatter", steps.count.scatter));
            stages.push(("count", steps.count.count));
            stages.push(("graph", steps.graph));
            Ok(contigs)
        };
        let judge = |contigs: &Vec<Unitig>| -> Evaluation {
            let parts: Vec<&[u8]> = contigs.iter().map(|contig| contig.bases.as_slice()).collect();
            evaluate(genome, &parts, settings.circular)
        };
        let gate = |contigs: &Vec<Unitig>| gate(&judge(contigs));
        let (contigs, samples) = measure(context, work, gate, context.time())?;
        let bases: usize = sequences.iter().map(|sequence| sequence.len()).sum();
        let rate = MetricKey::more_is_better("bases_per_second", "bases/s").tag("k", settings.assembly.k);
        samples.report(context, common, rate, bases as f64)?;
        let lengths: Vec<usize> = contigs.iter().map(|contig| contig.bases.len()).collect();
        let found = judge(&contigs);
        report_share(context, common, "genome_fraction", found.genome_fraction)?;
        let key = common.tag(MetricKey::more_is_better("n50", "bases"));
        context.record(key, vec![n50(&lengths) as f64])?;
        let key = common.tag(MetricKey::less_is_better("misjoins", "joins"));
        context.record(key, vec![found.misjoins as f64])?;
        if let Some(folder) = &common.export {
            let names: Vec<String> = (0..contigs.len()).map(|index| format!("contig{index}")).collect();
            let parts = names.iter().zip(&contigs).map(|(name, contig)| (name.as_str(), &contig.bases[..]));
            write_fasta(&folder.join("contigs.fa"), parts).map_err(bad_export)?;
            write_fasta(&folder.join("genome.fa"), [("genome", genome)]).map_err(bad_export)?;
            let records = reads.iter().map(|read| (&read.name[..], &read.bases[..], &read.qualities[..]));
            write_fastq(&folder.join("reads.fq"), records).map_err(bad_export)?;
        }
        report_memory(context, common)
    }
}

/// The contigs are the genome's, cover it, and none joins what does not belong together.
fn gate(found: &Evaluation) -> Result<(), BenchmarkError> {
    if found.misjoins > 0 {
        return Err(BenchmarkError::Failed(format!("wrong answer: {} wrong joins", found.misjoins)));
    }
    require("the identity of the contigs", found.identity, LEAST_IDENTITY)?;
    require("the genome fraction", found.genome_fraction, LEAST_FRACTION)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_fault_of_an_assembly_is_a_failure() {
        let good = Evaluation { genome_fraction: 1.0, identity: 1.0, misjoins: 0 };
        assert_eq!(gate(&good), Ok(()));
        assert!(gate(&Evaluation { misjoins: 1, ..good }).is_err());
        assert!(gate(&Evaluation { identity: 0.99, ..good }).is_err());
        assert!(gate(&Evaluation { genome_fraction: 0.9, ..good }).is_err());
    }
}

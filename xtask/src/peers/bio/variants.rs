//! `call_variants` beside bcftools.

use std::process::Command;

use warpforge_bio::formats::{read_nucleotides, read_vcf};
use warpforge_bio::map::Reference;
use warpforge_bio::variants::{compare, normalize};

use super::{Source, Stage, find, letters, output, seconds};
use crate::peers::table::{Bound, Contest, Figures, Row};

/// Megabases per second from the sorted reads to the calls, and F1 on the spiked variants.
pub(super) fn hold(stage: &Stage) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for source in stage.sources("call_variants", &[])? {
        rows.extend(hold_genome(stage, &source)?);
    }
    Ok(rows)
}

fn hold_genome(stage: &Stage, source: &Source) -> anyhow::Result<Vec<Row>> {
    let own = source.with(&[]);
    let (folder, metrics) = stage.export("call_variants", &own)?;
    let (reference, bam) = (folder.join("reference.fa"), folder.join("reads.bam"));
    output(Command::new("samtools").arg("quickcheck").arg(&bam))?;
    output(Command::new("bcftools").arg("view").arg(folder.join("calls.vcf")))?;
    let calls = folder.join("bcftools.vcf");
    let megabases = letters(&reference)? / 1e6;
    let script = format!(
        "bcftools mpileup --threads {threads} -f {} {} | bcftools call --threads {threads} -mv -o {}",
        reference.display(),
        bam.display(),
        calls.display(),
        threads = stage.threads,
    );
    output(Command::new("samtools").arg("faidx").arg(&reference))?;
    let label = format!("30-fold, {}", source.label);
    let share = format!("F1, {}", source.label);
    let theirs = || {
        let seconds = seconds(Command::new("bash").args(["-o", "pipefail", "-c", &script]))?;
        Ok(Figures::from([(label.clone(), megabases / seconds)]))
    };
    let ours = || stage.figure(&label, "call_variants", &own, "megabases_per_second");
    let contest = Contest {
        name: "call_variants",
        peer: "bcftools",
        unit: "Mbp/s",
        bound: Bound::AtLeast(1.0),
        theirs: &theirs,
        ours: &ours,
    };
    let mut rows = contest.hold(stage.alternations)?;
    let f1 = || {
        let records = read_nucleotides(&reference)?;
        let reference = Reference::new(records.into_iter().map(|record| (record.name, record.codes)))?;
        let truth = read_vcf(&folder.join("truth.vcf"), &reference)?;
        let calls = read_vcf(&calls, &reference)?;
        let (mut truths, mut called) = (Vec::new(), Vec::new());
        for contig in 0..truth.len() {
            let sequence = reference.sequence(contig);
            let normal = calls[contig].iter().map(|call| normalize(sequence, call.clone()));
            // Positions of different sequences are kept apart by their place among all bases.
            let start = reference.span(contig).start;
            let shifted = |mut variant: warpforge_bio::variants::Variant| {
                variant.position += start;
                variant
            };
            truths.extend(truth[contig].iter().cloned().map(shifted));
            called.extend(normal.map(shifted));
        }
        Ok(Figures::from([(share.clone(), compare(&truths, &called).f1())]))
    };
    let own = || Ok(Figures::from([(share.clone(), find(&metrics, "f1", &[])?)]));
    let contest = Contest {
        name: "call_variants",
        peer: "bcftools",
        unit: "share",
        bound: Bound::AtLeast(0.99),
        theirs: &f1,
        ours: &own,
    };
    rows.extend(contest.hold(1)?);
    Ok(rows)
}

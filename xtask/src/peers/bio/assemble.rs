//! `assemble_micro` beside megahit.

use std::path::Path;
use std::process::Command;

use warpforge_bio::assemble::evaluate;
use warpforge_bio::formats::read_nucleotides;

use super::{Stage, find, letters, seconds};
use crate::peers::table::{Bound, Contest, Figures, Row};

/// Bases of reads per second, and the genome fraction of the contigs.
pub(super) fn hold(stage: &Stage) -> anyhow::Result<Vec<Row>> {
    let (folder, metrics) = stage.export("assemble_micro", &[])?;
    let reads = folder.join("reads.fq");
    let bases = letters(&reads)?;
    let made = folder.join("megahit");
    let theirs = || {
        if made.exists() {
            std::fs::remove_dir_all(&made)?;
        }
        let mut command = Command::new("megahit");
        command.arg("-r").arg(&reads).arg("-o").arg(&made).args(["-t", &stage.threads.to_string()]);
        Ok(Figures::from([("reads".to_owned(), bases / seconds(&mut command)?)]))
    };
    let ours = || {
        let metrics = stage.measure("assemble_micro", &[])?;
        Ok(Figures::from([("reads".to_owned(), find(&metrics, "bases_per_second", &[])?)]))
    };
    let contest = Contest {
        name: "assemble_micro",
        peer: "megahit",
        unit: "bases/s",
        bound: Bound::AtLeast(1.0),
        theirs: &theirs,
        ours: &ours,
    };
    let mut rows = contest.hold(stage.alternations)?;
    let label = "genome fraction".to_owned();
    let fraction = || {
        let found = genome_fraction(&folder.join("genome.fa"), &made.join("final.contigs.fa"))?;
        Ok(Figures::from([(label.clone(), found)]))
    };
    let own = || Ok(Figures::from([(label.clone(), find(&metrics, "genome_fraction", &[])?)]));
    let contest = Contest {
        name: "assemble_micro",
        peer: "megahit",
        unit: "share",
        bound: Bound::AtLeast(0.99),
        theirs: &fraction,
        ours: &own,
    };
    rows.extend(contest.hold(1)?);
    Ok(rows)
}

fn genome_fraction(genome: &Path, contigs: &Path) -> anyhow::Result<f64> {
    let genome = read_nucleotides(genome)?;
    let contigs = read_nucleotides(contigs)?;
    let parts: Vec<&[u8]> = contigs.iter().map(|contig| contig.codes.as_slice()).collect();
    let genome = genome.first().map(|record| record.codes.as_slice()).unwrap_or_default();
    Ok(evaluate(genome, &parts, false).genome_fraction)
}

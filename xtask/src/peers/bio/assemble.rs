//! `assemble_micro` beside megahit.

use std::path::Path;
use std::process::Command;

use anyhow::ensure;
use warpforge_bio::assemble::evaluate;
use warpforge_bio::formats::read_nucleotides;

use super::{Source, Stage, find, letters, seconds};
use crate::peers::table::{Bound, Contest, Figures, Row};

/// Data sets of circular genomes.
const CIRCULAR: [&str; 1] = ["plasmid"];

/// Bases of reads per second, and the genome fraction of the contigs. Ours is a failure if a contig joins what does not
/// belong together.
pub(super) fn hold(stage: &Stage) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for source in stage.sources("assemble_micro", &["lambda", "plasmid"])? {
        rows.extend(hold_genome(stage, &source)?);
    }
    Ok(rows)
}

fn hold_genome(stage: &Stage, source: &Source) -> anyhow::Result<Vec<Row>> {
    let circular = CIRCULAR.contains(&source.label.as_str());
    let own = source.with(&[("shape", if circular { "circular" } else { "linear" })]);
    let name = source.label.clone();
    let (folder, metrics) = stage.export("assemble_micro", &own)?;
    let reads = folder.join("reads.fq");
    let bases = letters(&reads)?;
    let made = folder.join("megahit");
    let theirs = || {
        if made.exists() {
            std::fs::remove_dir_all(&made)?;
        }
        let mut command = Command::new("megahit");
        command.arg("-r").arg(&reads).arg("-o").arg(&made).args(["-t", &stage.threads.to_string()]);
        Ok(Figures::from([(name.clone(), bases / seconds(&mut command)?)]))
    };
    let ours = || stage.figure(&name, "assemble_micro", &own, "bases_per_second");
    let contest = Contest {
        name: "assemble_micro",
        peer: "megahit",
        unit: "bases/s",
        bound: Bound::AtLeast(1.0),
        theirs: &theirs,
        ours: &ours,
    };
    let mut rows = contest.hold(stage.alternations)?;
    let label = format!("{name}, genome fraction");
    let fraction = || {
        let found = genome_fraction(&folder.join("genome.fa"), &made.join("final.contigs.fa"), circular)?;
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
    let misjoins = find(&metrics, "misjoins", &[])?;
    ensure!(misjoins == 0.0, "{name}: {misjoins} wrong joins");
    Ok(rows)
}

fn genome_fraction(genome: &Path, contigs: &Path, circular: bool) -> anyhow::Result<f64> {
    let genome = read_nucleotides(genome)?;
    let contigs = read_nucleotides(contigs)?;
    let parts: Vec<&[u8]> = contigs.iter().map(|contig| contig.codes.as_slice()).collect();
    let genome = genome.first().map(|record| record.codes.as_slice()).unwrap_or_default();
    Ok(evaluate(genome, &parts, circular).genome_fraction)
}

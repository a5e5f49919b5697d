//! `map_reads` beside minimap2.

use std::path::Path;
use std::process::Command;

use anyhow::Context as _;

use super::{Source, Stage, find, output, seconds};
use crate::peers::table::{Bound, Contest, Figures, Row};

/// Reads per second without the index, and the share of reads at their origin.
pub(super) fn hold(stage: &Stage) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for source in stage.sources("map_reads", &["ecoli"])? {
        for (reads, preset) in [("short", "sr"), ("long", "map-ont")] {
            rows.extend(hold_reads(stage, &source, reads, preset)?);
        }
    }
    Ok(rows)
}

/// As [`hold`], for one kind of reads and minimap2's preset for it.
fn hold_reads(stage: &Stage, source: &Source, reads: &str, preset: &str) -> anyhow::Result<Vec<Row>> {
    let own = source.with(&[("reads", reads)]);
    let (folder, metrics) = stage.export("map_reads", &own)?;
    let (reference, fastq) = (folder.join("reference.fa"), folder.join("reads.fq"));
    let index = folder.join("index.mmi");
    let minimap2 = || {
        let mut command = Command::new("minimap2");
        command.args(["-a", "-x", preset, "-t", &stage.threads.to_string()]);
        command
    };
    output(minimap2().arg("-d").arg(&index).arg(&reference))?;
    let sam = folder.join("minimap2.sam");
    let count = names(&fastq)? as f64;
    // Loading the index is not mapping: a run on no reads is taken off.
    let empty = folder.join("empty.fq");
    std::fs::write(&empty, "")?;
    let label = format!("{reads} reads, {}", source.label);
    let theirs = || {
        let load = seconds(minimap2().args(["-o", "/dev/null"]).arg(&index).arg(&empty))?;
        let whole = seconds(minimap2().arg("-o").arg(&sam).arg(&index).arg(&fastq))?;
        Ok(Figures::from([(label.clone(), count / (whole - load).max(1e-3))]))
    };
    let ours = || stage.figure(&label, "map_reads", &own, "reads_per_second");
    let contest = Contest {
        name: "map_reads",
        peer: "minimap2",
        unit: "reads/s",
        bound: Bound::AtLeast(0.8),
        theirs: &theirs,
        ours: &ours,
    };
    let mut rows = contest.hold(stage.alternations)?;
    let share = || Ok(Figures::from([(format!("{label}, at their origin"), share_at_origin(&sam, count)?)]));
    let own_share = || {
        let share = find(&metrics, "reads_at_origin", &[])?;
        Ok(Figures::from([(format!("{label}, at their origin"), share)]))
    };
    let contest = Contest {
        name: "map_reads",
        peer: "minimap2",
        unit: "share",
        bound: Bound::AtLeast(0.995),
        theirs: &share,
        ours: &own_share,
    };
    rows.extend(contest.hold(1)?);
    Ok(rows)
}

/// Reads in a FASTQ file.
fn names(path: &Path) -> anyhow::Result<usize> {
    Ok(warpforge_bio::formats::read_nucleotides(path)?.len())
}

/// Part of the reads whose primary record shares a tenth of what it and the origin in its name cover.
fn share_at_origin(sam: &Path, count: f64) -> anyhow::Result<f64> {
    let text = std::fs::read_to_string(sam)?;
    let mut right = 0;
    for line in text.lines().filter(|line| !line.starts_with('@')) {
        let fields: Vec<&str> = line.split('\t').collect();
        let [name, flags, _, position, _, cigar, ..] = fields[..] else { continue };
        let flags: u32 = flags.parse()?;
        if flags & (0x4 | 0x100 | 0x800) != 0 {
            continue;
        }
        right += usize::from(
            is_at_origin(name, flags & 0x10 != 0, position.parse()?, cigar).context(name.to_owned())?,
        );
    }
    Ok(right as f64 / count)
}

/// Whether a mapping overlaps the origin that a simulated read has in its name: `readN_START_END_STRAND`.
fn is_at_origin(name: &str, reverse: bool, position: usize, cigar: &str) -> Option<bool> {
    let mut parts = name.rsplit('_');
    let strand = parts.next()?;
    let end: usize = parts.next()?.parse().ok()?;
    let start: usize = parts.next()?.parse().ok()?;
    let first = position.checked_sub(1)?;
    let last = first + reference_length(cigar)?;
    let both = last.min(end).saturating_sub(first.max(start));
    let either = last.max(end) - first.min(start);
    Some((strand == "-") == reverse && 10 * both > either)
}

/// Bases of the reference that a CIGAR text covers.
fn reference_length(cigar: &str) -> Option<usize> {
    let mut length = 0;
    let mut digits = String::new();
    for letter in cigar.chars() {
        if letter.is_ascii_digit() {
            digits.push(letter);
            continue;
        }
        let count: usize = digits.parse().ok()?;
        digits.clear();
        if matches!(letter, 'M' | 'D' | 'N' | '=' | 'X') {
            length += count;
        }
    }
    Some(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_read_from_names() {
        assert_eq!(reference_length("5S10M2I3D4="), Some(17));
        assert_eq!(is_at_origin("read7_100_250_-", true, 105, "150M"), Some(true));
        assert_eq!(is_at_origin("read7_100_250_-", false, 105, "150M"), Some(false));
        assert_eq!(is_at_origin("read7_100_250_+", false, 1000, "150M"), Some(false));
        assert_eq!(is_at_origin("other", false, 1000, "150M"), None);
    }
}

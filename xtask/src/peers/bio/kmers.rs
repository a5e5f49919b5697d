//! `kmer_count` beside kmc and jellyfish.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, bail};

use super::{Source, Stage, output, seconds, stage_seconds};
use crate::peers::table::{Bound, Contest, Figures, Row};

/// K-mers per second from the file to the counts, with equal histograms.
pub(super) fn hold(stage: &Stage) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for source in stage.sources("kmer_count", &["ecoli", "chr20"])? {
        rows.extend(hold_data(stage, &source)?);
    }
    Ok(rows)
}

fn hold_data(stage: &Stage, source: &Source) -> anyhow::Result<Vec<Row>> {
    let params = source.with(&[]);
    let (folder, _) = stage.export("kmer_count", &params)?;
    let input = source.path.clone().unwrap_or_else(|| folder.join("reads.fq").display().to_string());
    let is_fasta = !input.contains(".fq") && !input.contains(".fastq");
    let label = format!("k = 31, {}", source.label);
    let threads = stage.threads.to_string();
    let own = histogram(&std::fs::read_to_string(folder.join("histogram.txt"))?)?;
    let total: u64 = own.iter().map(|(times, kmers)| times * kmers).sum();
    let database = folder.join("kmc");
    let kmc = || {
        let mut command = Command::new("kmc");
        command.args(["-k31", "-ci1", "-cs1000000000", &format!("-t{threads}")]);
        command.arg(if is_fasta { "-fm" } else { "-fq" }).arg(&input).arg(&database).arg(&folder);
        let seconds = seconds(&mut command)?;
        let table = folder.join("kmc.txt");
        let mut tools = Command::new("kmc_tools");
        output(tools.args(["transform"]).arg(&database).args(["histogram"]).arg(&table).arg("-cx10000"))?;
        compare("kmc", &own, &histogram(&std::fs::read_to_string(table)?)?)?;
        Ok(seconds)
    };
    let plain = unzipped(&input, &folder)?;
    let jellyfish = || {
        let counts = folder.join("counts.jf");
        let mut command = Command::new("jellyfish");
        command.args(["count", "-m", "31", "-C", "-s", "100M", "-t", &threads, "-o"]);
        let seconds = seconds(command.arg(&counts).arg(&plain))?;
        let table = output(Command::new("jellyfish").args(["histo", "-h", "10000"]).arg(&counts))?;
        compare("jellyfish", &own, &histogram(&table)?)?;
        Ok(seconds)
    };
    let ours = || {
        let metrics = stage.measure("kmer_count", &params)?;
        let stages = ["read", "scatter", "count"].map(|name| stage_seconds(&metrics, name));
        let seconds = stages.into_iter().sum::<anyhow::Result<f64>>()?;
        Ok(Figures::from([(label.clone(), total as f64 / seconds)]))
    };
    let mut rows = Vec::new();
    for (peer, run) in [("kmc", &kmc as &dyn Fn() -> anyhow::Result<f64>), ("jellyfish", &jellyfish)] {
        let theirs = || Ok(Figures::from([(label.clone(), total as f64 / run()?)]));
        let contest = Contest {
            name: "kmer_count",
            peer,
            unit: "k-mers/s",
            bound: Bound::AtLeast(1.0),
            theirs: &theirs,
            ours: &ours,
        };
        rows.extend(contest.hold(stage.alternations)?);
    }
    Ok(rows)
}

/// jellyfish reads no gzip; it gets the file unpacked, and that time is not counted.
fn unzipped(input: &str, folder: &Path) -> anyhow::Result<std::path::PathBuf> {
    if !input.ends_with(".gz") {
        return Ok(input.into());
    }
    let plain = folder.join("plain.fa");
    let records = warpforge_bio::formats::read_nucleotides(Path::new(input))?;
    let records = records.iter().map(|record| (record.name.as_str(), record.codes.as_slice()));
    warpforge_bio::formats::write_fasta(&plain, records)?;
    Ok(plain)
}

type Histogram = BTreeMap<u64, u64>;

fn histogram(text: &str) -> anyhow::Result<Histogram> {
    let mut histogram = Histogram::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let mut numbers = line.split_whitespace().map(str::parse);
        let (Some(Ok(times)), Some(Ok(kmers))) = (numbers.next(), numbers.next()) else {
            bail!("no histogram: {line}");
        };
        histogram.insert(times, kmers);
    }
    histogram.retain(|_, kmers| *kmers > 0);
    histogram.first_key_value().context("an empty histogram")?;
    Ok(histogram)
}

/// Both histograms up to what the tools do not clip.
fn compare(peer: &str, ours: &Histogram, theirs: &Histogram) -> anyhow::Result<()> {
    let below = |histogram: &Histogram| -> Histogram {
        histogram.range(1..9_999).map(|(times, kmers)| (*times, *kmers)).collect()
    };
    if below(ours) != below(theirs) {
        bail!("the histogram of {peer} differs from ours");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histograms_are_read_and_compared() {
        let one = histogram("1 10\n2\t5\n3 0\n").unwrap();
        assert_eq!(one, Histogram::from([(1, 10), (2, 5)]));
        assert!(compare("x", &one, &one).is_ok());
        assert!(compare("x", &one, &Histogram::from([(1, 10), (2, 6)])).is_err());
        assert!(histogram("").is_err());
        assert!(histogram("what").is_err());
    }
}

//! KMC and Jellyfish as peers of `kmer_count`: from the same file to their counts.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use warpforge_bio::formats::read_nucleotides;

use super::kmer_count::{input, settings};
use super::workload::bad_data;
use crate::benchmark::{BenchmarkError, MetricKey, Peer, RunContext, scratch_folder};
use crate::external::{LONGEST_RUN, Tool, execute};
use crate::record::Params;

/// A program that counts k-mers.
#[derive(Debug)]
pub(super) struct KmerPeer {
    name: &'static str,
    description: &'static str,
}

/// KMC, on disk.
pub(super) const KMC: KmerPeer =
    KmerPeer { name: "kmc", description: "from the file to its database; Debian package kmc" };

/// Jellyfish, in memory.
pub(super) const JELLYFISH: KmerPeer =
    KmerPeer { name: "jellyfish", description: "from the file to its table; Debian package jellyfish" };

impl KmerPeer {
    fn tool(&self) -> Result<Tool, BenchmarkError> {
        Tool::on_path(&[self.name], self.name)
    }

    /// Refuses what the program cannot read.
    fn check(&self, file: &Path) -> Result<(), BenchmarkError> {
        let zipped = file.extension().is_some_and(|extension| extension == "gz");
        match zipped && self.name == JELLYFISH.name {
            true => Err(BenchmarkError::NotPossible("jellyfish reads no gzip".to_owned())),
            false => Ok(()),
        }
    }

    /// How the k-mers of a file are counted into a folder.
    fn command(&self, tool: &Tool, file: &Path, k: usize, threads: usize, folder: &Path) -> Command {
        let mut command = Command::new(tool.path());
        if self.name == KMC.name {
            let name = file.to_string_lossy();
            let form = if name.contains(".fq") || name.contains(".fastq") { "-fq" } else { "-fm" };
            command.args([format!("-k{k}"), "-ci1".to_owned(), "-cs1000000000".to_owned()]);
            command.args([format!("-t{threads}"), form.to_owned()]);
            command.arg(file).arg(folder.join("kmc")).arg(folder);
        } else {
            command.args([
                "count",
                "-m",
                &k.to_string(),
                "-C",
                "-s",
                "100M",
                "-t",
                &threads.to_string(),
                "-o",
            ]);
            command.arg(folder.join("counts.jf")).arg(file);
        }
        command
    }

    /// The k-mers that it has counted in all.
    fn total(
        &self,
        tool: &Tool,
        printed: &str,
        folder: &Path,
        stop: &dyn Fn() -> bool,
    ) -> Result<u64, BenchmarkError> {
        let total = if self.name == KMC.name {
            number(printed, "Total no. of k-mers")
        } else {
            let mut command = Command::new(tool.path());
            command.arg("stats").arg(folder.join("counts.jf"));
            number(&execute(command, LONGEST_RUN, stop)?, "Total")
        };
        total.ok_or_else(|| {
            BenchmarkError::Failed(format!("{} does not say how many k-mers it counted", self.name))
        })
    }
}

impl Peer for KmerPeer {
    fn name(&self) -> &'static str {
        self.name
    }

    fn description(&self) -> &'static str {
        self.description
    }

    fn prepare(&self, params: &Params) -> Result<(), BenchmarkError> {
        let (common, _) = settings(params)?;
        common.data.as_deref().map_or(Ok(()), |file| self.check(file))?;
        self.tool().map(drop)
    }

    fn run(&self, context: &mut RunContext<'_>) -> Result<(), BenchmarkError> {
        let (common, k) = settings(context.params())?;
        let tool = self.tool()?;
        // KMC has no option for it; its help begins with it.
        let argument = if self.name == KMC.name { "--help" } else { "--version" };
        if let Ok(version) = tool.version(argument) {
            context.version(version.trim_matches(|letter: char| !letter.is_ascii_alphanumeric()));
        }
        context.begin(self.name);
        let scratch = scratch_folder()?;
        let file = input(&common, scratch.path())?;
        let expected = windows(&file, k)?;
        let stop = || context.stopped();
        let mut rates = Vec::new();
        let begin = Instant::now();
        while rates.is_empty() || begin.elapsed() < context.time() {
            let folder = scratch_folder()?;
            let command = self.command(&tool, &file, k, common.threads, folder.path());
            let turn = Instant::now();
            let printed = execute(command, LONGEST_RUN, &stop)?;
            let seconds = turn.elapsed().as_secs_f64();
            let total = self.total(&tool, &printed, folder.path(), &stop)?;
            if total != expected {
                let name = self.name;
                return Err(BenchmarkError::Failed(format!(
                    "{name} counted {total} k-mers, there are {expected}"
                )));
            }
            rates.push(total as f64 / seconds);
        }
        let key = MetricKey::more_is_better("kmers_per_second", "k-mers/s").tag("k", k);
        context.record(common.tag(key), rates)
    }
}

/// The number behind a name and a colon.
fn number(printed: &str, name: &str) -> Option<u64> {
    let line = printed.lines().find_map(|line| line.trim().strip_prefix(name)?.trim().strip_prefix(':'))?;
    line.trim().parse().ok()
}

/// The k-mers of a file: windows without an unknown base.
fn windows(file: &Path, k: usize) -> Result<u64, BenchmarkError> {
    let records = read_nucleotides(file).map_err(bad_data)?;
    let runs = records.iter().flat_map(|record| record.codes.split(|&code| code >= 4));
    Ok(runs.map(|run| (run.len() + 1).saturating_sub(k) as u64).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_are_read() {
        let kmc = "1st stage: 0.1s\n\nStats:\n   No. of k-mers below min. threshold :            0\n   \
                   Total no. of k-mers                :      1733333\n";
        assert_eq!(number(kmc, "Total no. of k-mers"), Some(1_733_333));
        assert_eq!(number("Unique:    5\nDistinct:  7\nTotal:     12\n", "Total"), Some(12));
        assert_eq!(number("Total: many", "Total"), None);
    }

    #[test]
    fn unknown_bases_divide_the_windows() {
        let file = tempfile::Builder::new().suffix(".fa").tempfile().unwrap();
        std::fs::write(file.path(), ">a\nACGTNACG\n>b\nAC\n").unwrap();
        assert_eq!(windows(file.path(), 3).unwrap(), 2 + 1);
    }

    #[test]
    fn jellyfish_reads_no_gzip() {
        assert!(matches!(JELLYFISH.check(Path::new("reads.fq.gz")), Err(BenchmarkError::NotPossible(_))));
        assert!(
            KMC.check(Path::new("reads.fq.gz")).is_ok() && JELLYFISH.check(Path::new("reads.fq")).is_ok()
        );
    }
}

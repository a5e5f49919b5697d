//! minimap2 as a peer of `map_reads`: the same reads to the same genome, with base-level alignments.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use warpforge_bio::map::ReadKind;

use super::map_reads::{self, Settings};
use crate::benchmark::{BenchmarkError, MetricKey, Peer, RunContext, scratch_folder};
use crate::external::{LONGEST_RUN, Tool, execute};
use crate::record::Params;

/// Reads that must be mapped: minimap2 maps nearly all of them.
const LEAST_MAPPED: f64 = 0.9;

/// The peer.
#[derive(Debug)]
pub(super) struct Minimap2;

impl Peer for Minimap2 {
    fn name(&self) -> &'static str {
        "minimap2"
    }

    fn description(&self) -> &'static str {
        "the same reads with base-level alignments, without the time to load the index; Debian package minimap2"
    }

    fn prepare(&self, params: &Params) -> Result<(), BenchmarkError> {
        Settings::from(params)?;
        tool().map(drop)
    }

    fn run(&self, context: &mut RunContext<'_>) -> Result<(), BenchmarkError> {
        let settings = Settings::from(context.params())?;
        let tool = tool()?;
        context.version(tool.version("--version")?);
        context.begin(self.name());
        let (reference, _, reads) = settings.workload()?;
        let folder = scratch_folder()?;
        map_reads::export(folder.path(), &reference, &reads)?;
        let file = |name: &str| folder.path().join(name);
        let write_empty = std::fs::write(file("empty.fq"), "");
        write_empty.map_err(|error| BenchmarkError::Failed(format!("cannot write empty.fq: {error}")))?;
        let run = |arguments: &[&Path]| {
            let mut command = Command::new(tool.path());
            let preset = match settings.kind {
                ReadKind::Short => "sr",
                ReadKind::Long => "map-ont",
            };
            command.args(["-a", "-x", preset, "-t", &settings.common.threads.to_string()]).args(arguments);
            let begin = Instant::now();
            execute(command, LONGEST_RUN, &|| context.stopped())?;
            Ok::<_, BenchmarkError>(begin.elapsed().as_secs_f64())
        };
        let (index, sam) = (file("index.mmi"), file("mapped.sam"));
        run(&["-d".as_ref(), &index, &file("reference.fa")])?;
        let mut rates = Vec::new();
        let begin = Instant::now();
        while rates.is_empty() || begin.elapsed() < context.time() {
            // Loading the index is not mapping: a run on no reads is taken off.
            let load = run(&["-o".as_ref(), &file("empty.sam"), &index, &file("empty.fq")])?;
            let whole = run(&["-o".as_ref(), &sam, &index, &file("reads.fq")])?;
            rates.push(reads.len() as f64 / (whole - load).max(1e-3));
        }
        check(&sam, reads.len())?;
        let key = MetricKey::more_is_better("reads_per_second", "reads/s");
        let key = key.tag("reads", context.text("reads"));
        context.record(settings.common.tag(key), rates)
    }
}

fn tool() -> Result<Tool, BenchmarkError> {
    Tool::on_path(&["minimap2"], "minimap2")
}

/// Refuses the rate of a run that did not map the reads.
fn check(sam: &Path, reads: usize) -> Result<(), BenchmarkError> {
    let text = std::fs::read_to_string(sam)
        .map_err(|error| BenchmarkError::Failed(format!("minimap2 wrote no result: {error}")))?;
    let mapped = mapped(&text);
    let share = mapped as f64 / reads.max(1) as f64;
    if share < LEAST_MAPPED {
        return Err(BenchmarkError::Failed(format!("minimap2 mapped {mapped} of {reads} reads")));
    }
    Ok(())
}

/// Primary alignments in a SAM file.
fn mapped(sam: &str) -> usize {
    let flags = |line: &str| line.split('\t').nth(1)?.parse::<u32>().ok();
    let records = sam.lines().filter(|line| !line.starts_with('@'));
    // Unmapped, secondary or supplementary.
    records.filter_map(flags).filter(|flags| flags & (0x4 | 0x100 | 0x800) == 0).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_primary_alignments_count() {
        let sam = "@SQ\tSN:chr1\tLN:9\na\t0\tchr1\t1\nb\t16\tchr1\t2\nc\t4\t*\t0\na\t256\tchr1\t5\na\t2048\tchr1\t7\n";
        assert_eq!(mapped(sam), 2);
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("mapped.sam");
        let error = check(&file, 2).unwrap_err().to_string();
        assert!(error.contains("wrote no result"), "{error}");
        std::fs::write(&file, sam).unwrap();
        check(&file, 2).unwrap();
        let error = check(&file, 3).unwrap_err().to_string();
        assert!(error.contains("2 of 3"), "{error}");
    }
}

//! `disk_io`: sequential and random reads and writes past the page cache.

mod fio;

use std::path::{Path, PathBuf};

use warpforge_probes::disk::{
    BLOCK_ALIGNMENT, DiskError, Observation, Operation, Pattern, ScratchFile, Workload, measure,
};

use super::spec;
use crate::benchmark::{Benchmark, BenchmarkError, MetricKey, Peer, RunContext, int, text};
use crate::record::{BenchmarkComponent, BenchmarkSpec, ParamValue, Params};
use crate::suites::percentiles;

/// Bytes of a block that is read or written at random.
const RANDOM_BLOCK_BYTES: usize = 4096;

/// More blocks in flight than any disk's queue takes.
const MAX_QUEUE_DEPTH: i64 = 1024;

/// The largest block, and the most memory for all blocks in flight.
const MAX_BLOCK_BYTES: i64 = 64 << 20;
const MAX_BYTES_IN_FLIGHT: i64 = 1 << 30;

/// The benchmark.
#[derive(Debug)]
pub(super) struct DiskIo;

impl Benchmark for DiskIo {
    fn spec(&self) -> BenchmarkSpec {
        let description = "Direct sequential and random 4 KiB reads and writes of a file of its own: MB/s, IOPS and \
                           latency percentiles. `directory` is where the file is made, without a name (default: \
                           the user's cache folder); `block_bytes` is the sequential block.";
        spec(
            "disk_io",
            BenchmarkComponent::Storage,
            10,
            description,
            &[
                ("directory", ParamValue::Text(String::new())),
                ("file_bytes", ParamValue::Int(512 << 20)),
                ("block_bytes", ParamValue::Int(128 << 10)),
                ("queue_depth", ParamValue::Int(32)),
            ],
        )
    }

    fn takes(&self) -> Vec<(&'static str, String)> {
        let alignment = BLOCK_ALIGNMENT;
        vec![
            ("directory", "a folder; empty for the user's cache folder".to_owned()),
            ("file_bytes", format!("`block_bytes` and more, a multiple of {alignment}")),
            ("block_bytes", format!("{alignment} to {MAX_BLOCK_BYTES}, a multiple of {alignment}")),
            ("queue_depth", format!("1 to {MAX_QUEUE_DEPTH}")),
        ]
    }

    fn peers(&self) -> &'static [&'static dyn Peer] {
        &[&fio::Fio]
    }

    fn prepare(&self, params: &Params) -> Result<(), BenchmarkError> {
        let settings = Settings::from(params)?;
        Ok(ScratchFile::create(&settings.directory, settings.file_bytes).map(drop)?)
    }

    fn run(&self, context: &mut RunContext<'_>) -> Result<(), BenchmarkError> {
        let settings = Settings::from(context.params())?;
        let workloads = workloads(&settings);
        context.plan(workloads.len());
        let file = ScratchFile::create(&settings.directory, settings.file_bytes)?;
        if !file.lay_out(&|| context.stopped())? {
            return Err(BenchmarkError::Stopped);
        }
        measure(&file, &workloads[0], context.burn_in(), &|| context.stopped())?;
        for (index, workload) in workloads.iter().enumerate() {
            context.begin(&format!("{} {} {}", workload.pattern, workload.operation, workload.queue_depth));
            let seen = measure(&file, workload, context.share(), &|| context.stopped())?;
            if index == 0
                && let Some(reason) = &seen.fallback
            {
                context.warn(format!(
                    "{reason}: a thread for each operation in flight took its place, which costs more processor time"
                ));
            }
            report(context, workload, &seen)?;
        }
        Ok(())
    }
}

/// The parameters, checked.
struct Settings {
    directory: PathBuf,
    file_bytes: u64,
    block_bytes: usize,
    queue_depth: usize,
}

impl Settings {
    fn from(params: &Params) -> Result<Self, BenchmarkError> {
        let alignment = BLOCK_ALIGNMENT as i64;
        let within = |name, least: i64, most: i64, step: i64| {
            let value = int(params, name);
            if (least..=most).contains(&value) && value % step == 0 {
                return Ok(value);
            }
            let multiple = if step > 1 { format!(", a multiple of {step}") } else { String::new() };
            Err(BenchmarkError::BadInput(format!(
                "`{name}` is {value}: it takes {least} to {most}{multiple}"
            )))
        };
        let queue_depth = within("queue_depth", 1, MAX_QUEUE_DEPTH, 1)?;
        let block_bytes = within("block_bytes", alignment, MAX_BLOCK_BYTES, alignment)?;
        let file_bytes = within("file_bytes", block_bytes, i64::MAX, alignment)?;
        if block_bytes * queue_depth > MAX_BYTES_IN_FLIGHT {
            return Err(BenchmarkError::BadInput(format!(
                "`queue_depth` times `block_bytes` is {}: at most {MAX_BYTES_IN_FLIGHT} bytes may be in flight",
                block_bytes * queue_depth
            )));
        }
        Ok(Self {
            directory: directory(text(params, "directory"), |name| {
                std::env::var_os(name).map(PathBuf::from)
            })?,
            file_bytes: file_bytes as u64,
            block_bytes: block_bytes as usize,
            queue_depth: queue_depth as usize,
        })
    }
}

/// The folder that was named, or the user's cache folder, or their home if that does not exist.
fn directory(named: &str, variable: impl Fn(&str) -> Option<PathBuf>) -> Result<PathBuf, BenchmarkError> {
    if !named.is_empty() {
        return Ok(named.into());
    }
    let absolute = |name| variable(name).filter(|path| path.is_absolute());
    let home = absolute("HOME");
    let cache = absolute("XDG_CACHE_HOME").or_else(|| home.as_ref().map(|home| home.join(".cache")));
    cache.into_iter().chain(home).find(|path| Path::is_dir(path)).ok_or_else(|| {
        BenchmarkError::NotPossible(
            "there is no cache or home folder for the test file; name one with the parameter `directory`"
                .to_owned(),
        )
    })
}

/// What is measured, in order: first the whole file in large blocks, then small ones, alone and many in flight.
fn workloads(settings: &Settings) -> Vec<Workload> {
    let Settings { block_bytes, queue_depth, .. } = *settings;
    let both = [Operation::Read, Operation::Write];
    let sequential =
        both.map(|operation| Workload { pattern: Pattern::Sequential, operation, block_bytes, queue_depth });
    let depths = if queue_depth == 1 { vec![1] } else { vec![1, queue_depth] };
    let random = both.into_iter().flat_map(|operation| {
        depths.iter().map(move |&queue_depth| Workload {
            pattern: Pattern::Random,
            operation,
            block_bytes: RANDOM_BLOCK_BYTES,
            queue_depth,
        })
    });
    sequential.into_iter().chain(random).collect()
}

/// Reports the metrics of one workload.
fn report(
    context: &mut RunContext<'_>,
    workload: &Workload,
    seen: &Observation,
) -> Result<(), BenchmarkError> {
    let tagged = |key: MetricKey| {
        key.tag("pattern", workload.pattern)
            .tag("operation", workload.operation)
            .tag("queue_depth", workload.queue_depth)
            .tag("engine", seen.engine)
    };
    let megabytes = workload.block_bytes as f64 / 1e6;
    let throughput = seen.rates.iter().map(|rate| rate * megabytes).collect();
    context.record(tagged(MetricKey::more_is_better("throughput", "MB/s")), throughput)?;
    if workload.pattern == Pattern::Random {
        context.record(tagged(MetricKey::more_is_better("iops", "IOPS")), seen.rates.clone())?;
    }
    percentiles::record(context, "latency", &seen.latencies, tagged)
}

/// A folder that is none is the user's mistake; one that will not do is the machine's nature.
impl From<DiskError> for BenchmarkError {
    fn from(error: DiskError) -> Self {
        let message = error.to_string();
        match error {
            DiskError::BadFolder { .. } => Self::BadInput(message),
            DiskError::NoSpace { .. } | DiskError::NotDirect { .. } | DiskError::System { .. } => {
                Self::NotPossible(message)
            }
            _ => Self::Failed(message),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suites::testing::{out_of_range, with};

    fn params(overrides: &[(&str, ParamValue)]) -> Params {
        with(&DiskIo, overrides)
    }

    #[test]
    fn parameters_out_of_range_are_named_with_what_is_accepted() {
        for (name, value, accepted) in [
            ("queue_depth", 0, "1 to 1024"),
            ("queue_depth", 1025, "1 to 1024"),
            ("block_bytes", 1000, "4096 to 67108864, a multiple of 4096"),
            ("file_bytes", 4096, "131072 to"),
            ("file_bytes", -1, "131072 to"),
        ] {
            out_of_range(&DiskIo, name, value, accepted);
        }
        let deep = [("queue_depth", ParamValue::Int(1024)), ("block_bytes", ParamValue::Int(2 << 20))];
        let error = DiskIo.prepare(&params(&deep)).unwrap_err().to_string();
        assert!(error.contains("2147483648"), "{error}");
    }

    #[test]
    fn a_missing_folder_is_bad_input_and_an_absurd_size_is_not_possible() {
        let folder = tempfile::tempdir().unwrap();
        let path = |path: &Path| ("directory", ParamValue::Text(path.display().to_string()));
        let missing = DiskIo.prepare(&params(&[path(&folder.path().join("no"))])).unwrap_err();
        assert!(matches!(missing, BenchmarkError::BadInput(_)), "{missing}");
        let huge = ("file_bytes", ParamValue::Int(i64::MAX / 4096 * 4096));
        let error = DiskIo.prepare(&params(&[path(folder.path()), huge])).unwrap_err();
        assert!(matches!(error, BenchmarkError::NotPossible(_)), "{error}");
    }

    #[test]
    fn the_folder_is_the_named_one_or_the_cache_or_the_home() {
        let home = tempfile::tempdir().unwrap();
        let variable = |name: &str| (name == "HOME").then(|| home.path().to_owned());
        assert_eq!(directory("here", variable).unwrap(), Path::new("here"));
        assert_eq!(directory("", variable).unwrap(), home.path());
        std::fs::create_dir(home.path().join(".cache")).unwrap();
        assert_eq!(directory("", variable).unwrap(), home.path().join(".cache"));
        let relative = |name: &str| Some(if name == "HOME" { home.path().to_owned() } else { "x".into() });
        assert_eq!(directory("", relative).unwrap(), home.path().join(".cache"));
        assert!(matches!(directory("", |_| None), Err(BenchmarkError::NotPossible(_))));
    }
}

//! What the benchmarks of this suite share: parameters and data.

use std::path::{Path, PathBuf};

use warpforge_bio::formats::{FormatError, read_nucleotides};
use warpforge_bio::map::Reference;
use warpforge_bio::{available_threads, sets, simulate};

use crate::benchmark::{BenchmarkError, MetricKey, RunContext, int, text};
use crate::record::{
    BenchmarkComponent, BenchmarkId, BenchmarkKind, BenchmarkSpec, ParamValue, Params, params,
};
use crate::suites::stages::Tagged;
pub(super) use crate::suites::stages::{StageTimes, measure, report_memory, timed};
pub(super) use crate::suites::values::{bad_value, within};

/// How much work a benchmark does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Size {
    /// Seconds.
    Small,
    /// Tens of seconds.
    Medium,
    /// Minutes.
    Large,
}

impl Size {
    /// The value for this size.
    pub(super) fn pick<T>(self, small: T, medium: T, large: T) -> T {
        match self {
            Self::Small => small,
            Self::Medium => medium,
            Self::Large => large,
        }
    }

    pub(super) fn name(self) -> &'static str {
        self.pick("small", "medium", "large")
    }
}

/// The parameters that every benchmark has, checked.
#[derive(Debug, Clone)]
pub(super) struct Common {
    pub(super) size: Size,
    pub(super) threads: usize,
    pub(super) seed: u64,
    /// A file of real data; `None` for generated data.
    pub(super) data: Option<PathBuf>,
    /// Where inputs and results are written for other tools.
    pub(super) export: Option<PathBuf>,
}

impl Common {
    pub(super) fn from(params: &Params) -> Result<Self, BenchmarkError> {
        let bad = |name: &str, reason: &str| {
            bad_value(name, &params.get(name).map(ToString::to_string).unwrap_or_default(), reason)
        };
        let size = match text(params, "size") {
            "small" => Size::Small,
            "medium" => Size::Medium,
            "large" => Size::Large,
            _ => return Err(bad("size", "it takes small, medium or large")),
        };
        let threads = match int(params, "threads") {
            0 => available_threads(),
            threads => usize::try_from(threads)
                .ok()
                .filter(|&threads| threads <= 4096)
                .ok_or_else(|| bad("threads", "it takes 0 (all) to 4096"))?,
        };
        let seed = u64::try_from(int(params, "seed")).map_err(|_| bad("seed", "a seed is not negative"))?;
        let data = match text(params, "data") {
            "" => None,
            data => Some(sets::locate(data).map_err(|reason| bad("data", &reason))?),
        };
        let export = match text(params, "export") {
            "" => None,
            folder if Path::new(folder).is_dir() => Some(PathBuf::from(folder)),
            _ => return Err(bad("export", "there is no such folder")),
        };
        Ok(Self { size, threads, seed, data, export })
    }

    /// The genome: the first sequences of the file, or a generated one of this length.
    pub(super) fn genome(&self, length: usize) -> Result<Reference, BenchmarkError> {
        let sequences = match &self.data {
            Some(path) => {
                let records = read_nucleotides(path).map_err(bad_data)?;
                records.into_iter().map(|record| (record.name, record.codes)).collect()
            }
            None => vec![("chr1".to_owned(), simulate::genome(length, self.seed))],
        };
        Reference::new(sequences).map_err(|error| BenchmarkError::BadInput(format!("data: {error}")))
    }

    /// The longest sequence of a reference, which reads of this length are simulated from.
    pub(super) fn longest(reference: &Reference, read: usize) -> Result<usize, BenchmarkError> {
        let length = |&contig: &usize| reference.sequence(contig).len();
        let longest = (0..reference.names().len()).max_by_key(length).unwrap_or(0);
        if length(&longest) < read {
            return Err(BenchmarkError::BadInput(format!(
                "data: the longest sequence, `{}`, has {} bases; reads of {read} bases are taken from it",
                reference.names()[longest],
                length(&longest)
            )));
        }
        Ok(longest)
    }

    /// The tags of every metric: what the figure depends on besides the machine.
    pub(super) fn tag(&self, key: MetricKey) -> MetricKey {
        let data = self.data.as_ref().and_then(|path| path.file_name());
        let data = data.map_or_else(|| "generated".to_owned(), |name| name.to_string_lossy().into_owned());
        key.tag("size", self.size.name()).tag("data", data).tag("threads", self.threads)
    }
}

impl Tagged for Common {
    fn tag(&self, key: MetricKey) -> MetricKey {
        Self::tag(self, key)
    }
}

/// A parameter that is an odd number of a range.
pub(super) fn odd_within(
    params: &Params,
    name: &str,
    least: i64,
    most: i64,
) -> Result<usize, BenchmarkError> {
    let refused = |value| bad_value(name, &value, &format!("it takes an odd number from {least} to {most}"));
    let value = int(params, name);
    within(params, name, least, most).ok().filter(|value| value % 2 == 1).ok_or_else(|| refused(value))
}

/// An unreadable data file is the user's to mend.
#[expect(clippy::needless_pass_by_value, reason = "for `map_err`")]
pub(super) fn bad_data(error: FormatError) -> BenchmarkError {
    BenchmarkError::BadInput(format!("data: {error}"))
}

/// An export that cannot be written is a failure.
#[expect(clippy::needless_pass_by_value, reason = "for `map_err`")]
pub(super) fn bad_export(error: FormatError) -> BenchmarkError {
    BenchmarkError::Failed(format!("export: {error}"))
}

/// What the common parameters take, and its own.
pub(super) fn takes(own: &[(&'static str, String)]) -> Vec<(&'static str, String)> {
    let common = [
        ("size", "small, medium or large"),
        ("threads", "1 to 4096; 0 for all"),
        ("seed", "a whole number, 0 or more"),
        ("data", "a file, or the name of a known data set; empty for generated data"),
        ("export", "a folder for inputs and results; empty for none"),
    ];
    common.map(|(name, what)| (name, what.to_owned())).into_iter().chain(own.iter().cloned()).collect()
}

/// A specification of this suite: the common parameters and its own.
pub(super) fn spec(name: &str, description: &str, own: &[(&str, ParamValue)]) -> BenchmarkSpec {
    let common = [
        ("size", ParamValue::Text("small".to_owned())),
        ("threads", ParamValue::Int(0)),
        ("seed", ParamValue::Int(1)),
        ("data", ParamValue::Text(String::new())),
        ("export", ParamValue::Text(String::new())),
    ];
    BenchmarkSpec {
        components: vec![BenchmarkComponent::Cpu],
        description: Some(format!(
            "{description} `size` is small, medium or large; `data` is a file or a data set's name instead of generated \
             data; `export` is a folder for inputs and results."
        )),
        default_duration_seconds: Some(15),
        params: Some(params(&[&common, own].concat())),
        ..BenchmarkId::new("biobench", name).spec(BenchmarkKind::Domain)
    }
}

/// Reports a share, such as recall, once.
pub(super) fn report_share(
    context: &mut RunContext<'_>,
    common: &Common,
    name: &str,
    share: f64,
) -> Result<(), BenchmarkError> {
    context.record(common.tag(MetricKey::more_is_better(name, "share")), vec![share])
}

/// The failure of a gate: what was asked for and what was found.
pub(super) fn require(what: &str, found: f64, least: f64) -> Result<(), BenchmarkError> {
    if found >= least {
        return Ok(());
    }
    Err(BenchmarkError::Failed(format!("wrong answer: {what} is {found:.4}, at least {least:.4} is right")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gate_says_what_it_wanted() {
        let error = require("recall", 0.5, 0.98).unwrap_err().to_string();
        assert!(error.contains("recall is 0.5000") && error.contains("0.9800"), "{error}");
        assert!(require("recall", 0.98, 0.98).is_ok());
    }
}

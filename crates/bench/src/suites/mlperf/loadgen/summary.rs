//! LoadGen's own result: `mlperf_log_summary.txt`.

use std::collections::BTreeMap;
use std::path::Path;

use crate::benchmark::BenchmarkError;

/// The file.
pub(in super::super) const FILE: &str = "mlperf_log_summary.txt";
/// The file with the answers of a test of accuracy.
pub(in super::super) const ACCURACY: &str = "mlperf_log_accuracy.json";

/// What LoadGen says about a test.
#[derive(Debug, Clone, PartialEq)]
pub(in super::super) struct Summary {
    /// Lines `name : value` that end in a number; units in parentheses belong to the name.
    figures: BTreeMap<String, f64>,
    /// `Result is`; absent in tests of accuracy.
    pub(in super::super) valid: Option<bool>,
    /// The conditions that are not satisfied.
    pub(in super::super) missed: Vec<String>,
    /// What LoadGen recommends.
    pub(in super::super) advice: Vec<String>,
    errors: bool,
}

impl Summary {
    /// The summary in a folder of logs.
    ///
    /// # Errors
    /// That there is none, as after a test that LoadGen gave up.
    pub(in super::super) fn read(folder: &Path) -> Result<Self, BenchmarkError> {
        let path = folder.join(FILE);
        let text = std::fs::read_to_string(&path).map_err(|error| {
            BenchmarkError::Failed(format!("LoadGen left no {}: {error}", path.display()))
        })?;
        Ok(Self::parse(&text))
    }

    pub(in super::super) fn parse(text: &str) -> Self {
        let mut summary = Self {
            figures: BTreeMap::new(),
            valid: None,
            missed: Vec::new(),
            advice: Vec::new(),
            errors: false,
        };
        for line in text.lines() {
            if let Some((name, value)) = line.split_once(':') {
                let (name, value) = (name.trim(), value.trim());
                match value {
                    "NO" => summary.missed.push(name.to_owned()),
                    "VALID" | "INVALID" if name == "Result is" => summary.valid = Some(value == "VALID"),
                    _ => {
                        if let Ok(number) = value.parse() {
                            summary.figures.insert(name.to_owned(), number);
                        }
                    }
                }
            }
            summary.advice.extend(line.strip_prefix(" * ").map(str::to_owned));
            // `1 ERROR encountered.`; `No errors encountered` is none.
            summary.errors |= line.contains("ERROR");
        }
        summary
    }

    /// A figure by its name in the file.
    pub(in super::super) fn figure(&self, name: &str) -> Option<f64> {
        self.figures.get(name).copied()
    }

    /// A figure that every test of its kind has.
    ///
    /// # Errors
    /// That it is not there.
    pub(in super::super) fn needed(&self, name: &str) -> Result<f64, BenchmarkError> {
        self.figure(name)
            .ok_or_else(|| BenchmarkError::Failed(format!("LoadGen's {FILE} does not say `{name}`")))
    }

    /// Whether latencies are within their bound, where the scenario has one.
    pub(in super::super) fn within_bound(&self) -> bool {
        !self.missed.iter().any(|name| name.starts_with("Performance constraints"))
    }

    /// Why LoadGen calls the result INVALID, if it does.
    pub(in super::super) fn invalid(&self) -> Option<String> {
        if self.valid != Some(false) {
            return None;
        }
        let missed: Vec<String> =
            self.missed.iter().map(|name| name.trim_end_matches(" satisfied").to_lowercase()).collect();
        let advice = self.advice.first().map_or_else(String::new, |advice| format!(" ({advice})"));
        Some(format!("LoadGen calls the result INVALID: not satisfied are {}{advice}", missed.join(", ")))
    }

    /// Whether errors are in the detailed log beside those that make a result INVALID.
    pub(in super::super) fn has_errors(&self) -> bool {
        self.errors && self.valid != Some(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The beginnings of real files of LoadGen 6.0.17.
    const SERVER: &str = "\
================================================
MLPerf Results Summary
================================================
SUT name : PyFastSUT
Scenario : Server
Mode     : PerformanceOnly
Completed samples per second    : 505.93
Completed tokens per second: 1523.75
Result is : INVALID
  Performance constraints satisfied : Yes
  Min duration satisfied : Yes
  Min queries satisfied : Yes
  Early stopping satisfied: NO
Recommendations:
TTFT Early Stopping Result:

TPOT Early Stopping Result:
 * Run unsuccessful.
 * Processed 256 queries.

================================================
Additional Stats
================================================
Scheduled samples per second : 506.01
99.00 percentile latency (ns)   : 17260504

No warnings encountered during test.

No errors encountered during test.
";
    const STREAM: &str = "Scenario : SingleStream
90.0th percentile latency (ns) : 4151
Result is : VALID
  Min duration satisfied : Yes
QPS w/ loadgen overhead         : 160917.36
No warnings encountered during test.

1 ERROR encountered. See detailed log.
";

    #[test]
    fn figures_and_the_verdict_are_read() {
        let server = Summary::parse(SERVER);
        assert_eq!(server.figure("Completed samples per second"), Some(505.93));
        assert_eq!(server.figure("99.00 percentile latency (ns)"), Some(17_260_504.0));
        assert!(server.within_bound() && !server.has_errors());
        let reason = server.invalid().unwrap();
        assert!(reason.contains("early stopping") && reason.contains("Run unsuccessful"), "{reason}");
        assert!(server.needed("QPS w/ loadgen overhead").is_err());
        assert!(!Summary::parse(&SERVER.replacen("Yes", "NO", 1)).within_bound());

        let stream = Summary::parse(STREAM);
        assert_eq!(stream.invalid(), None);
        assert_eq!(stream.needed("QPS w/ loadgen overhead"), Ok(160_917.36));
        assert!(stream.has_errors());
    }

    #[test]
    fn a_missing_file_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        assert!(Summary::read(folder.path()).unwrap_err().to_string().contains(FILE));
    }
}

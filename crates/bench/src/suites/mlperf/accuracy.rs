//! Tests of accuracy: LoadGen asks for every sample once and logs the answers, which are judged here.

use std::path::Path;

use serde::Deserialize;

use super::loadgen::ACCURACY;
use super::measure::{Stage, TEST};
use crate::benchmark::{BenchmarkError, MetricKey};

/// An answer in LoadGen's log.
#[derive(Debug, Deserialize)]
struct Logged {
    qsl_idx: usize,
    /// Bytes as hexadecimal digits.
    data: String,
}

/// Runs the test and judges its answers.
pub(super) fn run(stage: &mut Stage<'_, '_>) -> Result<(), BenchmarkError> {
    let each = stage.calibrate(stage.system.batch())?;
    let mut conf = stage.settings.conf(stage.part(TEST));
    // The samples come at this rate in the scenario Server: one that the engine can hold.
    let rate = stage.settings.target.unwrap_or(0.5 * stage.system.batch() as f64 / each);
    conf += &format!("*.Server.target_qps = {rate}\n");
    stage.test("accuracy", conf)?;
    let answers = read(&stage.logs("accuracy").join(ACCURACY), stage.system.samples())?;
    let right = stage.system.accuracy(&answers)?;
    stage.record(MetricKey::more_is_better("accuracy_percent", "%"), vec![right])
}

/// The answers to all samples.
fn read(path: &Path, samples: usize) -> Result<Vec<Vec<u8>>, BenchmarkError> {
    let failed = |reason: String| BenchmarkError::Failed(format!("{}: {reason}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
    let logged: Vec<Logged> = serde_json::from_str(&text).map_err(|error| failed(error.to_string()))?;
    let mut answers: Vec<Option<Vec<u8>>> = vec![None; samples];
    for Logged { qsl_idx, data } in logged {
        let place =
            answers.get_mut(qsl_idx).ok_or_else(|| failed(format!("there is no sample {qsl_idx}")))?;
        let bytes = bytes(&data).ok_or_else(|| failed(format!("sample {qsl_idx} has `{data}`")))?;
        if place.replace(bytes).is_some() {
            return Err(failed(format!("sample {qsl_idx} was asked for twice")));
        }
    }
    let missing = answers.iter().position(Option::is_none);
    match missing {
        Some(sample) => Err(failed(format!("sample {sample} was never asked for"))),
        None => Ok(answers.into_iter().flatten().collect()),
    }
}

fn bytes(digits: &str) -> Option<Vec<u8>> {
    let pair = |at: usize| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
    (0..digits.len()).step_by(2).map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sample_must_be_answered_once() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let read = |lines: &str, samples| {
            std::fs::write(file.path(), format!("[\n{lines}\n]\n")).unwrap();
            read(file.path(), samples).map_err(|error| error.to_string())
        };
        let line =
            |at: usize, data: &str| format!(r#"{{ "seq_id" : 0, "qsl_idx" : {at}, "data" : "{data}" }}"#);
        let both = format!("{},\n{}", line(1, "0A0b"), line(0, ""));
        assert_eq!(read(&both, 2).unwrap(), [vec![], vec![10, 11]]);
        assert!(read(&both, 3).unwrap_err().contains("sample 2 was never"));
        assert!(read(&both, 1).unwrap_err().contains("no sample 1"));
        assert!(read(&format!("{0},{0}", line(0, "")), 1).unwrap_err().contains("twice"));
        assert!(read(&line(0, "0"), 1).unwrap_err().contains("has `0`"));
        assert!(read(&line(0, "zz"), 1).unwrap_err().contains("has `zz`"));
        assert!(read("{", 1).is_err());
    }
}

//! PyTorch as a peer of `resnet50_train`: eager steps of the same model on the same threads.

use std::time::Duration;

use serde_json::json;

use super::failed;
use super::graph::{self, command};
use super::settings::Settings;
use crate::benchmark::{BenchmarkError, MetricKey, Peer, RunContext};
use crate::external::execute;
use crate::record::Params;
use crate::suites::stages::Tagged as _;

/// What PyTorch may take to start and to warm up beside the round's time.
const ALLOWANCE: Duration = Duration::from_secs(240);

/// The peer.
#[derive(Debug)]
pub(super) struct Torch;

impl Peer for Torch {
    fn name(&self) -> &'static str {
        "torch"
    }

    fn description(&self) -> &'static str {
        "eager training steps by PyTorch, with autocast for bf16; PyPI packages torch and torchvision"
    }

    fn prepare(&self, params: &Params) -> Result<(), BenchmarkError> {
        Settings::from(params)?;
        graph::python().map(drop)
    }

    fn run(&self, context: &mut RunContext<'_>) -> Result<(), BenchmarkError> {
        let settings = Settings::from(context.params())?;
        let python = graph::python()?;
        context.version(python.version("torch"));
        context.begin(self.name());
        let more = json!({"do": "time", "seconds": context.time().as_secs_f64()});
        let command = command(&python, &settings, &more);
        let printed = execute(command, context.time() + ALLOWANCE, &|| context.stopped())?;
        let rates = rates(&printed, settings.batch)?;
        let key = MetricKey::more_is_better("samples_per_second", "samples/s");
        context.record(settings.tag(key), rates)
    }
}

/// Images a second from the seconds of single steps.
fn rates(printed: &str, batch: usize) -> Result<Vec<f64>, BenchmarkError> {
    let seconds: Vec<f64> = serde_json::from_str(printed.trim())
        .map_err(|error| failed(format!("PyTorch printed no times: {error}")))?;
    Ok(seconds.iter().map(|seconds| batch as f64 / seconds).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_become_rates() {
        assert_eq!(rates("[0.5, 2.0]\n", 8).unwrap(), [16.0, 4.0]);
        assert!(rates("Traceback", 8).unwrap_err().to_string().contains("no times"));
    }
}

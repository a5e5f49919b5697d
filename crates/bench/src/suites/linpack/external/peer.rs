//! HPL programs as peers of `linpack_fp64_cpu`: the same order, panel width and threads.

use super::Settings;
use super::program::Program;
use crate::benchmark::{BenchmarkError, MetricKey, Peer, RunContext};
use crate::record::Params;
use crate::suites::linpack::fp64;

/// HPL by one program.
#[derive(Debug)]
pub(in super::super) struct HplPeer {
    program: Program,
    description: &'static str,
}

/// The HPC Challenge.
pub(in super::super) const HPCC: HplPeer =
    HplPeer { program: Program::Hpcc, description: "HPL of the HPC Challenge; Debian package hpcc" };

/// HPL itself.
pub(in super::super) const XHPL: HplPeer =
    HplPeer { program: Program::Xhpl, description: "HPL as it is built from its source; no package has it" };

impl HplPeer {
    fn settings(&self, params: &Params) -> Result<Settings, BenchmarkError> {
        let ours = fp64::settings_of(params)?;
        let (tool, program) = (self.program.on_path()?, self.program);
        Ok(Settings {
            tool,
            program,
            order: ours.problem.order,
            block: ours.block,
            ranks: 1,
            threads: ours.cpus.len(),
        })
    }
}

impl Peer for HplPeer {
    fn name(&self) -> &'static str {
        self.program.name()
    }

    fn description(&self) -> &'static str {
        self.description
    }

    fn prepare(&self, params: &Params) -> Result<(), BenchmarkError> {
        self.settings(params).map(drop)
    }

    fn run(&self, context: &mut RunContext<'_>) -> Result<(), BenchmarkError> {
        let settings = self.settings(context.params())?;
        context.plan(1);
        context.begin(self.name());
        let outcome = settings.outcome(&|| context.stopped())?;
        context.version(outcome.version.as_deref().unwrap_or("unknown"));
        let metrics = [
            (MetricKey::more_is_better("gflops", "GFLOP/s"), outcome.gflops),
            (MetricKey::less_is_better("seconds", "s"), outcome.seconds),
        ];
        for (key, value) in metrics {
            context.record(key.tag("n", settings.order), vec![value])?;
        }
        Ok(())
    }
}

//! `linpack_external`: HPL by a program that is installed or named by its path.

mod input;
mod output;
mod peer;
mod program;

use std::path::Path;

use super::spec;
use crate::benchmark::{Benchmark, BenchmarkError, MetricKey, RunContext, scratch_folder, text};
use crate::external::{LONGEST_RUN, Tool, execute};
use crate::record::{BenchmarkSpec, ParamValue, Params, params};
use crate::suites::values::within;
use output::Outcome;
pub(super) use peer::{HPCC, XHPL};
use program::Program;

const LARGEST_ORDER: i64 = 131_072;
const LARGEST_BLOCK: i64 = 4096;

/// The benchmark.
#[derive(Debug)]
pub(super) struct External;

impl Benchmark for External {
    fn spec(&self) -> BenchmarkSpec {
        let description = "HPL by an external program (hpcc, xhpl or Intel's xlinpack): its own rate and residual. \
                           `path` names the program, `ranks` MPI processes";
        let defaults = [
            ("path", ParamValue::Text(String::new())),
            ("n", ParamValue::Int(2048)),
            ("nb", ParamValue::Int(128)),
            ("ranks", ParamValue::Int(1)),
        ];
        spec("linpack_external", description, Some("hpcc"), params(&defaults))
    }

    fn takes(&self) -> Vec<(&'static str, String)> {
        vec![
            ("path", "a program: hpcc, xhpl or xlinpack; empty to look for one".to_owned()),
            ("n", format!("2 to {LARGEST_ORDER}")),
            ("nb", format!("1 to {LARGEST_BLOCK}")),
            ("ranks", "as many as there are processors and fewer".to_owned()),
        ]
    }

    fn prepare(&self, params: &Params) -> Result<(), BenchmarkError> {
        Settings::new(params).map(|_| ())
    }

    fn run(&self, context: &mut RunContext<'_>) -> Result<(), BenchmarkError> {
        let settings = Settings::new(context.params())?;
        context.plan(1);
        context.begin(settings.program.name());
        let outcome = settings.outcome(&|| context.stopped())?;
        settings.record(context, &outcome)
    }
}

/// The parameters, checked.
struct Settings {
    tool: Tool,
    program: Program,
    order: usize,
    block: usize,
    ranks: usize,
    threads: usize,
}

impl Settings {
    fn new(params: &Params) -> Result<Self, BenchmarkError> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let order = within(params, "n", 2, LARGEST_ORDER)?;
        let block = within(params, "nb", 1, LARGEST_BLOCK)?;
        let ranks = within(params, "ranks", 1, cores as i64)?;
        let (tool, program) = Program::find(text(params, "path"))?;
        if ranks > 1 && program == Program::Xlinpack {
            return Err(BenchmarkError::BadInput("ranks: xlinpack has threads and no ranks".to_owned()));
        }
        Ok(Self { tool, program, order, block, ranks, threads: cores / ranks })
    }

    /// Runs the program in the folder with its input, and returns what it printed.
    fn execute(&self, folder: &Path, stop: &dyn Fn() -> bool) -> Result<String, BenchmarkError> {
        let (name, text) = self.program.input(self.order, self.block, self.ranks);
        std::fs::write(folder.join(name), text)
            .map_err(|error| BenchmarkError::Failed(format!("cannot write {name}: {error}")))?;
        let mut command = self.program.command(&self.tool, self.ranks)?;
        let threads = self.threads.to_string();
        for variable in ["OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"] {
            command.env(variable, &threads);
        }
        command.current_dir(folder);
        execute(command, LONGEST_RUN, stop)
    }

    /// Runs the program in a folder of its own, and returns what came of it if its own check passed.
    fn outcome(&self, stop: &dyn Fn() -> bool) -> Result<Outcome, BenchmarkError> {
        let folder = scratch_folder()?;
        let printed = self.execute(folder.path(), stop)?;
        let outcome = self.program.parse(folder.path(), &printed)?;
        if outcome.passed {
            return Ok(outcome);
        }
        let residual = outcome.residual.map_or_else(|| "unknown".to_owned(), |value| format!("{value:e}"));
        let name = self.program.name();
        Err(BenchmarkError::Failed(format!("{name}'s own check failed: its residual is {residual}")))
    }

    fn record(&self, context: &mut RunContext<'_>, outcome: &Outcome) -> Result<(), BenchmarkError> {
        let metrics = [
            (MetricKey::more_is_better("gflops", "GFLOP/s"), Some(outcome.gflops)),
            (MetricKey::less_is_better("seconds", "s"), Some(outcome.seconds)),
            (MetricKey::less_is_better("residual", "1"), outcome.residual),
        ];
        for (key, value) in metrics {
            let key = key
                .tag("tool", self.program.name())
                .tag("version", outcome.version.as_deref().unwrap_or("unknown"))
                .tag("n", self.order)
                .tag("nb", self.block)
                .tag("ranks", self.ranks)
                .tag("threads", self.threads);
            if let Some(value) = value {
                context.record(key, vec![value])?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;

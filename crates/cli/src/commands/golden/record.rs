//! `warpt golden record`: PyTorch's pass.

use std::path::PathBuf;

use clap::Args;
use warpforge_golden_bench::{Description, Python, record};

use super::BenchmarkArgs;
use crate::exit::{Exit, Outcome};
use crate::term;

/// The Python where nobody names another.
const DEFAULT_PYTHON: &str = "python3";

/// Train with PyTorch and keep what another engine is judged by.
///
/// Nothing of warpt is in the numbers: a Python with torch, transformers and the package `warpforge` trains the model and
/// writes the folder. Losses, learning rates, gradients, activations, the checkpoint, metrics, the order of the data,
/// environment and timings are in it, and the exported graph for pass 2.
#[derive(Debug, Args)]
pub(crate) struct RecordArgs {
    #[command(flatten)]
    benchmark: BenchmarkArgs,
    /// The folder to write
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// The Python that has PyTorch [default: `python3`]
    #[arg(long, value_name = "PYTHON", env = "WARPFORGE_PYTHON")]
    python: Option<PathBuf>,
    /// Where PyTorch trains, as it calls it: `cpu`, `cuda`
    #[arg(long, value_name = "DEVICE", default_value = "cpu")]
    device: String,
}

pub(super) fn run(args: &RecordArgs) -> Outcome {
    let description = Description::find(&args.benchmark.benchmark)?;
    let plan = description.plan(args.benchmark.preset.as_deref(), &args.benchmark.overrides())?;
    plan.check_licences(&args.benchmark.accept_licence)?;
    let python = match &args.python {
        Some(interpreter) => {
            Python { interpreter: interpreter.clone(), named_by: "--python or WARPFORGE_PYTHON" }
        }
        None => Python { interpreter: DEFAULT_PYTHON.into(), named_by: "the default" },
    };
    record(&plan, &args.out, &python, &args.device)?;
    let (model, data) = (&plan.model.licence, &plan.data.licence);
    term::print(&format!(
        "{}: golden run of {}; licences: model {model}, data {data}\n",
        args.out.display(),
        plan.benchmark
    ))?;
    Ok(Exit::Pass)
}

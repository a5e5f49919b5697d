//! `warpt validate`: one run judged by a golden one.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use clap::Args;
use warpforge::{CompileOptions, Model, Precision};
use warpforge_golden::{
    DEFAULT_REPLAYS, Folder, Options, Tolerances, Validation, Verdict, bisect, explain, validate,
};
use warpforge_report::validation as render;
use warpforge_runtime::{Choice, choose};
use warpforge_tensor::io::input;

use crate::exit::{Exit, Failure, Outcome};
use crate::{output, term, values};

/// Where GitHub wants the summary of a step.
const GITHUB_SUMMARY: &str = "GITHUB_STEP_SUMMARY";

/// Compare what a model gave with a golden run, tensor by tensor, and find the first operation that differs.
///
/// Weights, activations, gradients, losses, metrics and outputs are found by the names of their files (safetensors, npy,
/// JSON) and judged by the tolerance of their class. With a model, operations out of tolerance are computed again by the
/// reference, to tell whether the error arose there or was inherited.
///
/// Exit codes: 0 everything matches (with --report-only: or not), 1 a mismatch, 2 bad input, 4 nothing could be
/// compared.
#[derive(Debug, Args)]
pub(crate) struct ValidateArgs {
    /// The folder of the run that is right
    #[arg(long, value_name = "DIR")]
    golden: PathBuf,
    /// The folder of the run that is judged
    #[arg(long, value_name = "DIR", alias = "warpforge")]
    candidate: PathBuf,
    /// Exit with 0 when something does not match
    #[arg(long)]
    report_only: bool,
    /// Exit with 1 when something does not match, which is the default
    #[arg(long, conflicts_with = "report_only")]
    fail_on_mismatch: bool,
    /// The model to replay operations with [default: the one that the golden run's manifest names]
    #[arg(long, value_name = "MODEL")]
    model: Option<PathBuf>,
    /// A run of the same in binary64: types narrower than 32 bits are judged by their distance from it
    #[arg(long, value_name = "DIR")]
    reference: Option<PathBuf>,
    /// Tolerances that differ from the usual ones, for classes and for names
    #[arg(long, value_name = "FILE.toml")]
    tolerances: Option<PathBuf>,
    /// Write the smallest part of the model that shows the first error to this folder, with its inputs
    #[arg(long, value_name = "DIR")]
    reduce: Option<PathBuf>,
    /// How many operations out of tolerance to replay, the first ones first
    #[arg(long, value_name = "N", default_value_t = DEFAULT_REPLAYS, value_parser = values::whole::<usize>)]
    replay: usize,
    /// Write JUnit XML to this file, a test case for each tensor; `-` is standard output
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Add a Markdown summary to this file [default: the one that $GITHUB_STEP_SUMMARY names]
    #[arg(long, value_name = "FILE", num_args = 0..=1)]
    summary: Option<Option<PathBuf>>,
    /// Print JSON for programs
    #[arg(long)]
    json: bool,
}

/// Validates, and writes what was found wherever it is wanted.
pub(crate) fn run(args: &ValidateArgs) -> Outcome {
    output::takes_stdout([("--junit", args.junit.as_deref())], args.json)?;
    output::check([args.junit.as_deref()])?;
    let summary = args.summary.as_ref().map(|path| summary_path(path.as_deref())).transpose()?;
    // A golden benchmark brings the tolerances of its description.
    let own = Some(args.golden.join("tolerances.toml")).filter(|path| path.is_file());
    let tolerances =
        args.tolerances.as_deref().or(own.as_deref()).map(tolerances).transpose()?.unwrap_or_default();
    // It is read only where something does not match, but a wrong name is wrong either way.
    if let Some(path) = args.model.as_ref().filter(|path| !path.is_file()) {
        return Err(Failure::bad_input(anyhow!("{}: there is no such model", path.display())));
    }
    let open = |path: &Path| Folder::open(path).map_err(Failure::bad_input);
    let (golden, candidate) = (open(&args.golden)?, open(&args.candidate)?);
    let reference = args.reference.as_deref().map(open).transpose()?;
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let options = Options { tolerances, reference: reference.as_ref(), threads };
    let mut validation = validate(&golden, &candidate, &options);
    if validation.verdict == Verdict::Fail {
        replay(args, &mut validation, &golden, &candidate)?;
    }
    write(args, summary.as_deref(), &validation)?;
    Ok(match validation.verdict {
        Verdict::Pass => Exit::Pass,
        Verdict::Inconclusive => Exit::Inconclusive,
        Verdict::Fail if args.report_only => {
            crate::term::tell!("the runs do not match; the exit code is 0 with --report-only");
            Exit::Pass
        }
        Verdict::Fail => Exit::CheckFailed,
    })
}

fn tolerances(path: &Path) -> Result<Tolerances, Failure> {
    let place = path.display().to_string();
    let text = input::read_text(path).with_context(|| place.clone()).map_err(Failure::bad_input)?;
    Tolerances::parse(&text, &place).map_err(Failure::bad_input)
}

/// Finds where errors come from, with the model that was named or the one beside the golden run.
fn replay(
    args: &ValidateArgs,
    validation: &mut Validation,
    golden: &Folder,
    candidate: &Folder,
) -> Result<(), Failure> {
    let model = match (&args.model, golden.model_file()) {
        (Some(path), _) => Model::load(path)?,
        (None, None) => return Ok(()),
        // Nobody asked for this one, so that it cannot be used is no reason to stop.
        (None, Some(path)) => match Model::load(&path) {
            Ok(model) => model,
            Err(error) => {
                validation.notes.push(format!("nothing was replayed: {error}"));
                return Ok(());
            }
        },
    };
    let weights: BTreeMap<_, _> =
        model.weights().map(|(name, tensor)| (name.to_owned(), tensor.clone())).collect();
    let model = warpforge_golden::Model {
        name: model.source().name(),
        entry: model.entry(),
        module: model.module(),
        weights: &weights,
    };
    explain(validation, golden, candidate, Some(&model), args.replay);
    let engine = engine(candidate).unwrap_or_else(|reason| {
        validation.notes.push(reason);
        None
    });
    let reduced = bisect(validation, golden, candidate, &model, engine.as_ref());
    let Some(folder) = &args.reduce else { return Ok(()) };
    match (reduced, &mut validation.bisection) {
        (Some(reduced), Some(bisection)) => {
            reduced.write(folder).map_err(|error| Failure::not_possible(anyhow!("{error}")))?;
            bisection.written = Some(folder.display().to_string());
        }
        _ => validation.notes.push("there is no error to reduce to a subgraph".to_owned()),
    }
    Ok(())
}

/// What the candidate was run on, where its manifest says so and it is here.
fn engine(candidate: &Folder) -> Result<Option<Choice>, String> {
    let Some(run) = candidate.manifest().and_then(|manifest| manifest.run.as_ref()) else { return Ok(None) };
    let options = || -> Result<CompileOptions, String> {
        let (device, tier) = (run.device.parse()?, Some(run.tier.parse()?));
        let precision = run.precision.parse::<Precision>().map_err(|error| error.to_string())?;
        Ok(CompileOptions { device, tier, precision, ..CompileOptions::default() })
    };
    options()
        .and_then(|options| choose(warpforge::backends(), &options).map_err(|error| error.to_string()))
        .map(Some)
        .map_err(|error| format!("clusters are not split on the candidate's engine: {error}"))
}

fn write(args: &ValidateArgs, summary: Option<&Path>, validation: &Validation) -> Result<(), Failure> {
    let taken = output::takes_stdout([("--junit", args.junit.as_deref())], args.json)?;
    if let Some(path) = &args.junit {
        let xml = render::junit(validation).map_err(Failure::not_possible)?;
        output::write(path, xml.as_bytes())?;
    }
    if let Some(path) = summary {
        output::written(path, append(path, &render::markdown(validation)))?;
    }
    if args.json {
        return term::print_json(validation);
    }
    term::print_beside(taken, &render::text(validation, term::screen(taken)))
}

/// The file for the summary: the one named, or the one that GitHub names.
fn summary_path(named: Option<&Path>) -> Result<PathBuf, Failure> {
    let github = || std::env::var_os(GITHUB_SUMMARY).filter(|path| !path.is_empty()).map(PathBuf::from);
    named
        .map(Path::to_owned)
        .or_else(github)
        .ok_or_else(|| Failure::bad_input(anyhow!("--summary needs a file: ${GITHUB_SUMMARY} is not set")))
}

/// Adds to a file: the steps of a job share theirs.
fn append(path: &Path, text: &str) -> std::io::Result<()> {
    std::fs::OpenOptions::new().create(true).append(true).open(path)?.write_all(text.as_bytes())
}

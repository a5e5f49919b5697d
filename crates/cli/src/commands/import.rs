//! `warpt import`: a PyTorch archive as a StableHLO model.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow, bail};
use clap::Args;
use serde_json::json;
use warpforge::Format;
use warpforge_fusion::Recipe;
use warpforge_fusion::precision::quantize::store_weights;
use warpforge_ir::legalize::legalize;
use warpforge_ir::print::{Form, printed};
use warpforge_ir::signature::Signature;
use warpforge_ir::{Func, Module, verify};
use warpforge_snakeburger::bytecode::{self, Target, Version};
use warpforge_snakegrinder::{ImportOptions, open};

use super::model;
use crate::exit::{Exit, Failure, Outcome};
use crate::{output, term};

/// Arguments of `warpt import`.
#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// An archive that `torch.export.save` wrote
    model: PathBuf,
    /// The file to write: StableHLO text, or bytecode if its name ends in `.bc`; `-` is standard output
    #[arg(short, long, value_name = "MODEL.mlir[.bc]")]
    output: PathBuf,
    /// Write the weights to this file and let `@main` take them as arguments, instead of as constants in the module
    #[arg(long, value_name = "W.safetensors")]
    weights: Option<PathBuf>,
    /// Store the weights of matrix products in few bits, by a quantization recipe: int8wo, int8dq, int4wo-GROUP,
    /// int4wo-GROUP-hqq, float8wo, float8dq-row or float8dq-tensor
    #[arg(long, value_name = "RECIPE", value_parser = str::parse::<Recipe>)]
    precision: Option<Recipe>,
    /// The shape of an input with dynamic dimensions, such as `input_ids=2x128`: the module is then for these shapes
    #[arg(long = "shape", value_name = "NAME=SHAPE", value_parser = parse_shape)]
    shapes: Vec<(String, Vec<u64>)>,
    /// Print what was written as JSON
    #[arg(long)]
    json: bool,
}

fn parse_shape(text: &str) -> anyhow::Result<(String, Vec<u64>)> {
    let Some((name, dims)) = text.split_once('=') else { bail!("expected NAME=SHAPE, such as x=2x128") };
    let dims = match dims {
        "" => Vec::new(),
        dims => dims
            .split('x')
            .map(|dim| dim.parse().with_context(|| format!("`{dim}` is no size")))
            .collect::<anyhow::Result<_>>()?,
    };
    Ok((name.to_owned(), dims))
}

/// Imports an archive; on any error nothing is written.
pub(crate) fn run(args: &ImportArgs) -> Outcome {
    let files = [("--output", Some(args.output.as_path())), ("--weights", args.weights.as_deref())];
    let taken = output::takes_stdout(files, args.json)?;
    output::check(files.map(|(_, path)| path))?;
    check_archive(&args.model)?;
    let refused = |error: warpforge_snakegrinder::Error| model::refused(&args.model, &error);
    let archive = open(&args.model).map_err(refused)?;
    let shapes: BTreeMap<String, Vec<u64>> = args.shapes.iter().cloned().collect();
    let shapes = (!shapes.is_empty()).then_some(shapes);
    let mut imported = archive.import(&ImportOptions { shapes }).map_err(refused)?;
    if let Some(recipe) = args.precision {
        let stored = store_weights(&mut imported.module, "main", &mut imported.weights, recipe)
            .map_err(|error| Failure::bad_input(anyhow!("--precision {recipe}: {error}")))?;
        if !args.json {
            term::remark(&format!("{} weights stored by {recipe}", stored.len()));
        }
    }
    check_shapes(args, &imported.module)?;
    let weights = model::weights_of(&imported);
    let (module, weights_file) = model::with_weights(imported, args.weights.as_deref(), &args.model)?;
    let is_artifact = args.output.extension().is_some_and(|extension| extension == "bc");
    // An artifact has no place for operations of CHLO.
    let module = if is_artifact { legal(module, &args.output)? } else { module };
    check(&module, &args.model)?;
    write(&module, &args.output, is_artifact)?;
    weights_file.map_or(Ok(()), model::WeightsFile::finish)?;
    report(args, &module, weights, taken)
}

/// Says of another model that it needs no import.
fn check_archive(path: &Path) -> Result<(), Failure> {
    // What is no file, or empty, is refused with the reason where it is opened.
    let has_bytes = std::fs::metadata(path).is_ok_and(|found| found.is_file() && found.len() > 0);
    match has_bytes.then(|| Format::of_file(path)) {
        None | Some(Err(_) | Ok(Format::Pt2)) => Ok(()),
        Some(Ok(_)) => Err(Failure::bad_input(anyhow!(
            "{}: not a PyTorch archive, which is a zip file that `torch.export.save` writes; `warpt run`, `opt` and \
             `check` read StableHLO as it is",
            path.display()
        ))),
    }
}

fn legal(module: Module, path: &Path) -> Result<Module, Failure> {
    legalize(module).map_err(|error| Failure::not_possible(anyhow!("{}: {error}", path.display())))
}

/// Writes a module as text or as a portable artifact.
fn write(module: &Module, path: &Path, is_artifact: bool) -> Result<(), Failure> {
    use warpforge_tensor::io::output::write_with;
    let written = if is_artifact {
        let artifact = bytecode::write(module, Target::Version(Version::CURRENT))
            .map_err(|error| Failure::not_possible(anyhow!("{}: {error}", path.display())))?;
        write_with(path, |file| file.write_all(&artifact))
    } else {
        let text = printed(module, Form::Pretty);
        write_with(path, |file| text.write_to(file))
    };
    output::written(path, written)
}

/// Refuses a shape for an input that the model has not.
fn check_shapes(args: &ImportArgs, module: &Module) -> Result<(), Failure> {
    let signature = module.function("main").map(Signature::of).unwrap_or_default();
    let inputs: Vec<&str> = signature.inputs().map(|(_, argument)| argument.name.as_str()).collect();
    match args.shapes.iter().find(|(name, _)| !inputs.contains(&name.as_str())) {
        Some((name, _)) => Err(super::no_such_input("--shape", name, &inputs)),
        None => Ok(()),
    }
}

/// What the importer made must be valid; if not, that is our mistake and nothing is written.
fn check(module: &Module, path: &Path) -> Result<(), Failure> {
    match verify(module).first() {
        None => Ok(()),
        Some(first) => {
            let what = format!(
                "{}: the imported module is not valid, which is a bug: {}",
                path.display(),
                first.message
            );
            Err(Failure::not_possible(anyhow!(what)))
        }
    }
}

fn report(args: &ImportArgs, module: &Module, (count, bytes): (usize, usize), taken: bool) -> Outcome {
    let body = module.function("main").and_then(Func::body);
    let operations = body.map_or(0, |body| module.block_ops(body).len());
    if args.json {
        let value = json!({
            "model": args.output,
            "operations": operations,
            "weights": count,
            "weight_bytes": bytes,
            "weights_file": args.weights,
        });
        term::print(&format!("{value:#}\n"))?;
        return Ok(Exit::Pass);
    }
    let weights = model::weights_text((count, bytes), args.weights.as_deref());
    let text = format!("{}: {operations} operations, {weights}\n", args.output.display());
    term::print_beside(taken, &text)?;
    Ok(Exit::Pass)
}

//! `warpt import`: a PyTorch archive as a StableHLO model.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow, bail};
use clap::Args;
use serde_json::json;
use warpforge::io::safetensors;
use warpforge_inventory::export::write_atomically_with;
use warpforge_ir::legalize::legalize;
use warpforge_ir::print::{Form, printed};
use warpforge_ir::{Func, Module, verify};
use warpforge_snakeburger::bytecode::{self, Target, Version};
use warpforge_snakegrinder::{ImportOptions, Imported, open};

use crate::exit::{Exit, Failure, Outcome};
use crate::term;

/// Arguments of `warpt import`.
#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// An archive that `torch.export.save` wrote
    model: PathBuf,
    /// The file to write: StableHLO text, or bytecode if its name ends in `.bc`
    #[arg(short, long, value_name = "MODEL.mlir[.bc]")]
    output: PathBuf,
    /// Write the weights to this file and let `@main` take them as arguments, instead of as constants in the module
    #[arg(long, value_name = "W.safetensors")]
    weights: Option<PathBuf>,
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
    let shown = args.model.display();
    let refused = |error: warpforge_snakegrinder::Error| Failure::bad_input(anyhow!("{shown}: {error}"));
    let archive = open(&args.model).map_err(refused)?;
    let shapes: BTreeMap<String, Vec<u64>> = args.shapes.iter().cloned().collect();
    let shapes = (!shapes.is_empty()).then_some(shapes);
    let imported = archive.import(&ImportOptions { shapes }).map_err(refused)?;
    let weights = (imported.weights.len(), bytes_of(&imported));
    let module = match &args.weights {
        None => imported.into_self_contained().map_err(refused)?,
        Some(path) => {
            // The module first looked at, then the files written: the weights are the larger part.
            check(&imported.module, &args.model)?;
            let tensors = imported.weights.iter().map(|(name, tensor)| (name.as_str(), tensor));
            safetensors::write(path, tensors).map_err(Failure::not_possible)?;
            imported.module
        }
    };
    let is_artifact = args.output.extension().is_some_and(|extension| extension == "bc");
    // An artifact has no place for operations of CHLO.
    let module = if is_artifact { legal(module, &args.output)? } else { module };
    check(&module, &args.model)?;
    write(&module, &args.output, is_artifact)?;
    report(args, &module, weights)
}

fn legal(module: Module, path: &Path) -> Result<Module, Failure> {
    legalize(module).map_err(|error| Failure::not_possible(anyhow!("{}: {error}", path.display())))
}

/// Writes a module as text or as a portable artifact.
fn write(module: &Module, path: &Path, is_artifact: bool) -> Result<(), Failure> {
    let written = if is_artifact {
        let artifact = bytecode::write(module, Target::Version(Version::CURRENT))
            .map_err(|error| Failure::not_possible(anyhow!("{}: {error}", path.display())))?;
        write_atomically_with(path, |file| file.write_all(&artifact))
    } else {
        let text = printed(module, Form::Pretty);
        write_atomically_with(path, |file| text.write_to(file))
    };
    written.with_context(|| format!("cannot write {}", path.display())).map_err(Failure::not_possible)
}

fn bytes_of(imported: &Imported) -> usize {
    imported.weights.values().map(|tensor| tensor.bytes().len()).sum()
}

/// What the importer made must be valid; if not, that is our mistake and nothing is written.
fn check(module: &Module, path: &Path) -> Result<(), Failure> {
    match verify(module).first() {
        None => Ok(()),
        Some(first) => {
            let what =
                format!("{}: the imported module is not valid, which is a bug: {first:?}", path.display());
            Err(Failure::not_possible(anyhow!(what)))
        }
    }
}

fn report(args: &ImportArgs, module: &Module, (count, bytes): (usize, usize)) -> Outcome {
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
    let place = match &args.weights {
        Some(path) => format!("in {}", path.display()),
        None => "in the module".to_owned(),
    };
    let megabytes = bytes as f64 / 1e6;
    let output = args.output.display();
    term::print(&format!(
        "{output}: {operations} operations, {count} weights ({megabytes:.1} MB) {place}\n"
    ))?;
    Ok(Exit::Pass)
}

//! `warpt opt`: read a model, transform it, and write it in another form.

use std::path::PathBuf;

use anyhow::{Context as _, anyhow};
use clap::{Args, ValueEnum};
use warpforge_inventory::export;
use warpforge_ir::print;
use warpforge_ir::refine::refine;
use warpforge_snakeburger::text;

use super::model;
use crate::exit::{Exit, Failure, Outcome};
use crate::term;

/// Arguments of `warpt opt`.
#[derive(Debug, Args)]
pub(crate) struct OptArgs {
    /// An `.mlir` file; it may hold several modules separated by `// -----`
    file: PathBuf,
    /// What to write
    #[arg(long, value_enum, default_value_t = Emit::Stablehlo)]
    emit: Emit,
    /// Refine the shapes of `@main` for inputs of these types, such as `tensor<2x3xf32>,tensor<i32>`
    #[arg(long, value_name = "TYPES")]
    refine: Option<String>,
    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Emit {
    /// StableHLO text as StableHLO's own tools print it
    Stablehlo,
    /// The same in MLIR's generic form
    Generic,
}

/// Writes the modules of a file again.
pub(crate) fn run(args: &OptArgs) -> Outcome {
    let form = match args.emit {
        Emit::Stablehlo => print::Form::Pretty,
        Emit::Generic => print::Form::Generic,
    };
    let whole = model::read_text(&args.file)?;
    let types = args.refine.as_deref().map(text::parse_types).transpose();
    let types = types.map_err(|diagnostics| Failure::bad_input(anyhow!("--refine: {diagnostics}")))?;
    let mut printed = Vec::new();
    for (source, module) in model::modules(&args.file, &whole) {
        let mut module = module.map_err(|diagnostics| Failure::bad_input(anyhow!("{diagnostics}")))?;
        if let Some(types) = &types {
            module = refine(&module, "main", types)
                .map_err(|error| Failure::bad_input(anyhow!("{}", error.diagnostic().render(&source))))?;
        }
        printed.push(print::print_as(&module, form));
    }
    let text = printed.join("\n// -----\n\n");
    match &args.output {
        Some(path) => export::write_atomically(path, text.as_bytes())
            .with_context(|| format!("cannot write {}", path.display()))
            .map_err(Failure::not_possible)?,
        None => term::print(&text)?,
    }
    Ok(Exit::Pass)
}

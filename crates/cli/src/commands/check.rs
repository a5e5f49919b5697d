//! `warpt check`: parse and verify, every mistake with its place.

use std::path::PathBuf;

use clap::Args;
use warpforge_diag::Diagnostics;
use warpforge_ir::verify::verify;

use super::model;
use crate::exit::{Exit, Failure, Outcome};

/// Arguments of `warpt check`.
#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// An `.mlir` file; it may hold several modules separated by `// -----`
    file: PathBuf,
}

/// Parses and verifies the modules of a file; what is wrong goes to standard error.
pub(crate) fn run(args: &CheckArgs) -> Outcome {
    let whole = model::read_text(&args.file)?;
    let modules = model::modules(&args.file, &whole);
    if modules.is_empty() {
        return Err(Failure::bad_input(anyhow::anyhow!("{}: the file has no module", args.file.display())));
    }
    let mut sound = true;
    for (source, module) in modules {
        let mut diagnostics = Diagnostics::new(source);
        match module {
            Ok(module) => verify(&module).into_iter().for_each(|found| diagnostics.push(found)),
            Err(found) => diagnostics = found,
        }
        if !diagnostics.is_empty() {
            eprintln!("{diagnostics}");
        }
        sound &= !diagnostics.has_errors();
    }
    Ok(if sound { Exit::Pass } else { Exit::BadInput })
}

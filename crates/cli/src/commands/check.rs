//! `warpt check`: parse and verify, every mistake with its place.

use std::path::PathBuf;

use clap::Args;
use warpforge_diag::Diagnostics;
use warpforge_ir::verify::verify;

use super::model;
use crate::exit::{Exit, Outcome};

/// Arguments of `warpt check`.
#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// A StableHLO file or a PyTorch archive; text may hold several modules separated by `// -----`; `-` is standard
    /// input
    file: PathBuf,
}

/// Parses and verifies the modules of a file; what is wrong goes to standard error.
pub(crate) fn run(args: &CheckArgs) -> Outcome {
    let mut sound = true;
    for loaded in model::modules(&args.file, false)? {
        let mut diagnostics = Diagnostics::new(loaded.source);
        match loaded.module {
            Ok(module) => verify(&module).into_iter().for_each(|found| diagnostics.push(found)),
            Err(found) => diagnostics = found,
        }
        if !diagnostics.is_empty() {
            crate::term::tell!("{diagnostics}");
        }
        sound &= !diagnostics.has_errors();
    }
    Ok(if sound { Exit::Pass } else { Exit::BadInput })
}

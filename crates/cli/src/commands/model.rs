//! Reading the model files that commands are given.

use std::fmt::Display;
use std::path::Path;

use anyhow::anyhow;
use warpforge::Format;
use warpforge_diag::Source;
use warpforge_snakeburger::{Loaded, load_file, text};
use warpforge_snakegrinder::{self as snakegrinder, ImportOptions};

use crate::exit::Failure;

/// The modules of a file, each with its source, or what is wrong with it. A PyTorch archive is imported; its weights are
/// arguments.
pub(super) fn modules(path: &Path, keep_locations: bool) -> Result<Vec<Loaded>, Failure> {
    let refused = |error: &dyn Display| Failure::bad_input(anyhow!("{}: {error}", path.display()));
    if Format::of_file(path).map_err(|error| refused(&error))? == Format::Pt2 {
        let archive = snakegrinder::open(path).map_err(|error| refused(&error))?;
        let imported = archive.import(&ImportOptions::default()).map_err(|error| refused(&error))?;
        let source = Source::binary(path.display().to_string());
        return Ok(vec![Loaded { source, module: Ok(imported.module) }]);
    }
    let modules = load_file(path, &text::Options { keep_locations }).map_err(|error| refused(&error))?;
    if modules.is_empty() {
        return Err(Failure::bad_input(anyhow!("{}: the file has no module", path.display())));
    }
    Ok(modules)
}

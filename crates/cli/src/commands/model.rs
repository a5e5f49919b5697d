//! Reading the model files that commands are given.

use std::path::Path;

use anyhow::anyhow;
use warpforge_snakeburger::{Loaded, load_file, text};

use crate::exit::Failure;

/// The modules of a file, text or bytecode, each with its source, or what is wrong with it.
pub(super) fn modules(path: &Path, keep_locations: bool) -> Result<Vec<Loaded>, Failure> {
    let modules = load_file(path, &text::Options { keep_locations })
        .map_err(|error| Failure::bad_input(anyhow!("{}: {error}", path.display())))?;
    if modules.is_empty() {
        return Err(Failure::bad_input(anyhow!("{}: the file has no module", path.display())));
    }
    Ok(modules)
}

//! Reading the model files that commands are given.

use std::path::Path;

use anyhow::anyhow;
use warpforge_diag::{Diagnostics, Source};
use warpforge_ir::Module;
use warpforge_snakeburger::text;

use crate::exit::Failure;

/// Reads the text of an `.mlir` file.
pub(super) fn read_text(path: &Path) -> Result<String, Failure> {
    let bytes =
        std::fs::read(path).map_err(|error| Failure::bad_input(anyhow!("{}: {error}", path.display())))?;
    String::from_utf8(bytes).map_err(|error| {
        let offset = error.utf8_error().valid_up_to();
        Failure::bad_input(anyhow!("{}: not MLIR text: byte {offset} is not UTF-8", path.display()))
    })
}

/// The modules of a file, each with its source, or what is wrong with it.
pub(super) fn modules(path: &Path, whole: &str) -> Vec<(Source, Result<Module, Diagnostics>)> {
    let name = path.display().to_string();
    let chunks = text::chunks(whole).into_iter().filter(|chunk| !chunk.text.trim().is_empty());
    chunks
        .map(|chunk| {
            let source = Source::new(name.as_str(), chunk.text).with_first_line(chunk.first_line);
            let module = text::parse(&source, &text::Options::default());
            (source, module)
        })
        .collect()
}

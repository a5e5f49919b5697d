//! Files of modules, text or bytecode: which one is seen from the first bytes, not from the name.

use std::path::Path;

use warpforge_diag::{Diagnostic, Diagnostics, Source, Span};
use warpforge_ir::{Blob, Module};

use crate::text::Options;
use crate::{bytecode, text};

/// A module of a file, or what is wrong with it.
#[derive(Debug)]
pub struct Loaded {
    /// What positions in the module refer to.
    pub source: Source,
    /// The module.
    pub module: Result<Module, Diagnostics>,
}

/// Reads the modules of a file. Text may have several, separated by lines `// -----`; bytecode has one, and its
/// constants stay in the file, which is mapped.
///
/// # Errors
///
/// When the file cannot be opened or read. What is wrong in it is in the list.
pub fn load_file(path: &Path, options: &Options) -> std::io::Result<Vec<Loaded>> {
    let name = path.display().to_string();
    let mut start = Vec::new();
    std::io::Read::read_to_end(&mut std::io::Read::take(std::fs::File::open(path)?, 4), &mut start)?;
    if bytecode::is_bytecode(&start) {
        let bytes = warpforge_tensor::io::map_file(path).map_err(std::io::Error::other)?;
        return Ok(vec![load_bytecode(&name, &bytes, options)]);
    }
    Ok(load(&name, std::fs::read(path)?, options))
}

/// Reads the modules in bytes; `name` stands for the file in messages.
pub fn load(name: &str, bytes: Vec<u8>, options: &Options) -> Vec<Loaded> {
    if bytecode::is_bytecode(&bytes) {
        return vec![load_bytecode(name, &Blob::from(bytes), options)];
    }
    match String::from_utf8(bytes) {
        Ok(text) => load_text(name, text, options),
        Err(error) => {
            let offset = error.utf8_error().valid_up_to();
            let source = Source::binary(name);
            let message = "neither MLIR bytecode nor MLIR text: this is not UTF-8";
            let mut found = Diagnostics::new(source.clone());
            found.push(Diagnostic::error(Span::at(offset), message));
            vec![Loaded { source, module: Err(found) }]
        }
    }
}

/// Reads a module from bytecode; `name` stands for the file in messages.
pub fn load_bytecode(name: &str, bytes: &Blob, options: &Options) -> Loaded {
    let source = Source::binary(name);
    let module = bytecode::read(bytes, options).map_err(|error| {
        let mut found = Diagnostics::new(source.clone());
        found.push(Diagnostic::error(Span::at(error.offset()), error.kind().to_string()));
        found
    });
    Loaded { source, module }
}

fn load_text(name: &str, text: String, options: &Options) -> Vec<Loaded> {
    let parse = |source: Source| {
        let module = text::parse(&source, options);
        Loaded { source, module }
    };
    let chunks = text::chunks(&text);
    if let [only] = chunks.as_slice() {
        if only.text.trim().is_empty() {
            return Vec::new();
        }
        // Nothing is copied: constants make files of gigabytes.
        drop(chunks);
        return vec![parse(Source::new(name, text))];
    }
    chunks
        .into_iter()
        .filter(|chunk| !chunk.text.trim().is_empty())
        .map(|chunk| parse(Source::new(name, chunk.text).with_first_line(chunk.first_line)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load_str(bytes: &[u8]) -> Vec<Loaded> {
        load("m", bytes.to_vec(), &Options::default())
    }

    #[test]
    fn text_may_have_several_modules() {
        let loaded = load_str(b"func.func @f() {\n  return\n}\n// -----\n\n// -----\nnonsense\n");
        assert_eq!(loaded.len(), 2);
        assert!(loaded[0].module.is_ok());
        let found = loaded[1].module.as_ref().unwrap_err().to_string();
        assert!(found.starts_with("m:7:1: error:"), "{found}");
        assert!(load_str(b" \n").is_empty());
    }

    #[test]
    fn what_is_neither_text_nor_bytecode_is_refused() {
        let found = load_str(b"module\xff")[0].module.as_ref().unwrap_err().to_string();
        assert!(found.starts_with("m:byte 6: error: neither"), "{found}");
        let found = load_str(b"ML\xefR\x0dx")[0].module.as_ref().unwrap_err().to_string();
        assert_eq!(found, "m:byte 6: error: cut off: more bytes must follow here");
    }
}

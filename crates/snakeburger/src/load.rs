//! Files of modules, text or bytecode: which one is seen from the first bytes, not from the name.

use std::io::Read;
use std::path::Path;

use warpforge_diag::{Diagnostic, Diagnostics, Source, Span};
use warpforge_ir::{Blob, Module};

use crate::text::Options;
use crate::text::slim::{Constant, Slim, constants_in, cuts_of};
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
    let mut file = std::fs::File::open(path)?;
    let mut start = Vec::new();
    file.by_ref().take(4).read_to_end(&mut start)?;
    if bytecode::is_bytecode(&start) {
        let bytes = warpforge_tensor::io::map_file(path).map_err(std::io::Error::other)?;
        return Ok(vec![load_bytecode(&name, &bytes, options)]);
    }
    // The file may be a pipe, whose bytes are there once.
    let slim = Slim::read(start.as_slice().chain(file))?;
    Ok(load_text(&name, slim, options))
}

/// Reads the modules in bytes; `name` stands for the file in messages.
pub fn load(name: &str, bytes: Vec<u8>, options: &Options) -> Vec<Loaded> {
    if bytecode::is_bytecode(&bytes) {
        return vec![load_bytecode(name, &Blob::from(bytes), options)];
    }
    load_text(name, Slim { text: bytes, ..Slim::default() }, options)
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

fn load_text(name: &str, slim: Slim, options: &Options) -> Vec<Loaded> {
    let Slim { text, constants } = slim;
    let cuts = cuts_of(&constants);
    if let Some(offset) = memchr::memchr(0, &text) {
        return vec![not_text(name, offset, "a byte is zero", &constants)];
    }
    let text = match String::from_utf8(text) {
        Ok(text) => text,
        Err(error) => {
            let offset = error.utf8_error().valid_up_to();
            return vec![not_text(name, offset, "this is not UTF-8", &constants)];
        }
    };
    let parse = |source: Source, constants: Vec<Constant>| {
        let module = text::parse_slim(&source, constants, options);
        Loaded { source, module }
    };
    let chunks = text::chunks(&text);
    if let [only] = chunks.as_slice() {
        if only.text.trim().is_empty() {
            return Vec::new();
        }
        // Nothing is copied: constants make files of gigabytes.
        drop(chunks);
        return vec![parse(Source::new(name, text).with_cuts(cuts), constants)];
    }
    chunks
        .into_iter()
        .filter(|chunk| !chunk.text.trim().is_empty())
        .map(|chunk| {
            let inside = constants_in(&constants, chunk.offset..chunk.offset + chunk.text.len());
            let source = Source::new(name, chunk.text).with_first_line(chunk.first_line);
            parse(source.with_cuts(cuts_of(&inside)), inside)
        })
        .collect()
}

/// The error for bytes that are not text; the offset is in the text without its long constants.
fn not_text(name: &str, offset: usize, why: &str, constants: &[Constant]) -> Loaded {
    let before = constants.iter().filter(|constant| constant.offset <= offset);
    let offset = offset + before.map(|constant| constant.digits).sum::<usize>();
    let source = Source::binary(name);
    let mut found = Diagnostics::new(source.clone());
    let message = format!("neither MLIR bytecode nor MLIR text: {why}");
    found.push(Diagnostic::error(Span::at(offset), message));
    Loaded { source, module: Err(found) }
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
    #[cfg(unix)]
    fn an_endless_file_that_is_no_text_is_refused_at_once() {
        let loaded = load_file(Path::new("/dev/zero"), &Options::default()).unwrap();
        let found = loaded[0].module.as_ref().unwrap_err().to_string();
        assert!(found.starts_with("/dev/zero:byte 0: error: neither"), "{found}");
        let loaded = load_file(Path::new("/dev/urandom"), &Options::default()).unwrap();
        assert!(loaded[0].module.is_err());
    }

    #[test]
    fn what_is_neither_text_nor_bytecode_is_refused() {
        let found = load_str(b"module\xff")[0].module.as_ref().unwrap_err().to_string();
        assert!(found.starts_with("m:byte 6: error: neither"), "{found}");
        let found = load_str(b"ML\xefR\x0dx")[0].module.as_ref().unwrap_err().to_string();
        assert_eq!(found, "m:byte 6: error: cut off: more bytes must follow here");
    }
}

//! MLIR text.
//!
//! The parser works on the text itself, without a list of tokens: constants are most of a large file, and they go from
//! the text into their bytes in one step. Nesting is bounded, and every size is checked against the text that is there
//! before memory is taken for it.

mod attrs;
mod cursor;
mod custom;
mod decimal;
mod dense;
mod mesh;
mod numbers;
mod ops;
mod parser;
mod pieces;
mod recover;
mod resources;
pub(crate) mod slim;
mod stablehlo_attrs;
#[cfg(test)]
mod tests;
mod types;
mod unknown;

pub(crate) use cursor::{Cursor, MAX_DEPTH};
pub(crate) use types::apply_bounds;
use warpforge_diag::{Diagnostics, Source};
use warpforge_ir::{Attribute, Module, Type};

/// What the parser keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Whether `loc(…)` is kept and printed again.
    pub keep_locations: bool,
}

/// Reads a module.
///
/// # Errors
///
/// All that is not MLIR, each with its position.
pub fn parse(source: &Source, options: &Options) -> Result<Module, Diagnostics> {
    parse_slim(source, Vec::new(), options)
}

/// Reads a module whose long constants were taken out of the text.
pub(crate) fn parse_slim(
    source: &Source,
    constants: Vec<slim::Constant>,
    options: &Options,
) -> Result<Module, Diagnostics> {
    parser::Parser::new(source.text(), constants, *options).file().map_err(|found| {
        let mut diagnostics = Diagnostics::new(source.clone());
        found.into_iter().for_each(|diagnostic| diagnostics.push(diagnostic));
        diagnostics
    })
}

/// Reads one attribute, which is all of the text.
pub(crate) fn parse_attribute(text: &str) -> Result<Attribute, String> {
    parse_whole(text, parser::Parser::attribute)
}

/// Reads one type, which is all of the text.
pub(crate) fn parse_type(text: &str) -> Result<Type, String> {
    parse_whole(text, parser::Parser::ty)
}

fn parse_whole<'a, T>(
    text: &'a str,
    parse: impl FnOnce(&mut parser::Parser<'a>) -> cursor::Parse<T>,
) -> Result<T, String> {
    let mut parser = parser::Parser::new(text, Vec::new(), Options::default());
    let value = parse(&mut parser).map_err(|error| error.message)?;
    if parser.cur.at_end() { Ok(value) } else { Err(parser.cur.expected("the end").message) }
}

/// Reads a list of types with commas between them, such as `tensor<2x?xf32>, tensor<i32>`.
///
/// # Errors
///
/// The first thing that is no type, with its position.
pub fn parse_types(text: &str) -> Result<Vec<Type>, Diagnostics> {
    parser::Parser::new(text, Vec::new(), Options::default()).only_types().map_err(|error| {
        let mut diagnostics = Diagnostics::new(Source::new("types", text));
        diagnostics.push(*error);
        diagnostics
    })
}

/// One of the modules of a file that has several, separated by lines `// -----`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk<'a> {
    /// The line of the file that the chunk starts on, from 1.
    pub first_line: usize,
    /// The byte of the file that it starts at.
    pub offset: usize,
    /// The text.
    pub text: &'a str,
}

/// Cuts a file at its lines `// -----`. A file without them is one chunk.
pub fn chunks(text: &str) -> Vec<Chunk<'_>> {
    let mut chunks = Vec::new();
    let (mut start, mut first_line, mut offset, mut line) = (0, 1, 0, 1);
    while offset < text.len() {
        let next = memchr::memchr(b'\n', &text.as_bytes()[offset..]).map_or(text.len(), |at| offset + at + 1);
        line += 1;
        if text[offset..next].starts_with("// -----") {
            chunks.push(Chunk { first_line, offset: start, text: &text[start..offset] });
            (start, first_line) = (next, line);
        }
        offset = next;
    }
    chunks.push(Chunk { first_line, offset: start, text: &text[start..] });
    chunks
}

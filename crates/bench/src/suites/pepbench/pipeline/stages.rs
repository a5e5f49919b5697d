//! The steps of the pipeline, each on its own.

use std::borrow::Cow;
use std::io::Read as _;
use std::path::Path;

use crc32fast::Hasher;
use flate2::read::MultiGzDecoder;
use rustix::fs::{Advice, fadvise};
use serde::Deserialize;

use super::super::words::WordEncoder;
use crate::benchmark::BenchmarkError;

/// What batches look like.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    /// Tokens of a row.
    pub(super) length: usize,
    /// Rows of a batch.
    pub(super) batch: usize,
}

/// What all batches are together.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Totals {
    pub(super) samples: usize,
    /// Of text.
    pub(super) bytes: usize,
    pub(super) tokens: usize,
    pub(super) batches: usize,
    pub(super) checksum: u32,
}

/// The documents of a file as tokens.
#[derive(Debug, Default)]
pub(super) struct Tokens {
    documents: usize,
    bytes: usize,
    /// Of all documents, one after the other.
    ids: Vec<u32>,
}

fn wrong(path: &Path, reason: &dyn std::fmt::Display) -> BenchmarkError {
    BenchmarkError::BadInput(format!("{}: {reason}", path.display()))
}

/// The bytes of a file, from the disk where the system lets go of what it has in memory.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, BenchmarkError> {
    let read = || -> std::io::Result<Vec<u8>> {
        let mut file = std::fs::File::open(path)?;
        // A file system that keeps all files in memory cannot do it.
        let _ = fadvise(&file, 0, None, Advice::DontNeed);
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    read().map_err(|error| wrong(path, &error))
}

/// The documents in the bytes of a file.
pub(super) fn decode(path: &Path, bytes: Vec<u8>) -> Result<Vec<String>, BenchmarkError> {
    #[derive(Deserialize)]
    struct Line<'a> {
        #[serde(borrow)]
        text: Cow<'a, str>,
    }
    let name = path.to_string_lossy();
    let mut plain = Vec::new();
    let bytes = match name.ends_with(".gz") {
        true => {
            MultiGzDecoder::new(bytes.as_slice())
                .read_to_end(&mut plain)
                .map_err(|error| wrong(path, &error))?;
            plain
        }
        false => bytes,
    };
    let text = String::from_utf8(bytes).map_err(|error| wrong(path, &error))?;
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let document = |(at, line): (usize, &str)| match name.ends_with(".txt") {
        true => Ok(line.to_owned()),
        false => match serde_json::from_str::<Line<'_>>(line) {
            Ok(line) => Ok(line.text.into_owned()),
            Err(error) => Err(wrong(path, &format!("line {}: {error}", at + 1))),
        },
    };
    lines.map(document).collect()
}

/// The tokens of documents.
pub(super) fn tokenize(
    encoder: &mut WordEncoder<'_>,
    documents: &[String],
) -> Result<Tokens, BenchmarkError> {
    let mut tokens = Tokens { documents: documents.len(), ..Tokens::default() };
    for document in documents {
        encoder.encode(document, &mut tokens.ids)?;
        tokens.bytes += document.len();
    }
    Ok(tokens)
}

/// Packs tokens into rows without gaps, and rows into batches. What does not fill the last batch is dropped.
pub(super) struct Packer {
    shape: Shape,
    batch: Vec<u32>,
    hasher: Hasher,
    totals: Totals,
}

impl Packer {
    pub(super) fn new(shape: Shape) -> Self {
        Self { shape, batch: Vec::new(), hasher: Hasher::new(), totals: Totals::default() }
    }

    /// Adds the tokens of a file.
    pub(super) fn add(&mut self, tokens: &Tokens) {
        let size = self.shape.length * self.shape.batch;
        self.totals.samples += tokens.documents;
        self.totals.bytes += tokens.bytes;
        self.totals.tokens += tokens.ids.len();
        let mut rest = tokens.ids.as_slice();
        while !rest.is_empty() {
            let (now, later) = rest.split_at(rest.len().min(size - self.batch.len()));
            self.batch.extend(now);
            rest = later;
            if self.batch.len() == size {
                let bytes: Vec<u8> = self.batch.iter().flat_map(|id| id.to_le_bytes()).collect();
                self.hasher.update(&bytes);
                self.totals.batches += 1;
                self.batch.clear();
            }
        }
    }

    pub(super) fn finish(self) -> Totals {
        Totals { checksum: self.hasher.finalize(), ..self.totals }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packing_depends_on_the_tokens_alone() {
        let tokens = |ids: Vec<u32>| Tokens { documents: 1, bytes: 3, ids };
        let totals = |parts: &[Vec<u32>]| {
            let mut packer = Packer::new(Shape { length: 3, batch: 2 });
            parts.iter().for_each(|part| packer.add(&tokens(part.clone())));
            packer.finish()
        };
        let whole = totals(&[(0..20).collect()]);
        assert_eq!((whole.batches, whole.tokens), (3, 20));
        assert_eq!(totals(&[(0..7).collect(), (7..20).collect()]).checksum, whole.checksum);
        assert_ne!(totals(&[(7..20).collect(), (0..7).collect()]).checksum, whole.checksum);
    }
}

//! FASTA and FASTQ, plain or gzipped.

use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::{FormatError, FormatErrorKind};
use crate::{protein, seq};

/// A sequence of a file, as codes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SequenceRecord {
    /// Its name: the first word of the header line.
    pub name: String,
    /// Its bases or residues, as codes.
    pub codes: Vec<u8>,
    /// The Phred quality of each base; empty in FASTA.
    pub qualities: Vec<u8>,
}

/// Reads nucleotide sequences: letters of either case, U for T, and IUPAC ambiguity letters as unknown bases.
///
/// # Errors
/// If the file cannot be read, is malformed or truncated, or has letters that are no nucleotides.
pub fn read_nucleotides(path: &Path) -> Result<Vec<SequenceRecord>, FormatError> {
    open(path).and_then(parse_nucleotides).map_err(|kind| kind.at(path))
}

/// Reads protein sequences: the twenty letters of either case, B, Z, X and `*`; U, O and J as X.
///
/// # Errors
/// As for [`read_nucleotides`].
pub fn read_proteins(path: &Path) -> Result<Vec<SequenceRecord>, FormatError> {
    open(path).and_then(parse_proteins).map_err(|kind| kind.at(path))
}

fn open(path: &Path) -> Result<File, FormatErrorKind> {
    Ok(File::open(path)?)
}

/// As [`read_nucleotides`], from anything that can be read.
///
/// # Errors
/// As for [`read_nucleotides`].
pub fn parse_nucleotides(input: impl Read + Send) -> Result<Vec<SequenceRecord>, FormatErrorKind> {
    parse(input, |letter| seq::is_nucleotide(letter).then(|| seq::code(letter)))
}

/// As [`read_proteins`], from anything that can be read.
///
/// # Errors
/// As for [`read_nucleotides`].
pub fn parse_proteins(input: impl Read + Send) -> Result<Vec<SequenceRecord>, FormatErrorKind> {
    parse(input, protein::code)
}

fn parse(
    input: impl Read + Send,
    encode: impl Fn(u8) -> Option<u8>,
) -> Result<Vec<SequenceRecord>, FormatErrorKind> {
    let malformed = |error: needletail::errors::ParseError| FormatErrorKind::Malformed(error.to_string());
    let table: [Option<u8>; 256] = std::array::from_fn(|letter| encode(letter as u8));
    let mut reader = needletail::parse_fastx_reader(input).map_err(malformed)?;
    let mut records = Vec::new();
    while let Some(record) = reader.next() {
        let record = record.map_err(malformed)?;
        let name = name_of(record.id());
        let letters = record.raw_seq();
        let mut codes = Vec::with_capacity(letters.len());
        for &letter in letters {
            match table[letter as usize] {
                Some(code) => codes.push(code),
                None if matches!(letter, b'\r' | b'\n') => {}
                None => {
                    let position = codes.len() + 1;
                    return Err(FormatErrorKind::Letter { name, letter: letter.into(), position });
                }
            }
        }
        let mut qualities = Vec::new();
        if let Some(letters) = record.qual() {
            let letters = letters.strip_suffix(b"\r").unwrap_or(letters);
            if letters.len() != codes.len() || letters.iter().any(|&letter| !(33..=126).contains(&letter)) {
                return Err(FormatErrorKind::Malformed(format!(
                    "the qualities of `{name}` are not one printable letter a base"
                )));
            }
            qualities = letters.iter().map(|&letter| letter - 33).collect();
        }
        records.push(SequenceRecord { name, codes, qualities });
    }
    Ok(records)
}

fn name_of(header: &[u8]) -> String {
    let word = header.split(u8::is_ascii_whitespace).next().unwrap_or_default();
    String::from_utf8_lossy(word).into_owned()
}

/// Checks that no two sequences have one name, as a reference and a BAM header need it.
///
/// # Errors
/// With the first name that comes twice.
pub fn unique_names(records: &[SequenceRecord]) -> Result<(), FormatErrorKind> {
    let mut seen = std::collections::HashSet::new();
    match records.iter().find(|record| !seen.insert(record.name.as_str())) {
        Some(record) => Err(FormatErrorKind::DuplicateName(record.name.clone())),
        None => Ok(()),
    }
}

/// Writes FASTA of nucleotides, 80 letters a line; gzipped if the path ends in `.gz`.
///
/// # Errors
/// If the file cannot be written.
pub fn write_fasta<'a>(
    path: &Path,
    records: impl IntoIterator<Item = (&'a str, &'a [u8])>,
) -> Result<(), FormatError> {
    write(path, |out| {
        for (name, codes) in records {
            writeln!(out, ">{name}")?;
            for line in codes.chunks(80) {
                out.write_all(&seq::decode(line))?;
                out.write_all(b"\n")?;
            }
        }
        Ok(())
    })
}

/// Writes FASTQ of nucleotides: name, bases, qualities; gzipped if the path ends in `.gz`.
///
/// # Errors
/// If the file cannot be written.
pub fn write_fastq<'a>(
    path: &Path,
    records: impl IntoIterator<Item = (&'a str, &'a [u8], &'a [u8])>,
) -> Result<(), FormatError> {
    write(path, |out| {
        for (name, codes, qualities) in records {
            writeln!(out, "@{name}")?;
            out.write_all(&seq::decode(codes))?;
            out.write_all(b"\n+\n")?;
            let letters: Vec<u8> =
                (0..codes.len()).map(|i| qualities.get(i).map_or(b'!', |&q| q.min(93) + 33)).collect();
            out.write_all(&letters)?;
            out.write_all(b"\n")?;
        }
        Ok(())
    })
}

fn write(path: &Path, body: impl FnOnce(&mut dyn Write) -> std::io::Result<()>) -> Result<(), FormatError> {
    let all = || -> std::io::Result<()> {
        let file = BufWriter::new(File::create(path)?);
        if path.extension().is_some_and(|extension| extension == "gz") {
            let mut out = GzEncoder::new(file, Compression::fast());
            body(&mut out)?;
            out.finish()?.flush()
        } else {
            let mut out = file;
            body(&mut out)?;
            out.flush()
        }
    };
    all().map_err(|error| FormatErrorKind::from(error).at(path))
}

//! The files that laboratories have: FASTA and FASTQ (gzip too), BAM, VCF, in and out.
//!
//! The formats are read and written by the field's crates: needletail (FASTA, FASTQ), noodles (BAM, VCF). What is added here
//! is checks: a wrong letter, two sequences of one name or a truncated file is an error that says where.

mod bam;
mod fastx;
mod vcf;

pub use bam::{read_bam, write_bam};
pub use fastx::{
    SequenceRecord, parse_nucleotides, parse_proteins, read_nucleotides, read_proteins, unique_names,
    write_fasta, write_fastq,
};
pub use vcf::{read_vcf, write_vcf};

use std::path::{Path, PathBuf};

/// Why a file could not be read or written.
#[derive(Debug, thiserror::Error)]
#[error("{}: {kind}", path.display())]
pub struct FormatError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong.
    pub kind: FormatErrorKind,
}

/// What is wrong with a file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FormatErrorKind {
    /// It cannot be opened, read or written.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// It is not of its format, or ends in the middle.
    #[error("{0}")]
    Malformed(String),
    /// A sequence has a letter that none may have.
    #[error("sequence `{name}` has the letter `{letter}` at {position}")]
    Letter {
        /// The sequence.
        name: String,
        /// The letter.
        letter: char,
        /// Its position, from 1.
        position: usize,
    },
    /// Two sequences have one name.
    #[error("there are two sequences named `{0}`")]
    DuplicateName(String),
}

impl FormatErrorKind {
    pub(crate) fn at(self, path: &Path) -> FormatError {
        FormatError { path: path.to_owned(), kind: self }
    }
}

#[cfg(test)]
mod tests;

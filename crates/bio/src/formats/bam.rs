//! BAM, by noodles.

use std::fs::File;
use std::io;
use std::num::NonZeroUsize;
use std::path::Path;

use noodles_bam as bam;
use noodles_core::Position;
use noodles_sam::alignment::RecordBuf;
use noodles_sam::alignment::io::Write as _;
use noodles_sam::alignment::record::cigar::Op as CigarOp;
use noodles_sam::alignment::record::cigar::op::Kind;
use noodles_sam::alignment::record::{Flags, MappingQuality};
use noodles_sam::alignment::record_buf::{QualityScores, Sequence};
use noodles_sam::header::record::value::Map;
use noodles_sam::header::record::value::map::{Header as HeaderMap, ReferenceSequence};

use super::{FormatError, FormatErrorKind};
use crate::align::banded::{Cigar, Op};
use crate::map::Reference;
use crate::seq::{decode, encode};
use crate::variants::AlignedRead;

/// Writes reads, sorted by contig and position, with a header that says so.
///
/// # Errors
/// If the file cannot be written.
pub fn write_bam(path: &Path, reference: &Reference, reads: &[AlignedRead]) -> Result<(), FormatError> {
    write(path, reference, reads).map_err(|error| FormatErrorKind::from(error).at(path))
}

fn write(path: &Path, reference: &Reference, reads: &[AlignedRead]) -> io::Result<()> {
    let header = header(reference)?;
    let mut writer = bam::io::Writer::new(File::create(path)?);
    writer.write_header(&header)?;
    for read in reads {
        writer.write_alignment_record(&header, &record(read))?;
    }
    writer.try_finish()
}

fn header(reference: &Reference) -> io::Result<noodles_sam::Header> {
    use noodles_sam::header::record::value::map::header::tag;
    let invalid =
        |error: &dyn std::fmt::Display| io::Error::new(io::ErrorKind::InvalidInput, error.to_string());
    let map = Map::<HeaderMap>::builder()
        .insert(tag::SORT_ORDER, "coordinate")
        .build()
        .map_err(|error| invalid(&error))?;
    let mut header = noodles_sam::Header::builder().set_header(map);
    for (contig, name) in reference.names().iter().enumerate() {
        // A sequence without bases cannot be in a header; no read is on it either.
        let length = NonZeroUsize::new(reference.sequence(contig).len()).unwrap_or(NonZeroUsize::MIN);
        header = header.add_reference_sequence(name.as_str(), Map::<ReferenceSequence>::new(length));
    }
    Ok(header.build())
}

fn record(read: &AlignedRead) -> RecordBuf {
    let mut flags = Flags::empty();
    flags.set(Flags::UNMAPPED, read.contig.is_none());
    flags.set(Flags::REVERSE_COMPLEMENTED, read.reverse);
    let mut builder = RecordBuf::builder()
        .set_name(read.name.as_str())
        .set_sequence(Sequence::from(decode(&read.bases)))
        .set_quality_scores(QualityScores::from(read.qualities.clone()));
    if let Some(contig) = read.contig {
        let kinds = read.cigar.steps().iter().map(|&(length, op)| {
            let kind = match op {
                Op::Match => Kind::Match,
                Op::Insert => Kind::Insertion,
                Op::Delete => Kind::Deletion,
                Op::Clip => Kind::SoftClip,
            };
            CigarOp::new(kind, length as usize)
        });
        builder = builder.set_reference_sequence_id(contig).set_cigar(kinds.collect());
        if let Some(start) = Position::new(read.position + 1) {
            builder = builder.set_alignment_start(start);
        }
        if let Some(quality) = MappingQuality::new(read.quality) {
            builder = builder.set_mapping_quality(quality);
        }
    }
    builder.set_flags(flags).build()
}

/// Reads all records; `=` and `X` are taken as matches, and hard clips and padding are dropped.
///
/// # Errors
/// If the file cannot be read, is truncated, or has skipped regions, which belong to spliced reads.
pub fn read_bam(path: &Path) -> Result<Vec<AlignedRead>, FormatError> {
    read(path).map_err(|kind| kind.at(path))
}

fn read(path: &Path) -> Result<Vec<AlignedRead>, FormatErrorKind> {
    let malformed = |error: io::Error| FormatErrorKind::Malformed(error.to_string());
    let mut reader = bam::io::Reader::new(File::open(path)?);
    let header = reader.read_header().map_err(malformed)?;
    let mut reads = Vec::new();
    for record in reader.record_bufs(&header) {
        let record = record.map_err(malformed)?;
        let name = record.name().map(ToString::to_string).unwrap_or_default();
        let mut cigar = Cigar::default();
        for op in record.cigar().as_ref() {
            let kind = match op.kind() {
                Kind::Match | Kind::SequenceMatch | Kind::SequenceMismatch => Op::Match,
                Kind::Insertion => Op::Insert,
                Kind::Deletion => Op::Delete,
                Kind::SoftClip => Op::Clip,
                Kind::HardClip | Kind::Pad => continue,
                Kind::Skip => {
                    return Err(FormatErrorKind::Malformed(format!("read `{name}` skips a region (N)")));
                }
            };
            cigar.push(op.len(), kind);
        }
        let bases = encode(record.sequence().as_ref());
        if !cigar.steps().is_empty() && cigar.query_length() != bases.len() {
            return Err(FormatErrorKind::Malformed(format!(
                "read `{name}` has {} bases and a CIGAR of {}",
                bases.len(),
                cigar.query_length()
            )));
        }
        let flags = record.flags();
        let contig = record.reference_sequence_id().filter(|_| !flags.is_unmapped());
        reads.push(AlignedRead {
            name,
            contig,
            position: record.alignment_start().map_or(0, |start| usize::from(start) - 1),
            quality: record.mapping_quality().map_or(255, u8::from),
            reverse: flags.is_reverse_complemented(),
            cigar,
            bases,
            qualities: record.quality_scores().as_ref().to_vec(),
        });
    }
    Ok(reads)
}

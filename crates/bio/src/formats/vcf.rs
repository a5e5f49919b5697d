//! VCF, by noodles.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Write as _};
use std::path::Path;

use noodles_core::Position;
use noodles_vcf as vcf;
use noodles_vcf::header::record::value::Map;
use noodles_vcf::header::record::value::map::{Contig, Format};
use noodles_vcf::variant::RecordBuf;
use noodles_vcf::variant::io::Write as _;
use noodles_vcf::variant::record::samples::keys::key;
use noodles_vcf::variant::record_buf::samples::sample::Value;
use noodles_vcf::variant::record_buf::{AlternateBases, Filters, Samples};

use super::{FormatError, FormatErrorKind};
use crate::map::Reference;
use crate::seq::{decode, encode};
use crate::variants::{Genotype, Variant};

/// The name of the individual in the files that are written.
const SAMPLE: &str = "sample";

/// Writes the calls of each sequence, with genotypes.
///
/// # Errors
/// If the file cannot be written.
pub fn write_vcf(path: &Path, reference: &Reference, calls: &[Vec<Variant>]) -> Result<(), FormatError> {
    write(path, reference, calls).map_err(|error| FormatErrorKind::from(error).at(path))
}

fn write(path: &Path, reference: &Reference, calls: &[Vec<Variant>]) -> io::Result<()> {
    let mut header = vcf::Header::builder().add_format(key::GENOTYPE, Map::<Format>::from(key::GENOTYPE));
    for (contig, name) in reference.names().iter().enumerate() {
        let mut map = Map::<Contig>::new();
        *map.length_mut() = Some(reference.sequence(contig).len());
        header = header.add_contig(name.as_str(), map);
    }
    let header = header.add_sample_name(SAMPLE).build();
    let mut writer = vcf::io::Writer::new(BufWriter::new(File::create(path)?));
    writer.write_header(&header)?;
    for (name, calls) in reference.names().iter().zip(calls) {
        for call in calls {
            writer.write_variant_record(&header, &record(name, call))?;
        }
    }
    writer.get_mut().flush()
}

fn record(contig: &str, call: &Variant) -> RecordBuf {
    let text = |codes: &[u8]| String::from_utf8_lossy(&decode(codes)).into_owned();
    let genotype = match call.genotype {
        Genotype::Heterozygous { .. } => "0/1",
        Genotype::Homozygous => "1/1",
    };
    let keys = [key::GENOTYPE.to_owned()].into_iter().collect();
    let values = vec![vec![Some(Value::String(genotype.to_owned()))]];
    RecordBuf::builder()
        .set_reference_sequence_name(contig)
        .set_variant_start(Position::new(call.position + 1).unwrap_or(Position::MIN))
        .set_reference_bases(text(&call.reference))
        .set_alternate_bases(AlternateBases::from(vec![text(&call.alternate)]))
        .set_quality_score(call.quality)
        .set_filters(Filters::pass())
        .set_samples(Samples::new(keys, values))
        .build()
}

/// Reads the variants of each sequence of a reference. Records without an alternate allele and symbolic alleles are left
/// out; of several alternate alleles each is a variant.
///
/// # Errors
/// If the file cannot be read, is malformed, or names a sequence that the reference does not have.
pub fn read_vcf(path: &Path, reference: &Reference) -> Result<Vec<Vec<Variant>>, FormatError> {
    read(path, reference).map_err(|kind| kind.at(path))
}

fn read(path: &Path, reference: &Reference) -> Result<Vec<Vec<Variant>>, FormatErrorKind> {
    let malformed = |error: io::Error| FormatErrorKind::Malformed(error.to_string());
    let mut reader = vcf::io::Reader::new(BufReader::new(File::open(path)?));
    let header = reader.read_header().map_err(malformed)?;
    let mut calls = vec![Vec::new(); reference.names().len()];
    for record in reader.record_bufs(&header) {
        let record = record.map_err(malformed)?;
        let name = record.reference_sequence_name();
        let contig =
            reference.names().iter().position(|known| known == name).ok_or_else(|| {
                FormatErrorKind::Malformed(format!("the reference has no sequence `{name}`"))
            })?;
        let Some(start) = record.variant_start() else { continue };
        let genotype = match record.samples().get_index(0).and_then(|sample| sample.get(key::GENOTYPE)) {
            Some(Some(Value::Genotype(genotype))) => {
                let alleles = genotype.as_ref();
                let varied = alleles.iter().filter(|allele| allele.position().unwrap_or(0) > 0).count();
                if varied == alleles.len() {
                    Genotype::Homozygous
                } else {
                    Genotype::Heterozygous { copy: 0 }
                }
            }
            Some(Some(Value::String(text))) => {
                if text.contains('0') {
                    Genotype::Heterozygous { copy: 0 }
                } else {
                    Genotype::Homozygous
                }
            }
            _ => Genotype::Heterozygous { copy: 0 },
        };
        for alternate in record.alternate_bases().as_ref() {
            let letters = |text: &str| text.bytes().all(|letter| letter.is_ascii_alphabetic());
            if !letters(alternate) || !letters(record.reference_bases()) {
                continue;
            }
            calls[contig].push(Variant {
                position: usize::from(start) - 1,
                reference: encode(record.reference_bases().as_bytes()),
                alternate: encode(alternate.as_bytes()),
                genotype,
                quality: record.quality_score().unwrap_or(0.0),
            });
        }
    }
    Ok(calls)
}

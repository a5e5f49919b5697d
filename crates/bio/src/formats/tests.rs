//! Round trips, and files as they are found in the world.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::*;
use crate::align::banded::{Cigar, Op};
use crate::map::Reference;
use crate::seq::encode;
use crate::variants::{AlignedRead, Genotype, Variant};

fn reference() -> Reference {
    Reference::new([("one".to_owned(), [0, 1, 2, 3].repeat(50)), ("two".to_owned(), vec![3; 90])]).unwrap()
}

#[test]
fn fasta_and_fastq_come_back_as_they_were_written() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a.fa", "a.fa.gz"] {
        let path = folder.path().join(name);
        let long = [0, 1, 2, 3, 4].repeat(100);
        write_fasta(&path, [("x", &long[..]), ("y", &[3])]).unwrap();
        let read = read_nucleotides(&path).unwrap();
        assert_eq!((read[0].name.as_str(), &read[0].codes), ("x", &long));
        assert_eq!((read[1].name.as_str(), &read[1].codes[..], read[1].qualities.len()), ("y", &[3][..], 0));
    }
    for name in ["a.fq", "a.fq.gz"] {
        let path = folder.path().join(name);
        write_fastq(&path, [("x", &[0, 1][..], &[0, 93][..]), ("e", &[], &[]), ("y", &[4], &[2])]).unwrap();
        let read = read_nucleotides(&path).unwrap();
        assert_eq!(read.len(), 3);
        assert_eq!((&read[0].codes[..], &read[0].qualities[..]), (&[0, 1][..], &[0, 93][..]));
        assert!(read[1].codes.is_empty() && read[1].qualities.is_empty());
    }
}

#[test]
fn files_of_the_world_are_read() {
    let crlf = parse_nucleotides(&b">a b c\r\nACGT\r\nacgu\r\n>b\r\nNRYK\r\n"[..]).unwrap();
    assert_eq!((crlf[0].name.as_str(), &crlf[0].codes[..]), ("a", &[0, 1, 2, 3, 0, 1, 2, 3][..]));
    assert_eq!(crlf[1].codes, [4; 4]);
    let crlf = parse_nucleotides(&b"@a\r\nAC\r\n+\r\nII\r\n"[..]).unwrap();
    assert_eq!((&crlf[0].codes[..], &crlf[0].qualities[..]), (&[0, 1][..], &[40, 40][..]));
    let proteins = parse_proteins(&b">p\nMKv*\nUXJ\n"[..]).unwrap();
    assert_eq!(proteins[0].codes.len(), 7);
}

#[test]
fn wrong_files_are_named() {
    let kind = |input: &[u8]| parse_nucleotides(input).unwrap_err().to_string();
    assert!(kind(b">a\nACGE\n").contains("`a` has the letter `E` at 4"));
    assert!(!kind(b"").is_empty());
    assert!(!kind(b"hello\n").is_empty());
    assert!(!kind(b"@a\nACGT\n+\nII\n").is_empty());
    assert!(!kind(b"@a\nACGT\n").is_empty());
    let twice = parse_nucleotides(&b">a\nA\n>a\nC\n"[..]).unwrap();
    assert!(matches!(unique_names(&twice), Err(FormatErrorKind::DuplicateName(name)) if name == "a"));
    let missing = read_nucleotides(Path::new("/nowhere/x.fa")).unwrap_err().to_string();
    assert!(missing.starts_with("/nowhere/x.fa: "), "{missing}");
}

#[test]
fn truncated_gzip_is_an_error() {
    let mut gz = GzEncoder::new(Vec::new(), Compression::fast());
    let mut random = crate::simulate::Random::new(1);
    for index in 0..2_000 {
        let bases: Vec<u8> = (0..60).map(|_| b"ACGT"[random.below(4)]).collect();
        writeln!(gz, ">r{index}\n{}", String::from_utf8(bases).unwrap()).unwrap();
    }
    let whole = gz.finish().unwrap();
    assert_eq!(parse_nucleotides(&whole[..]).unwrap().len(), 2_000);
    for keep in [whole.len() - 1, whole.len() - 9, whole.len() / 2, 11] {
        assert!(parse_nucleotides(&whole[..keep]).is_err(), "{keep} of {}", whole.len());
    }
}

#[test]
fn bam_comes_back_as_it_was_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.bam");
    let mut cigar = Cigar::default();
    cigar.push(2, Op::Clip);
    cigar.push(3, Op::Match);
    cigar.push(1, Op::Insert);
    cigar.push(2, Op::Delete);
    cigar.push(4, Op::Match);
    let mapped = AlignedRead {
        name: "r1".to_owned(),
        contig: Some(1),
        position: 7,
        quality: 37,
        reverse: true,
        cigar,
        bases: encode(b"ACGTNACGTA"),
        qualities: (0..10).collect(),
    };
    let unmapped = AlignedRead {
        name: "r2".to_owned(),
        contig: None,
        position: 0,
        quality: 255,
        reverse: false,
        cigar: Cigar::default(),
        bases: encode(b"ACG"),
        qualities: vec![2, 3, 4],
    };
    let reads = vec![mapped, unmapped];
    write_bam(&path, &reference(), &reads).unwrap();
    assert_eq!(read_bam(&path).unwrap(), reads);
    let bytes = std::fs::read(&path).unwrap();
    let cut = folder.path().join("cut.bam");
    std::fs::write(&cut, &bytes[..bytes.len() / 2]).unwrap();
    assert!(read_bam(&cut).is_err());
}

#[test]
fn vcf_comes_back_as_it_was_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.vcf");
    let variant = |position, reference: &[u8], alternate: &[u8], genotype| Variant {
        position,
        reference: encode(reference),
        alternate: encode(alternate),
        genotype,
        quality: 50.0,
    };
    let calls = vec![
        vec![
            variant(3, b"T", b"A", Genotype::Homozygous),
            variant(8, b"ACG", b"A", Genotype::Heterozygous { copy: 0 }),
        ],
        vec![variant(0, b"T", b"TGG", Genotype::Heterozygous { copy: 0 })],
    ];
    write_vcf(&path, &reference(), &calls).unwrap();
    assert_eq!(read_vcf(&path, &reference()).unwrap(), calls);
    std::fs::write(
        &path,
        "##fileformat=VCFv4.4\n#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\nzzz\t1\t.\tA\tC\t1\tPASS\t.\n",
    )
    .unwrap();
    assert!(read_vcf(&path, &reference()).unwrap_err().to_string().contains("`zzz`"));
}

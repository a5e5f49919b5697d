//! What is written is read by the field's tools: samtools, bcftools and pysam. Each test is reported as ignored where its
//! tool is not installed; `cargo test -- --ignored` runs them.

use std::path::Path;
use std::process::{Command, Output};

use warpforge_bio::align::banded::{Cigar, Op};
use warpforge_bio::formats::{write_bam, write_fasta, write_vcf};
use warpforge_bio::map::Reference;
use warpforge_bio::simulate::genome;
use warpforge_bio::variants::{AlignedRead, Genotype, Variant};

fn reference() -> Reference {
    Reference::new([("one".to_owned(), genome(5_000, 1)), ("two".to_owned(), genome(700, 2))]).unwrap()
}

fn reads(reference: &Reference) -> Vec<AlignedRead> {
    let read = |index: usize| {
        let (contig, position) = (index / 30, index % 30 * 20);
        let mut cigar = Cigar::default();
        cigar.push(40, Op::Match);
        cigar.push(2, Op::Insert);
        cigar.push(1, Op::Delete);
        cigar.push(30, Op::Match);
        let sequence = &reference.sequence(contig)[position..];
        let bases = [&sequence[..40], &[0, 1], &sequence[41..71]].concat();
        let qualities = vec![30; bases.len()];
        let reverse = index % 2 == 1;
        AlignedRead {
            name: format!("r{index}"),
            contig: Some(contig),
            position,
            quality: 60,
            reverse,
            cigar,
            bases,
            qualities,
        }
    };
    (0..60).map(read).collect()
}

fn run(program: &str, arguments: &[&str], folder: &Path) -> Output {
    let output = Command::new(program).args(arguments).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

#[test]
#[ignore = "needs samtools"]
fn samtools_reads_our_bam() {
    let folder = tempfile::tempdir().unwrap();
    let reference = reference();
    write_bam(&folder.path().join("a.bam"), &reference, &reads(&reference)).unwrap();
    run("samtools", &["quickcheck", "-v", "a.bam"], folder.path());
    run("samtools", &["index", "a.bam"], folder.path());
    let output = run("samtools", &["view", "a.bam", "two:1-100"], folder.path());
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.lines().count() > 3, "{text}");
    assert!(text.lines().all(|line| line.contains("40M2I1D30M")), "{text}");
}

#[test]
#[ignore = "needs bcftools"]
fn bcftools_reads_our_vcf() {
    let folder = tempfile::tempdir().unwrap();
    let reference = reference();
    let variant = |position: usize| Variant {
        position,
        reference: vec![reference.sequence(0)[position]],
        alternate: vec![(reference.sequence(0)[position] + 1) % 4],
        genotype: Genotype::Homozygous,
        quality: 42.5,
    };
    write_vcf(&folder.path().join("a.vcf"), &reference, &[vec![variant(10), variant(99)], vec![]]).unwrap();
    let sequences = [("one", reference.sequence(0)), ("two", reference.sequence(1))];
    write_fasta(&folder.path().join("a.fa"), sequences).unwrap();
    let output = run("bcftools", &["norm", "--check-ref", "e", "-f", "a.fa", "-Ov", "a.vcf"], folder.path());
    let text = String::from_utf8(output.stdout).unwrap();
    let records: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(records.len(), 2, "{text}");
    assert!(records[1].starts_with("one\t100\t") && records[1].ends_with("1/1"), "{text}");
}

#[test]
#[ignore = "needs Python with pysam; BIO_PYTHON names it"]
fn pysam_reads_our_bam() {
    let folder = tempfile::tempdir().unwrap();
    let reference = reference();
    write_bam(&folder.path().join("a.bam"), &reference, &reads(&reference)).unwrap();
    let python = std::env::var("BIO_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let script = "import pysam\n\
                  reads = list(pysam.AlignmentFile('a.bam', 'rb'))\n\
                  assert len(reads) == 60 and reads[31].reference_name == 'two', reads[31]\n\
                  assert reads[31].cigarstring == '40M2I1D30M' and reads[31].is_reverse\n\
                  assert reads[31].reference_start == 20 and reads[31].mapping_quality == 60\n";
    run(&python, &["-c", script], folder.path());
}

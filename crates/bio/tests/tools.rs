//! What is written is read by the field's tools: samtools, bcftools and pysam. Where one is not installed its tests are
//! ignored, and a line on standard error says why. `WARPT_PYTHON` names a Python that has pysam.

use std::path::Path;
use std::process::Command;

use libtest_mimic::{Arguments, Failed, Trial};
use warpforge_bio::align::banded::{Cigar, Op};
use warpforge_bio::formats::{read_bam, read_vcf, write_bam, write_fasta, write_fastq, write_vcf};
use warpforge_bio::map::Reference;
use warpforge_bio::simulate::genome;
use warpforge_bio::variants::{AlignedRead, Genotype, Variant};

type Outcome = Result<(), Failed>;

fn main() {
    let arguments = Arguments::from_args();
    let python = std::env::var("WARPT_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let samtools = missing("samtools", &["--version"], "install the package samtools");
    let bcftools = missing("bcftools", &["--version"], "install the package bcftools");
    let pysam = missing(
        &python,
        &["-c", "import pysam"],
        "install pysam, or name a Python that has it by WARPT_PYTHON",
    );
    let trials = vec![
        trial("samtools reads our BAM", samtools.clone(), samtools_reads_our_bam),
        trial("samtools reads our FASTA and FASTQ", samtools.clone(), samtools_reads_our_sequences),
        trial("we read the BAM of samtools", samtools, we_read_the_bam_of_samtools),
        trial("bcftools reads our VCF", bcftools.clone(), bcftools_reads_our_vcf),
        trial("we read the VCF of bcftools", bcftools, we_read_the_vcf_of_bcftools),
        trial("pysam reads our BAM, VCF, FASTA and FASTQ", pysam, move || pysam_reads_our_files(&python)),
    ];
    libtest_mimic::run(&arguments, trials).exit();
}

fn trial(name: &str, missing: Option<String>, test: impl FnOnce() -> Outcome + Send + 'static) -> Trial {
    match missing {
        None => Trial::test(name, test),
        Some(reason) => {
            eprintln!("ignored, {name}: {reason}");
            Trial::test(name, || Ok(())).with_ignored_flag(true)
        }
    }
}

/// Why a program cannot run; none if it can.
fn missing(program: &str, arguments: &[&str], remedy: &str) -> Option<String> {
    let output = Command::new(program).args(arguments).output();
    match output {
        Ok(output) if output.status.success() => None,
        Ok(output) => Some(format!("{program} {arguments:?} ends with {}; {remedy}", output.status)),
        Err(error) => Some(format!("{program}: {error}; {remedy}")),
    }
}

/// The standard output of a program that must succeed.
fn run(program: &str, arguments: &[&str], folder: &Path) -> Result<String, Failed> {
    let output = Command::new(program).args(arguments).current_dir(folder).output()?;
    if !output.status.success() {
        return Err(format!("{program} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    Ok(String::from_utf8(output.stdout)?)
}

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

/// A homozygous change of one base and a heterozygous deletion.
fn variants(reference: &Reference) -> Vec<Vec<Variant>> {
    let sequence = reference.sequence(0);
    let change = Variant {
        position: 10,
        reference: vec![sequence[10]],
        alternate: vec![(sequence[10] + 1) % 4],
        genotype: Genotype::Homozygous,
        quality: 42.5,
    };
    let deletion = Variant {
        position: 99,
        reference: sequence[99..102].to_vec(),
        alternate: vec![sequence[99]],
        genotype: Genotype::Heterozygous { copy: 0 },
        quality: 30.0,
    };
    vec![vec![change, deletion], vec![]]
}

/// The sequences as FASTA, and an index of it.
fn write_reference(folder: &Path, reference: &Reference) {
    let sequences = [("one", reference.sequence(0)), ("two", reference.sequence(1))];
    write_fasta(&folder.join("a.fa"), sequences).unwrap();
}

fn samtools_reads_our_bam() -> Outcome {
    let folder = tempfile::tempdir()?;
    let reference = reference();
    write_bam(&folder.path().join("a.bam"), &reference, &reads(&reference))?;
    run("samtools", &["quickcheck", "-v", "a.bam"], folder.path())?;
    run("samtools", &["index", "a.bam"], folder.path())?;
    let text = run("samtools", &["view", "a.bam", "two:1-100"], folder.path())?;
    assert!(text.lines().count() > 3, "{text}");
    assert!(text.lines().all(|line| line.contains("40M2I1D30M")), "{text}");
    Ok(())
}

fn samtools_reads_our_sequences() -> Outcome {
    let folder = tempfile::tempdir()?;
    let reference = reference();
    write_reference(folder.path(), &reference);
    run("samtools", &["faidx", "a.fa"], folder.path())?;
    let text = run("samtools", &["faidx", "a.fa", "two:101-110"], folder.path())?;
    let expected = warpforge_bio::seq::decode(&reference.sequence(1)[100..110]);
    assert_eq!(text.lines().last(), Some(std::str::from_utf8(&expected)?));
    let reads = reads(&reference);
    let records = reads.iter().map(|read| (&read.name[..], &read.bases[..], &read.qualities[..]));
    write_fastq(&folder.path().join("a.fq.gz"), records)?;
    let text = run("samtools", &["import", "-0", "a.fq.gz", "-O", "sam"], folder.path())?;
    assert_eq!(text.lines().filter(|line| line.starts_with('r')).count(), 60, "{text}");
    Ok(())
}

fn we_read_the_bam_of_samtools() -> Outcome {
    let folder = tempfile::tempdir()?;
    let reference = reference();
    let reads = reads(&reference);
    write_bam(&folder.path().join("a.bam"), &reference, &reads)?;
    run("samtools", &["sort", "-o", "b.bam", "a.bam"], folder.path())?;
    assert_eq!(read_bam(&folder.path().join("b.bam"))?, reads);
    Ok(())
}

fn bcftools_reads_our_vcf() -> Outcome {
    let folder = tempfile::tempdir()?;
    let reference = reference();
    write_vcf(&folder.path().join("a.vcf"), &reference, &variants(&reference))?;
    write_reference(folder.path(), &reference);
    run("bcftools", &["view", "a.vcf"], folder.path())?;
    let arguments = ["norm", "--check-ref", "e", "-f", "a.fa", "-Ov", "a.vcf"];
    let text = run("bcftools", &arguments, folder.path())?;
    let records: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(records.len(), 2, "{text}");
    assert!(records[0].starts_with("one\t11\t") && records[0].ends_with("1/1"), "{text}");
    assert!(records[1].starts_with("one\t") && records[1].ends_with("0/1"), "{text}");
    Ok(())
}

fn we_read_the_vcf_of_bcftools() -> Outcome {
    let folder = tempfile::tempdir()?;
    let reference = reference();
    let calls = variants(&reference);
    write_vcf(&folder.path().join("a.vcf"), &reference, &calls)?;
    run("bcftools", &["view", "-Ov", "-o", "b.vcf", "a.vcf"], folder.path())?;
    assert_eq!(read_vcf(&folder.path().join("b.vcf"), &reference)?, calls);
    Ok(())
}

const PYSAM: &str = "
import pysam
reads = list(pysam.AlignmentFile('a.bam', 'rb'))
assert len(reads) == 60 and reads[31].reference_name == 'two', reads[31]
assert reads[31].cigarstring == '40M2I1D30M' and reads[31].is_reverse
assert reads[31].reference_start == 20 and reads[31].mapping_quality == 60
records = list(pysam.VariantFile('a.vcf'))
assert [(r.contig, r.start, r.samples[0]['GT']) for r in records] == [('one', 10, (1, 1)), ('one', 99, (0, 1))]
assert len(records[1].ref) == 3 and len(records[1].alts[0]) == 1
fasta = {r.name: r.sequence for r in pysam.FastxFile('a.fa')}
assert len(fasta['one']) == 5000 and len(fasta['two']) == 700
fastq = list(pysam.FastxFile('a.fq.gz'))
assert len(fastq) == 60 and fastq[0].sequence[:40] == fasta['one'][:40]
assert fastq[0].get_quality_array()[0] == 30
";

fn pysam_reads_our_files(python: &str) -> Outcome {
    let folder = tempfile::tempdir()?;
    let reference = reference();
    let reads = reads(&reference);
    write_bam(&folder.path().join("a.bam"), &reference, &reads)?;
    write_vcf(&folder.path().join("a.vcf"), &reference, &variants(&reference))?;
    write_reference(folder.path(), &reference);
    let records = reads.iter().map(|read| (&read.name[..], &read.bases[..], &read.qualities[..]));
    write_fastq(&folder.path().join("a.fq.gz"), records)?;
    run(python, &["-c", PYSAM], folder.path())?;
    Ok(())
}

//! Every benchmark runs on small data with its gate, and refuses what makes no sense.

use super::*;
use crate::benchmark::{Benchmark, BenchmarkError, Event};
use crate::suites::testing::round;

/// The names of the metrics that a round gives.
fn metrics(benchmark: &dyn Benchmark, params: &[(&str, &str)]) -> Result<Vec<String>, BenchmarkError> {
    let round = round(benchmark, params, 0.01);
    benchmark.prepare(&round.params)?;
    let mut names = Vec::new();
    let mut report = |event| {
        if let Event::Metric { key, values } = event {
            assert!(values.iter().all(|value| value.is_finite()), "{key:?} {values:?}");
            names.push(key.name);
        }
    };
    benchmark.run(&mut crate::benchmark::RunContext::new(&round, &|| false, &mut report))?;
    Ok(names)
}

/// A small genome and pairs of proteins in a folder, so that the tests need no large generated data.
fn data() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let genome = warpforge_bio::simulate::genome(60_000, 9);
    warpforge_bio::formats::write_fasta(&folder.path().join("genome.fa.gz"), [("g", &genome[..])]).unwrap();
    folder
}

#[test]
fn every_benchmark_passes_its_gate_and_exports_its_data() {
    let folder = data();
    let genome = folder.path().join("genome.fa.gz");
    let genome = genome.to_str().unwrap();
    for (benchmark, rate, files) in [
        (&kmer_count::KmerCount as &dyn Benchmark, "kmers_per_second", &["histogram.txt"][..]),
        (&call_variants::CallVariants, "megabases_per_second", &["reads.bam", "calls.vcf", "truth.vcf"]),
        (&assemble_micro::AssembleMicro, "bases_per_second", &["contigs.fa", "reads.fq"]),
        (&map_reads::MapReads, "reads_per_second", &["mapped.bam", "reads.fq", "reference.fa"]),
        (&consensus_poa::ConsensusPoa, "windows_per_second", &["consensus.fa", "truth.fa"]),
    ] {
        let export = tempfile::tempdir().unwrap();
        let params = [("data", genome), ("export", export.path().to_str().unwrap())];
        let names = metrics(benchmark, &params).unwrap();
        assert!(names.iter().any(|name| name == rate), "{names:?}");
        for name in ["stage_time", "peak_rss"] {
            assert!(names.iter().any(|known| known == name), "{name}: {names:?}");
        }
        for file in files {
            assert!(export.path().join(file).metadata().unwrap().len() > 0, "{file}");
        }
    }
}

#[test]
fn pairs_and_proteins_pass_their_gates() {
    let names = metrics(&align_pairs::AlignPairs, &[("length", "2000")]).unwrap();
    assert_eq!(names.iter().filter(|name| *name == "gcups").count(), 3, "{names:?}");
    let folder = tempfile::tempdir().unwrap();
    let params = [("export", folder.path().to_str().unwrap())];
    let names = metrics(&protein_search::ProteinSearch, &params).unwrap();
    assert!(names.iter().any(|name| name == "recall"), "{names:?}");
    assert!(folder.path().join("truth.tsv").metadata().unwrap().len() > 0);
}

#[test]
fn files_that_cannot_be_used_are_named() {
    let folder = data();
    let whole = std::fs::read(folder.path().join("genome.fa.gz")).unwrap();
    let file = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().to_owned()
    };
    for (path, reason) in [
        (file("cut.fa.gz", &whole[..whole.len() / 2]), "cut.fa.gz"),
        (file("twice.fa", b">a\nACGT\n>a\nACGT\n"), "two sequences named `a`"),
        (file("letter.fa", b">a\nACG!\n"), "the letter `!` at 4"),
        (file("empty.fa", b""), "empty.fa"),
        (file("bare.fa", b">a\n>b\n"), "data: "),
    ] {
        let error = metrics(&map_reads::MapReads, &[("data", &path)]).unwrap_err();
        assert!(matches!(error, BenchmarkError::BadInput(_)), "{path}: {error}");
        assert!(error.to_string().contains(reason), "{path}: {error}");
    }
}

#[test]
fn letters_of_either_case_carriage_returns_and_unknown_bases_are_counted_alike() {
    let folder = tempfile::tempdir().unwrap();
    let histogram = |text: &str| {
        let path = folder.path().join("reads.fa");
        std::fs::write(&path, text).unwrap();
        let params =
            [("data", path.to_str().unwrap()), ("k", "5"), ("export", folder.path().to_str().unwrap())];
        metrics(&kmer_count::KmerCount, &params).unwrap();
        std::fs::read_to_string(folder.path().join("histogram.txt")).unwrap()
    };
    let plain = histogram(">a\nACGTTGCANGATTACA\n");
    assert_eq!(histogram(">a\r\nacgttgca\r\nRGATTACA\r\n"), plain);
    assert_eq!(plain, "1 7\n");
}

#[test]
fn what_makes_no_sense_is_named() {
    for (benchmark, name, value) in [
        (&align_pairs::AlignPairs as &dyn Benchmark, "modes", "global,diagonal"),
        (&align_pairs::AlignPairs, "length", "0"),
        (&align_pairs::AlignPairs, "divergence_percent", "101"),
        (&map_reads::MapReads, "reads", "medium"),
        (&map_reads::MapReads, "size", "huge"),
        (&map_reads::MapReads, "threads", "-1"),
        (&map_reads::MapReads, "seed", "-1"),
        (&kmer_count::KmerCount, "k", "32"),
        (&kmer_count::KmerCount, "data", "/nowhere.fa"),
        (&kmer_count::KmerCount, "export", "/nowhere"),
        (&call_variants::CallVariants, "depth", "3"),
        (&assemble_micro::AssembleMicro, "k", "50"),
        (&assemble_micro::AssembleMicro, "shape", "round"),
        (&consensus_poa::ConsensusPoa, "depth", "2"),
        (&protein_search::ProteinSearch, "queries", "q.fa"),
    ] {
        let error = benchmark.prepare(&round(benchmark, &[(name, value)], 0.01).params).unwrap_err();
        assert!(matches!(error, BenchmarkError::BadInput(_)), "{error:?}");
        assert!(error.to_string().contains(&format!("{name}={value}")), "{error}");
    }
}

#[test]
fn a_broken_file_is_bad_input() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.fa");
    std::fs::write(&path, ">a\nACGT!\n").unwrap();
    let error = metrics(&map_reads::MapReads, &[("data", path.to_str().unwrap())]).unwrap_err();
    assert!(matches!(&error, BenchmarkError::BadInput(text) if text.contains("x.fa")), "{error:?}");
}

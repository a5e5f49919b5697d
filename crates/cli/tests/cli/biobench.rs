//! Sequence files as they are found in the world, through the program: a clear error or the right answer.

use std::path::Path;

use crate::warpt::{Finished, Warpt};

/// Runs a benchmark once on a file of the home folder.
fn run(warpt: &Warpt, benchmark: &str, file: &str, params: &[&str]) -> Finished {
    let data = format!("data={file}");
    let mut arguments =
        vec!["benchmark", "run", "--benchmark", benchmark, "--rounds", "1", "--duration", "0.01"];
    arguments.extend(["--burnin-seconds", "0", "--json", "--param", &data]);
    arguments.extend(params.iter().flat_map(|param| ["--param", *param]));
    warpt.run(&arguments)
}

/// The k-mers of a file, as a histogram.
fn histogram(warpt: &Warpt, file: &str) -> String {
    let done = run(warpt, "kmer_count", file, &["k=5", "export=."]);
    assert_eq!(done.code, 0, "{file}: {}{}", done.stdout, done.stderr);
    std::fs::read_to_string(warpt.path("histogram.txt")).unwrap()
}

#[test]
fn line_ends_cases_ambiguous_letters_and_empty_reads_change_no_count() {
    let warpt = Warpt::new();
    for (file, text) in [
        ("plain.fa", ">a\nACGTTGCANGATTACA\n"),
        ("crlf.fa", ">a\r\nACGTTGCA\r\nNGATTACA\r\n"),
        ("lower.fa", ">a some words\nacgttgcaNgauuaca\n"),
        ("iupac.fa", ">a\nACGTTGCARGATTACA\n"),
        ("empty.fq", "@e\n\n+\n\n@a\nACGTTGCANGATTACA\n+\nIIIIIIIIIIIIIIII\n"),
        ("names.fa", ">a\nACGTTGCA\n>a\nGATTACA\n"),
    ] {
        std::fs::write(warpt.path(file), text).unwrap();
        assert_eq!(histogram(&warpt, file), "1 7\n", "{file}");
    }
}

#[test]
fn files_that_are_cut_off_or_wrong_are_named() {
    let warpt = Warpt::new();
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/sequences");
    let packed = std::fs::read(seeds.join("whole.fa.gz")).unwrap();
    let file = |name: &str, bytes: &[u8]| std::fs::write(warpt.path(name), bytes).unwrap();
    file("cut.fa.gz", &packed[..packed.len() - 9]);
    file("letter.fa", b">a\nACG!\n");
    file("short.fq", b"@a\nACGT\n+\nII\n");
    file("nothing.fa", b"");
    file("twice.fa", b">a\nACGT\n>a\nACGT\n");
    for (benchmark, name, reason) in [
        ("kmer_count", "cut.fa.gz", "cut.fa.gz"),
        ("kmer_count", "letter.fa", "`a` has the letter `!` at 4"),
        ("kmer_count", "short.fq", "short.fq"),
        ("kmer_count", "nothing.fa", "nothing.fa"),
        ("map_reads", "twice.fa", "two sequences named `a`"),
    ] {
        let done = run(&warpt, benchmark, name, &[]);
        assert_ne!(done.code, 0, "{name}");
        let said = format!("{}{}", done.stdout, done.stderr);
        assert!(said.contains(reason) && !said.contains("panicked"), "{name}: {said}");
    }
}

#[test]
fn a_protein_database_without_queries_says_what_is_missing() {
    let warpt = Warpt::new();
    std::fs::write(warpt.path("proteins.fa"), ">p\nMKTAYIAKQR\n").unwrap();
    let done = run(&warpt, "protein_search", "proteins.fa", &[]);
    let said = format!("{}{}", done.stdout, done.stderr);
    assert!(done.code != 0 && said.contains("it needs the queries as well, `queries`"), "{said}");
}

#[test]
fn a_genome_shorter_than_its_reads_is_named() {
    let warpt = Warpt::new();
    std::fs::write(warpt.path("short.fa"), format!(">s\n{}\n", "GATTACAACGTTGCACCGGTA".repeat(4))).unwrap();
    for benchmark in ["map_reads", "call_variants", "assemble_micro", "consensus_poa"] {
        let done = run(&warpt, benchmark, "short.fa", &[]);
        let said = format!("{}{}", done.stdout, done.stderr);
        assert!(done.code != 0 && said.contains("`s`, has 84 bases"), "{benchmark}: {said}");
    }
}

/// A genome that is not repetitive, with CRLF and lower case, and unknown bases in place of some.
fn odd_genome(length: u64, unknown: impl Fn(u64) -> bool) -> String {
    let base = |place: u64| {
        let mixed = (place + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mixed = (mixed ^ mixed >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let letters = if place % 1_000 < 300 { b"acgu" } else { b"ACGT" };
        if unknown(place) { b"NRYK"[place as usize % 4] } else { letters[(mixed >> 60) as usize % 4] }
    };
    let letters: Vec<u8> = (0..length).map(base).collect();
    let lines: Vec<&str> = letters.chunks(70).filter_map(|line| std::str::from_utf8(line).ok()).collect();
    format!(">g\r\n{}\r\n", lines.join("\r\n"))
}

#[test]
fn unknown_bases_of_a_genome_are_no_wrong_answers() {
    let warpt = Warpt::new();
    let genome = odd_genome(20_000, |place| place % 4_000 < 400);
    std::fs::write(warpt.path("odd.fa"), genome).unwrap();
    for benchmark in ["consensus_poa", "call_variants", "kmer_count"] {
        let done = run(&warpt, benchmark, "odd.fa", &[]);
        assert_eq!(done.code, 0, "{benchmark}: {}{}", done.stdout, done.stderr);
    }
    std::fs::write(warpt.path("holes.fa"), odd_genome(20_000, |place| place % 90 == 0)).unwrap();
    let done = run(&warpt, "consensus_poa", "holes.fa", &["length=100"]);
    let said = format!("{}{}", done.stdout, done.stderr);
    assert!(done.code != 0 && said.contains("no 100 known bases in a row"), "{said}");
}

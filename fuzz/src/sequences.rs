//! Sequence files and alignments: parsers must not panic, and fast alignments must score as plain ones do.

use warpforge_bio::align::banded::BandedAligner;
use warpforge_bio::align::{Mode, Scoring, edit_distances, plain, scores};
use warpforge_bio::formats::{parse_nucleotides, parse_proteins, unique_names};
use warpforge_bio::map::{Index, ReadKind, Reference, map_reads};

/// Reads the input as FASTA or FASTQ, gzipped or not; what is read is mapped to itself.
pub fn sequences(data: &[u8]) {
    let _ = parse_proteins(data);
    let Ok(records) = parse_nucleotides(data) else { return };
    assert!(records.iter().all(|record| record.codes.iter().all(|&code| code <= 4)));
    assert!(records.iter().all(|r| r.qualities.is_empty() || r.qualities.len() == r.codes.len()));
    if unique_names(&records).is_err() {
        return;
    }
    let reads: Vec<Vec<u8>> = records.iter().map(|record| record.codes.clone()).collect();
    let Ok(reference) = Reference::new(records.into_iter().map(|record| (record.name, record.codes))) else {
        return;
    };
    for kind in [ReadKind::Short, ReadKind::Long] {
        let index = Index::build(reference.clone(), kind, 1);
        for (read, mapping) in reads.iter().zip(map_reads(&index, &reads, 1)) {
            let Some(mapping) = mapping else { continue };
            assert_eq!(mapping.cigar.query_length(), read.len());
            assert!(mapping.end() <= reference.sequence(mapping.contig).len());
        }
    }
}

/// Aligns the two halves of the input, its first byte choosing where they meet.
pub fn alignment(data: &[u8]) {
    let Some((&first, rest)) = data.split_first() else { return };
    let codes: Vec<u8> = rest.iter().take(1_600).map(|&byte| byte % 5).collect();
    let (a, b) = codes.split_at(codes.len() * first as usize / 255);
    let scoring = Scoring::READS;
    let pairs = [(a, b)];
    let global = plain::global(a, b, &scoring);
    assert_eq!(scores(&pairs, Mode::Global, &scoring, 1), [global]);
    assert_eq!(scores(&pairs, Mode::Local, &scoring, 1), [plain::local(a, b, &scoring)]);
    assert_eq!(edit_distances(&pairs, 1), [plain::edit(a, b)]);
    let found = BandedAligner::default().global(a, b, &scoring, codes.len());
    assert_eq!((found.score, found.cigar.score(a, b, &scoring)), (global, Some(global)));
}

//! Mapping of simulated reads whose origin is known.

use super::*;
use crate::align::Scoring;
use crate::simulate::{LongReadModel, SimulatedRead, genome, long_reads, short_reads};

fn index(kind: ReadKind, bases: &[u8], threads: usize) -> Index {
    Index::build(Reference::new([("chr".to_owned(), bases.to_vec())]).unwrap(), kind, threads)
}

/// The share of reads whose mapping overlaps their origin, and that every path fits its read.
fn correct(bases: &[u8], reads: &[SimulatedRead], mapped: &[Option<Mapping>]) -> f64 {
    let mut right = 0;
    for (read, mapping) in reads.iter().zip(mapped) {
        let Some(mapping) = mapping else { continue };
        let strand = if mapping.reverse { reverse_complement(&read.bases) } else { read.bases.clone() };
        let target = &bases[mapping.position..mapping.end()];
        assert_eq!(
            mapping.cigar.score(&strand, target, &Scoring::READS),
            Some(mapping.score),
            "{}",
            read.name
        );
        let overlap =
            mapping.end().min(read.origin.end).saturating_sub(mapping.position.max(read.origin.start));
        right += usize::from(
            mapping.reverse == read.origin.reverse && 2 * overlap > read.origin.end - read.origin.start,
        );
    }
    right as f64 / reads.len() as f64
}

#[test]
fn short_reads_go_home() {
    let bases = genome(300_000, 1);
    let reads = short_reads(&bases, 2_000, 150, 2);
    let sequences: Vec<&[u8]> = reads.iter().map(|read| read.bases.as_slice()).collect();
    let mapped = map_reads(&index(ReadKind::Short, &bases, 2), &sequences, 2);
    let share = correct(&bases, &reads, &mapped);
    assert!(share > 0.97, "{share}");
    assert_eq!(mapped, map_reads(&index(ReadKind::Short, &bases, 1), &sequences, 1));
    let wrong_and_sure = reads.iter().zip(&mapped).filter(|(read, mapping)| {
        mapping.as_ref().is_some_and(|m| m.quality >= 30 && m.position.abs_diff(read.origin.start) > 150)
    });
    assert!(wrong_and_sure.count() < 3);
}

#[test]
fn long_reads_go_home() {
    let bases = genome(300_000, 1);
    let reads = long_reads(&bases, 100, LongReadModel::default(), 2);
    let sequences: Vec<&[u8]> = reads.iter().map(|read| read.bases.as_slice()).collect();
    let mapped = map_reads(&index(ReadKind::Long, &bases, 2), &sequences, 2);
    let share = correct(&bases, &reads, &mapped);
    assert!(share > 0.99, "{share}");
}

#[test]
fn odd_reads_are_no_trouble() {
    let bases = genome(20_000, 1);
    for kind in [ReadKind::Short, ReadKind::Long] {
        let index = index(kind, &bases, 1);
        let longer = [&bases[..], &genome(5_000, 9)].concat();
        let unknown = vec![4; 200];
        let partly = [&[4; 20][..], &bases[500..630]].concat();
        let reads: Vec<&[u8]> =
            vec![&[], &[0], &unknown, &longer, &bases, &partly, &bases[..30], &bases[19_900..]];
        let mapped = map_reads(&index, &reads, 1);
        assert!(mapped[..3].iter().all(Option::is_none));
        let whole = mapped[3].as_ref().expect("a read longer than the genome maps by its part");
        assert_eq!(whole.cigar.query_length(), 25_000);
        assert!(whole.end() <= 20_000);
        assert_eq!(mapped[4].as_ref().map(|m| (m.position, m.end())), Some((0, 20_000)));
        let partly = mapped[5].as_ref().unwrap();
        assert!((480..=500).contains(&partly.position), "{partly:?}");
    }
}

#[test]
fn reads_of_one_sequence_do_not_reach_into_the_next() {
    let bases = genome(40_000, 5);
    let halves = [("a", &bases[..20_000]), ("b", &bases[20_000..])];
    let reference = Reference::new(halves.map(|(name, part)| (name.to_owned(), part.to_vec()))).unwrap();
    for kind in [ReadKind::Short, ReadKind::Long] {
        let index = Index::build(reference.clone(), kind, 1);
        let reads: Vec<&[u8]> = vec![&bases[19_950..20_100], &bases[21_000..21_150], &bases[15_000..24_000]];
        for mapping in map_reads(&index, &reads, 1).into_iter().flatten() {
            assert!(mapping.end() <= 20_000, "{mapping:?}");
        }
        let second = map_reads(&index, &reads[1..2], 1);
        assert_eq!(second[0].as_ref().map(|m| (m.contig, m.position)), Some((1, 1_000)));
    }
    let twice = [("a", &bases[..10]), ("a", &bases[..10])].map(|(n, b)| (n.to_owned(), b.to_vec()));
    assert!(matches!(Reference::new(twice), Err(ReferenceError::DuplicateName(_))));
    assert_eq!(Reference::new([]), Err(ReferenceError::Empty));
}

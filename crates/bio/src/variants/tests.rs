//! Calls on spiked variants, and normal forms.

use super::*;
use crate::map::{Index, ReadKind, Reference, map_reads};
use crate::seq::{encode, reverse_complement};
use crate::simulate::{genome, short_reads, spike_variants};

fn variant(position: usize, reference: &[u8], alternate: &[u8]) -> Variant {
    Variant {
        position,
        reference: encode(reference),
        alternate: encode(alternate),
        genotype: Genotype::Homozygous,
        quality: 0.0,
    }
}

#[test]
fn variants_are_brought_into_their_normal_form() {
    let sequence = encode(b"GGGCACACACAGGG");
    // Tan, Abecasis and Kang's example: the deletion of one CA, written in four ways.
    for (position, reference, alternate) in
        [(5, "CAC", "C"), (3, "CACACACA", "CACACA"), (2, "GCACA", "GCA"), (7, "CA", "")]
    {
        let found = normalize(&sequence, variant(position, reference.as_bytes(), alternate.as_bytes()));
        assert_eq!(found, variant(2, b"GCA", b"G"), "{reference} {alternate}");
    }
    assert_eq!(normalize(&sequence, variant(4, b"A", b"T")), variant(4, b"A", b"T"));
    assert_eq!(normalize(&sequence, variant(3, b"CAC", b"CTC")), variant(4, b"A", b"T"));
    assert_eq!(normalize(&sequence, variant(0, b"GG", b"G")).position, 0);
}

/// Reads of a spiked genome, mapped.
fn mapped_reads(spacing: usize, depth: usize) -> (Reference, Vec<AlignedRead>, Vec<Variant>) {
    let bases = genome(200_000, 3);
    let spiked = spike_variants(&bases, spacing, 4);
    let reference = Reference::new([("chr".to_owned(), bases)]).unwrap();
    let index = Index::build(reference.clone(), ReadKind::Short, 2);
    let count = depth * 200_000 / 150 / 2;
    let mut aligned = Vec::new();
    for (copy, haplotype) in spiked.haplotypes.iter().enumerate() {
        let reads = short_reads(haplotype, count, 150, 5 + copy as u64);
        let sequences: Vec<&[u8]> = reads.iter().map(|read| read.bases.as_slice()).collect();
        for (read, mapping) in reads.iter().zip(map_reads(&index, &sequences, 2)) {
            let Some(mapping) = mapping else { continue };
            let mut qualities = read.qualities.clone();
            let mut bases = read.bases.clone();
            if mapping.reverse {
                qualities.reverse();
                bases = reverse_complement(&bases);
            }
            aligned.push(AlignedRead {
                name: format!("{}/{copy}", read.name),
                contig: Some(mapping.contig),
                position: mapping.position,
                quality: mapping.quality,
                reverse: mapping.reverse,
                cigar: mapping.cigar,
                bases,
                qualities,
            });
        }
    }
    aligned.sort_by_key(|read| (read.contig, read.position));
    (reference, aligned, spiked.variants)
}

#[test]
fn spiked_variants_are_found() {
    let (reference, reads, truth) = mapped_reads(500, 40);
    let calls = call_variants(&reference, &reads, &CallSettings::default(), 1);
    assert_eq!(calls, call_variants(&reference, &reads, &CallSettings::default(), 3));
    let accuracy = compare(&truth, &calls[0]);
    assert!(accuracy.f1() > 0.95, "{accuracy:?} {}", accuracy.f1());
    let right = calls[0].iter().filter(|call| {
        truth.iter().any(|variant| {
            variant.position == call.position
                && matches!(variant.genotype, Genotype::Homozygous)
                    == matches!(call.genotype, Genotype::Homozygous)
        })
    });
    assert!(right.count() * 100 >= accuracy.true_positives * 97);
}

#[test]
fn reads_without_variants_give_no_calls() {
    let (reference, reads, truth) = mapped_reads(1_000_000, 30);
    assert!(truth.is_empty());
    let calls = call_variants(&reference, &reads, &CallSettings::default(), 2);
    assert!(calls[0].len() <= 2, "{:?}", calls[0]);
    assert!(call_variants(&reference, &[], &CallSettings::default(), 2)[0].is_empty());
}

#[test]
fn accuracy_counts_each_kind() {
    let truth = [variant(1, b"A", b"C"), variant(9, b"A", b"C")];
    let calls = [variant(1, b"A", b"C"), variant(9, b"A", b"G")];
    let accuracy = compare(&truth, &calls);
    assert_eq!(accuracy, Accuracy { true_positives: 1, false_positives: 1, false_negatives: 1 });
    assert_eq!((accuracy.precision(), accuracy.recall(), accuracy.f1()), (0.5, 0.5, 0.5));
    assert_eq!(Accuracy::default().f1(), 0.0);
}

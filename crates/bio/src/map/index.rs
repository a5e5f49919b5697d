//! The minimizers of a reference and where they are.

use super::{ReadKind, Reference, minimizers};
use crate::parallel::map_indices;

/// Bases of the reference that a thread takes at a time.
const CHUNK: usize = 1 << 20;

/// Parts that are sorted on their own: so many high bits of the hash.
const PART_BITS: u32 = 6;

/// A slot of the hash table.
#[derive(Debug, Clone, Copy)]
struct Slot {
    hash: u64,
    begin: u32,
    count: u32,
}

/// Finds the places of a minimizer in a reference.
#[derive(Debug)]
pub struct Index {
    kind: ReadKind,
    reference: Reference,
    /// Open addressing; a slot with no places is free.
    slots: Vec<Slot>,
    /// Begin of the k-mer among all bases, twice, plus 1 if it is of the other strand.
    places: Vec<u32>,
}

impl Index {
    /// Indexes a reference for reads of a kind.
    #[must_use]
    pub fn build(reference: Reference, kind: ReadKind, threads: usize) -> Self {
        let parts = sorted_parts(&reference, kind, threads);
        let total: usize = parts.iter().map(Vec::len).sum();
        let distinct: usize = parts.iter().map(|part| part.chunk_by(|a, b| a.0 == b.0).count()).sum();
        let size = (2 * distinct).next_power_of_two().max(16);
        let mut slots = vec![Slot { hash: 0, begin: 0, count: 0 }; size];
        let mut places = Vec::with_capacity(total);
        for group in parts.iter().flat_map(|part| part.chunk_by(|a, b| a.0 == b.0)) {
            let hash = group[0].0;
            let mut slot = hash as usize & (size - 1);
            while slots[slot].count != 0 {
                slot = (slot + 1) & (size - 1);
            }
            slots[slot] = Slot { hash, begin: places.len() as u32, count: group.len() as u32 };
            places.extend(group.iter().map(|entry| entry.1));
        }
        Self { kind, reference, slots, places }
    }

    /// The kind of reads it is for.
    #[must_use]
    pub fn kind(&self) -> ReadKind {
        self.kind
    }

    /// What is indexed.
    #[must_use]
    pub fn reference(&self) -> &Reference {
        &self.reference
    }

    /// Minimizers in the index.
    #[must_use]
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether the reference has no minimizer.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// The places of a minimizer.
    #[inline]
    pub(super) fn places(&self, hash: u64) -> &[u32] {
        let mask = self.slots.len() - 1;
        let mut slot = hash as usize & mask;
        loop {
            let Slot { hash: known, begin, count } = self.slots[slot];
            if count == 0 {
                return &[];
            }
            if known == hash {
                return &self.places[begin as usize..(begin + count) as usize];
            }
            slot = (slot + 1) & mask;
        }
    }
}

/// The minimizers with their places, in parts by the high bits of the hash, each part sorted.
fn sorted_parts(reference: &Reference, kind: ReadKind, threads: usize) -> Vec<Vec<(u64, u32)>> {
    let settings = kind.settings();
    let overlap = settings.k + settings.w - 2;
    let mut chunks = Vec::new();
    for contig in 0..reference.names().len() {
        let span = reference.span(contig);
        let mut start = span.start;
        while start < span.end {
            chunks.push((start, (start + CHUNK + overlap).min(span.end), start + CHUNK));
            start += CHUNK;
        }
    }
    let scattered = map_indices(chunks.len(), threads, |index| {
        let (start, end, limit) = chunks[index];
        let mut found = Vec::new();
        minimizers::collect(&reference.bases()[start..end], settings.k, settings.w, &mut found);
        let mut parts = vec![Vec::new(); 1 << PART_BITS];
        for (hash, position, reverse) in found {
            let place = start + position as usize;
            // Windows that begin in the next chunk are the next chunk's.
            if place < limit {
                parts[(hash >> (64 - PART_BITS)) as usize]
                    .push((hash, (place as u32) << 1 | u32::from(reverse)));
            }
        }
        parts
    });
    map_indices(1 << PART_BITS, threads, |part| {
        let mut entries: Vec<(u64, u32)> =
            scattered.iter().flat_map(|chunk| chunk[part].iter().copied()).collect();
        entries.sort_unstable();
        entries.dedup();
        entries
    })
}

//! A hash table of k-mers and their counts.

use super::Word;

/// Open addressing with linear probing; a count of 0 marks a free slot.
#[derive(Debug, Clone)]
pub(super) struct Table<W> {
    slots: Vec<(W, u32)>,
    used: usize,
    /// High bits of the hash that all k-mers of this table share.
    shared_bits: u32,
}

/// Slots to begin with.
const FIRST: usize = 1 << 8;

impl<W: Word> Table<W> {
    /// An empty table for k-mers whose hashes share so many high bits.
    pub(super) fn new(shared_bits: u32) -> Self {
        Self { slots: vec![(W::default(), 0); FIRST], used: 0, shared_bits }
    }

    /// Counts k-mers.
    pub(super) fn add_all(&mut self, kmers: &[W]) {
        for piece in kmers.chunks(64) {
            if (self.used + piece.len()) * 3 > self.slots.len() * 2 {
                self.grow();
            }
            for &kmer in piece {
                self.add(kmer, 1);
            }
        }
    }

    #[inline]
    fn start(&self, kmer: W) -> usize {
        (kmer.hash() << self.shared_bits >> (64 - self.slots.len().ilog2())) as usize
    }

    #[inline]
    fn add(&mut self, kmer: W, count: u32) {
        let mask = self.slots.len() - 1;
        let mut index = self.start(kmer);
        loop {
            let slot = &mut self.slots[index & mask];
            if slot.1 == 0 {
                *slot = (kmer, count);
                self.used += 1;
                return;
            }
            if slot.0 == kmer {
                slot.1 = slot.1.saturating_add(count);
                return;
            }
            index += 1;
        }
    }

    fn grow(&mut self) {
        let larger = vec![(W::default(), 0); 4 * self.slots.len()];
        let old = std::mem::replace(&mut self.slots, larger);
        self.used = 0;
        for (kmer, count) in old.into_iter().filter(|slot| slot.1 != 0) {
            self.add(kmer, count);
        }
    }

    pub(super) fn get(&self, kmer: W) -> u32 {
        let mask = self.slots.len() - 1;
        let mut index = self.start(kmer);
        loop {
            let slot = self.slots[index & mask];
            if slot.1 == 0 || slot.0 == kmer {
                return slot.1;
            }
            index += 1;
        }
    }

    pub(super) fn len(&self) -> usize {
        self.used
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (W, u32)> + '_ {
        self.slots.iter().copied().filter(|slot| slot.1 != 0)
    }
}

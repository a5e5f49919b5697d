//! A hash table that counts the k-mers of one part after the other.

use super::Word;

/// Open addressing; a slot with the count 0 is free. Its memory serves every part.
#[derive(Debug, Default)]
pub(super) struct Table<W> {
    kmers: Vec<W>,
    counts: Vec<u32>,
}

impl<W: Word> Table<W> {
    /// The different k-mers of slices and how often each occurs. The hashes of all share so many high bits.
    pub(super) fn count<'a>(
        &mut self,
        slices: impl Iterator<Item = &'a [W]> + Clone,
        shared_bits: u32,
    ) -> (Box<[W]>, Box<[u32]>)
    where
        W: 'a,
    {
        let total: usize = slices.clone().map(<[W]>::len).sum();
        let slots = (total + total / 2).next_power_of_two().max(16);
        if self.kmers.len() < slots {
            self.kmers.resize(slots, W::default());
            self.counts.resize(slots, 0);
        }
        let (kmers, counts) = (&mut self.kmers[..slots], &mut self.counts[..slots]);
        let (mask, shift) = (slots - 1, 64 - slots.ilog2());
        let mut distinct = 0;
        for &kmer in slices.flatten() {
            let mut slot = (kmer.hash() << shared_bits >> shift) as usize & mask;
            while counts[slot] != 0 && kmers[slot] != kmer {
                slot = (slot + 1) & mask;
            }
            kmers[slot] = kmer;
            distinct += usize::from(counts[slot] == 0);
            counts[slot] = counts[slot].saturating_add(1);
        }
        let mut result = (Vec::with_capacity(distinct), Vec::with_capacity(distinct));
        for (&kmer, count) in kmers.iter().zip(counts.iter_mut()).filter(|(_, count)| **count != 0) {
            result.0.push(kmer);
            // The table is left empty for the next part.
            result.1.push(std::mem::take(count));
        }
        (result.0.into_boxed_slice(), result.1.into_boxed_slice())
    }
}

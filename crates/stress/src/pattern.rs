//! Data that can be made again: every word is known from the seed and its place.

use crate::load::Work;

/// Bytes of a word.
const WORD: usize = size_of::<u64>();

/// Bytes that are compared at once: what has no difference must not cost more than reading it.
const PAGE: usize = 4096;

/// A generator of words from a seed and a place: SplitMix64's output function over a Weyl sequence.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pattern {
    seed: u64,
}

impl Pattern {
    pub(crate) fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// The word at a place.
    fn word(self, place: u64) -> u64 {
        let mut value = self.seed.wrapping_add(place.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        value ^ (value >> 31)
    }

    /// Fills memory whose first word has this place.
    pub(crate) fn fill(self, bytes: &mut [u8], first: u64) {
        for (chunk, place) in bytes.chunks_mut(WORD).zip(first..) {
            chunk.copy_from_slice(&self.word(place).to_le_bytes()[..chunk.len()]);
        }
    }

    /// The first word that differs from what was filled.
    pub(crate) fn first_difference(self, bytes: &[u8], first: u64) -> Option<Difference> {
        let mut expected = [0; PAGE];
        for (page, place) in bytes.chunks(PAGE).zip((first..).step_by(PAGE / WORD)) {
            let expected = &mut expected[..page.len()];
            self.fill(expected, place);
            if let Some(difference) = difference(page, expected) {
                let before = (place - first) as usize * WORD;
                return Some(Difference { offset: before + difference.offset, ..difference });
            }
        }
        None
    }

    /// Notes where memory differs from what was filled.
    pub(crate) fn check(
        self,
        work: &mut Work,
        what: &str,
        bytes: &[u8],
        first: u64,
        place: impl Fn(usize) -> String,
    ) {
        if let Some(difference) = self.first_difference(bytes, first) {
            work.mismatch(what, place(difference.offset), difference.expected, difference.found);
        }
    }
}

/// A word that is not what was written.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Difference {
    /// Bytes from the start of what was compared.
    pub(crate) offset: usize,
    pub(crate) expected: String,
    pub(crate) found: String,
}

/// The first word in which two pieces of memory of equal size differ.
fn difference(found: &[u8], expected: &[u8]) -> Option<Difference> {
    if found == expected {
        return None;
    }
    let words = found.chunks(WORD).zip(expected.chunks(WORD));
    let (index, (found, expected)) = words.enumerate().find(|(_, (found, expected))| found != expected)?;
    Some(Difference { offset: index * WORD, expected: hex(expected), found: hex(found) })
}

/// The first word of memory that should be full of one byte and is not.
pub(crate) fn first_other(bytes: &[u8], byte: u8) -> Option<Difference> {
    let expected = [byte; PAGE];
    for (page, index) in bytes.chunks(PAGE).zip(0..) {
        if let Some(difference) = difference(page, &expected[..page.len()]) {
            return Some(Difference { offset: index * PAGE + difference.offset, ..difference });
        }
    }
    None
}

/// Bytes as people compare them.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_single_bit_that_changes_is_found_where_it_is() {
        let pattern = Pattern::new(11);
        let mut bytes = vec![0; 61];
        pattern.fill(&mut bytes, 5);
        assert_eq!(pattern.first_difference(&bytes, 5), None);
        assert!(Pattern::new(12).first_difference(&bytes, 5).is_some());
        assert!(pattern.first_difference(&bytes, 6).is_some(), "data at another place is no match");
        for bit in 0..8 * bytes.len() {
            bytes[bit / 8] ^= 1 << (bit % 8);
            let difference = pattern.first_difference(&bytes, 5).unwrap();
            assert_eq!(difference.offset, bit / 64 * 8);
            assert_ne!(difference.expected, difference.found);
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
    }

    #[test]
    fn differences_far_into_memory_have_their_place() {
        let pattern = Pattern::new(3);
        let mut bytes = vec![0; 3 * PAGE + 24];
        pattern.fill(&mut bytes, 100);
        bytes[2 * PAGE + 17] ^= 4;
        assert_eq!(pattern.first_difference(&bytes, 100).unwrap().offset, 2 * PAGE + 16);
        let mut bytes = vec![0x55; 3 * PAGE + 24];
        assert_eq!(first_other(&bytes, 0x55), None);
        bytes[3 * PAGE + 9] = 0x54;
        let difference = first_other(&bytes, 0x55).unwrap();
        assert_eq!((difference.offset, difference.found.as_str()), (3 * PAGE + 8, "5554555555555555"));
    }
}

//! Minimizers: of every `w` consecutive k-mers the one with the smallest hash, the same on both strands.

use crate::seq::OTHER;

/// An invertible mix of the bits, so that k-mers of few letters are not always the smallest.
#[inline]
pub(super) fn mix(kmer: u64) -> u64 {
    let mut key = kmer.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    key ^= key >> 32;
    key = key.wrapping_mul(0xD6E8_FEB8_6659_FD93);
    key ^ (key >> 32)
}

/// The minimizers of a sequence in order: hash, begin, and whether the k-mer of the other strand is the smaller one.
pub(super) fn collect(sequence: &[u8], k: usize, w: usize, found: &mut Vec<(u64, u32, bool)>) {
    found.clear();
    let mask = (1u64 << (2 * k)) - 1;
    let shift = 2 * (k - 1);
    let (mut forward, mut reverse, mut valid) = (0u64, 0u64, 0usize);
    // The last w k-mers in a ring; a k-mer that is none has the largest hash.
    let none = (u64::MAX, 0u32, false);
    let mut ring = vec![none; w];
    let mut least = none;
    let mut least_at = 0;
    let mut last_taken = u32::MAX;
    for (end, &code) in sequence.iter().enumerate() {
        let mut here = none;
        if code < OTHER {
            forward = ((forward << 2) | u64::from(code)) & mask;
            reverse = (reverse >> 2) | (u64::from(3 - code) << shift);
            valid += 1;
            // A k-mer that is its own reverse complement has no strand.
            if valid >= k && forward != reverse {
                let start = (end + 1 - k) as u32;
                here = (mix(forward.min(reverse)), start, reverse < forward);
            }
        } else {
            valid = 0;
        }
        if end + 1 < k {
            continue;
        }
        let slot = (end + 1 - k) % w;
        ring[slot] = here;
        if here.0 <= least.0 {
            (least, least_at) = (here, slot);
        } else if slot == least_at {
            // The minimizer left the window.
            least = none;
            for offset in 1..=w {
                let place = (slot + offset) % w;
                if ring[place].0 <= least.0 {
                    (least, least_at) = (ring[place], place);
                }
            }
        }
        let full = end + 2 > k + w - 1;
        if full && least.0 != u64::MAX && least.1 != last_taken {
            found.push(least);
            last_taken = least.1;
        }
    }
    // A sequence shorter than a window has its smallest k-mer.
    if found.is_empty() && least.0 != u64::MAX {
        found.push(least);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seq::reverse_complement;
    use crate::simulate::genome;

    #[test]
    fn both_strands_have_the_same_minimizers() {
        let bases = genome(5_000, 2);
        let (mut forward, mut reverse) = (Vec::new(), Vec::new());
        collect(&bases, 15, 10, &mut forward);
        collect(&reverse_complement(&bases), 15, 10, &mut reverse);
        let mut mirrored: Vec<_> =
            reverse.iter().map(|&(hash, start, strand)| (hash, 5_000 - start - 15, !strand)).collect();
        mirrored.sort_by_key(|minimizer| minimizer.1);
        // Ties within a window may fall differently.
        let same = forward.iter().filter(|minimizer| mirrored.contains(minimizer)).count();
        assert!(same * 100 >= forward.len() * 98, "{same} of {}", forward.len());
        let density = forward.len() as f64 / 5_000.0;
        assert!((0.14..0.25).contains(&density), "{density}");
    }

    #[test]
    fn short_and_unknown_sequences_are_no_trouble() {
        let mut found = Vec::new();
        collect(&[], 15, 10, &mut found);
        assert!(found.is_empty());
        collect(&[4; 100], 15, 10, &mut found);
        assert!(found.is_empty());
        collect(&genome(18, 3), 15, 10, &mut found);
        assert_eq!(found.len(), 1);
    }
}

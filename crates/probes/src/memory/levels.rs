//! How much memory to use so that one level of the memory hierarchy serves it.

/// One level of cache as a set of threads sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheLevel {
    /// 1 is the closest to the core.
    pub level: u8,
    /// The size of one instance.
    pub bytes: u64,
    /// How many of the threads share one instance.
    pub threads_sharing: u64,
    /// How many instances the threads use together.
    pub instances: u64,
}

/// The least for main memory, where caches are small or unknown.
const LEAST_DRAM_BYTES: u64 = 256 << 20;

/// The most for main memory: more would only cost time to touch.
const MOST_DRAM_BYTES: u64 = 8 << 30;

/// A set that is two and a half times the level above is beyond it: both streams and a chase come round only after the
/// level above has dropped what they need. The rest of a large cache is left to others that share it and that a virtual
/// machine cannot see.
const HALVES_OF_LEVEL_ABOVE: u64 = 5;

/// Main memory gets this many times the size of the last caches together.
const TIMES_LAST_CACHE: u64 = 4;

/// The caches that a set of threads sees, the closest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hierarchy {
    levels: Vec<CacheLevel>,
}

impl Hierarchy {
    /// A hierarchy of these caches, in any order.
    #[must_use]
    pub fn new(mut levels: Vec<CacheLevel>) -> Self {
        levels.sort_by_key(|cache| cache.level);
        Self { levels }
    }

    /// What is assumed where the system does not report it: 32 KiB and 1 MiB for each thread, 32 MiB shared by all.
    #[must_use]
    pub fn assumed(threads: u64) -> Self {
        let own = |level, bytes| CacheLevel { level, bytes, threads_sharing: 1, instances: threads };
        let shared = CacheLevel { level: 3, bytes: 32 << 20, threads_sharing: threads, instances: 1 };
        Self { levels: vec![own(1, 32 << 10), own(2, 1 << 20), shared] }
    }

    /// The caches, the closest first.
    #[must_use]
    pub fn levels(&self) -> &[CacheLevel] {
        &self.levels
    }

    /// The bytes each thread works on so that the cache at this position of [`Self::levels`] serves it: half of the
    /// thread's share or two and a half times the level above, whichever is less.
    ///
    /// Where a share is hardly larger than the level above, as with the last caches that hold only what the level
    /// above has dropped, it is the level above and half of the share. `None` if there is no such cache.
    #[must_use]
    pub fn bytes_per_thread(&self, position: usize) -> Option<u64> {
        let share = |cache: &CacheLevel| cache.bytes / cache.threads_sharing.max(1);
        let half = share(self.levels.get(position)?) / 2;
        let Some(above) = position.checked_sub(1).map(|above| share(&self.levels[above])) else {
            return Some(half);
        };
        Some(if half < above + above / 2 {
            above + half
        } else {
            half.min(above.saturating_mul(HALVES_OF_LEVEL_ABOVE) / 2)
        })
    }

    /// The bytes to use in all so that main memory serves them: four times the last caches that the threads use, but
    /// no less than 256 MiB and no more than 8 GiB.
    #[must_use]
    pub fn dram_bytes(&self) -> u64 {
        self.wanted_dram_bytes().clamp(LEAST_DRAM_BYTES, MOST_DRAM_BYTES)
    }

    /// Whether so many bytes in all are too few to be served by main memory alone.
    #[must_use]
    pub fn may_be_cached(&self, bytes: u64) -> bool {
        bytes < self.wanted_dram_bytes()
    }

    fn wanted_dram_bytes(&self) -> u64 {
        self.levels
            .last()
            .map_or(0, |last| last.bytes.saturating_mul(last.instances).saturating_mul(TIMES_LAST_CACHE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: u64 = 1 << 10;
    const MIB: u64 = 1 << 20;

    fn hierarchy(caches: &[(u8, u64, u64, u64)]) -> Hierarchy {
        let level = |&(level, bytes, threads_sharing, instances)| CacheLevel {
            level,
            bytes,
            threads_sharing,
            instances,
        };
        Hierarchy::new(caches.iter().map(level).collect())
    }

    fn sizes(hierarchy: &Hierarchy) -> Vec<u64> {
        (0..hierarchy.levels().len()).map(|position| hierarchy.bytes_per_thread(position).unwrap()).collect()
    }

    #[test]
    fn a_large_shared_cache_is_not_filled() {
        let two_cores = hierarchy(&[(3, 300 * MIB, 2, 1), (1, 48 * KIB, 1, 2), (2, 2 * MIB, 1, 2)]);
        assert_eq!(sizes(&two_cores), [24 * KIB, 120 * KIB, 5 * MIB]);
        assert_eq!(two_cores.dram_bytes(), 1200 * MIB);
        assert_eq!(two_cores.bytes_per_thread(3), None);
    }

    #[test]
    fn threads_that_share_a_cache_divide_it() {
        let siblings = hierarchy(&[(1, 32 * KIB, 2, 4), (2, 512 * KIB, 2, 4), (3, 16 * MIB, 8, 1)]);
        assert_eq!(sizes(&siblings), [8 * KIB, 40 * KIB, 640 * KIB]);
    }

    #[test]
    fn a_last_cache_that_holds_what_the_level_above_dropped() {
        let victim = hierarchy(&[(1, 32 * KIB, 1, 24), (2, MIB, 1, 24), (3, 33 * MIB, 24, 1)]);
        assert_eq!(sizes(&victim)[2], MIB + 33 * MIB / 48);
        assert!(sizes(&victim)[2] > MIB);
    }

    #[test]
    fn every_instance_of_the_last_cache_counts_for_main_memory() {
        let chiplets = hierarchy(&[(1, 32 * KIB, 1, 64), (3, 32 * MIB, 8, 8)]);
        assert_eq!(chiplets.dram_bytes(), 1024 * MIB);
        assert!(chiplets.may_be_cached(1023 * MIB) && !chiplets.may_be_cached(1024 * MIB));
        let huge = hierarchy(&[(3, 1152 * MIB, 8, 12)]);
        assert_eq!(huge.dram_bytes(), MOST_DRAM_BYTES);
        assert!(huge.may_be_cached(huge.dram_bytes()));
    }

    #[test]
    fn without_information_there_are_defaults() {
        let assumed = Hierarchy::assumed(4);
        assert_eq!(sizes(&assumed), [16 * KIB, 80 * KIB, 5 * MIB / 2]);
        let none = hierarchy(&[]);
        assert_eq!((sizes(&none), none.dram_bytes()), (vec![], LEAST_DRAM_BYTES));
        let only_first = hierarchy(&[(1, 64 * KIB, 1, 1)]);
        assert_eq!(only_first.dram_bytes(), LEAST_DRAM_BYTES);
    }
}

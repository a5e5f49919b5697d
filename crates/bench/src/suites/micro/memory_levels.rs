//! What the memory benchmarks share: the caches and the memory of this machine, and lists of names in parameters.

use std::collections::BTreeMap;

use warpforge_inventory::hardware::cpu::{Cache, CacheKind};
use warpforge_inventory::hardware::{Cpu, Memory};
use warpforge_probes::memory::levels::{CacheLevel, Hierarchy};
use warpforge_probes::memory::{MemoryError, Pages};

use crate::benchmark::{BenchmarkError, RunContext};

/// The name of main memory among the levels.
pub(super) const DRAM: &str = "DRAM";

/// The size of a cache line where the system does not report it.
const ASSUMED_LINE_BYTES: u32 = 64;

/// Of the memory that is available, a benchmark takes at most one part in this many by default.
const MODEST_SHARE: u64 = 4;

/// The machine as the memory benchmarks see it.
#[derive(Debug, Clone, PartialEq)]
pub struct Machine {
    /// The caches that hold data.
    caches: Vec<Cache>,
    /// What could be had without swapping; `None` if the system does not report it.
    available_bytes: Option<u64>,
}

impl Machine {
    /// This machine.
    #[must_use]
    pub fn detect() -> Self {
        let memory = Memory::detect();
        let available = [memory.available_bytes, memory.limit_bytes].into_iter().flatten().min();
        Self::new(Cpu::detect().caches, available)
    }

    fn new(mut caches: Vec<Cache>, available_bytes: Option<u64>) -> Self {
        caches.retain(|cache| cache.kind != CacheKind::Instruction);
        Self { caches, available_bytes }
    }

    /// A machine that reports nothing.
    #[cfg(test)]
    pub(super) fn unknown() -> Self {
        Self::new(vec![], None)
    }

    /// The caches as threads on these processors see them, or the assumed ones.
    #[must_use]
    pub fn hierarchy(&self, cpus: &[usize]) -> Hierarchy {
        let mut levels: BTreeMap<u8, CacheLevel> = BTreeMap::new();
        for cache in &self.caches {
            for instance in cache.instance_cpus() {
                let sharing =
                    cpus.iter().filter(|&&cpu| instance.iter().any(|&other| other as usize == cpu)).count();
                if sharing == 0 {
                    continue;
                }
                let level = levels.entry(cache.level).or_insert(CacheLevel {
                    level: cache.level,
                    bytes: cache.size_bytes,
                    threads_sharing: 0,
                    instances: 0,
                });
                // Where cores differ, what is right for the smallest is right for all.
                level.bytes = level.bytes.min(cache.size_bytes);
                level.threads_sharing = level.threads_sharing.max(sharing as u64);
                level.instances += 1;
            }
        }
        if levels.is_empty() {
            Hierarchy::assumed(cpus.len() as u64)
        } else {
            Hierarchy::new(levels.into_values().collect())
        }
    }

    /// The size of a cache line.
    pub(super) fn line_bytes(&self) -> usize {
        self.caches.iter().find_map(|cache| cache.line_size_bytes).unwrap_or(ASSUMED_LINE_BYTES) as usize
    }

    /// The bytes that the caches call for to measure main memory, and that are modest.
    #[must_use]
    pub fn modest_dram_bytes(&self, hierarchy: &Hierarchy) -> u64 {
        let modest = self.available_bytes.map(|bytes| bytes / MODEST_SHARE);
        hierarchy.dram_bytes().min(modest.unwrap_or(u64::MAX))
    }

    /// The bytes to use for main memory: what the user wants, or what the caches call for and is modest.
    ///
    /// # Errors
    /// If the user wants less than `least` or more than there is.
    pub(super) fn dram_bytes(
        &self,
        parameter: &str,
        wanted: i64,
        least: u64,
        hierarchy: &Hierarchy,
    ) -> Result<u64, BenchmarkError> {
        let bad = |reason: String| BenchmarkError::BadInput(format!("{parameter}={wanted}: {reason}"));
        let wanted = u64::try_from(wanted).map_err(|_| bad("a size is not negative".to_owned()))?;
        if wanted == 0 {
            return Ok(self.modest_dram_bytes(hierarchy).max(least));
        }
        if wanted < least {
            return Err(bad(format!("at least {least} bytes are needed, 0 chooses a size")));
        }
        match self.available_bytes {
            Some(available) if wanted > available / 4 * 3 => {
                Err(bad(format!("more than three quarters of the {available} bytes of memory available")))
            }
            _ => Ok(wanted),
        }
    }

    /// Says in the result what the reader of the figures should know about their sizes.
    pub(super) fn warn(&self, context: &mut RunContext<'_>, hierarchy: &Hierarchy, dram_bytes: Option<u64>) {
        if self.caches.is_empty() {
            context.warn(
                "the system does not tell the cache sizes; 32 KiB (L1), 1 MiB (L2) and 32 MiB (L3) were assumed, so \
                 a level's figure may be that of another",
            );
        }
        if let Some(bytes) = dram_bytes.filter(|&bytes| hierarchy.may_be_cached(bytes)) {
            context.warn(format!(
                "main memory was measured over {} MiB, less than four times the last cache: caches may have served a \
                 part of it",
                bytes >> 20
            ));
        }
    }
}

/// Says in the result if the pages were not those that were asked for.
pub(super) fn warn_of_pages(
    context: &mut RunContext<'_>,
    asked: Pages,
    level: &str,
    huge_share: Option<f64>,
) {
    let percent = huge_share.map(|share| (share * 100.0).round());
    match (asked, percent) {
        (Pages::Huge, Some(percent)) if percent < 90.0 => context.warn(format!(
            "{level}: only {percent} % of the memory is in huge pages; see /sys/kernel/mm/transparent_hugepage/enabled"
        )),
        (Pages::Default, Some(percent)) if percent > 10.0 => context.warn(format!(
            "{level}: {percent} % of the memory is in huge pages, which this system gives to all programs"
        )),
        _ => {}
    }
}

/// What a parameter for [`named`] takes.
pub(super) fn list_of(names: &[&str]) -> String {
    format!("a list of {}, or all", names.join(", "))
}

/// The things that a comma-separated list names, each once, in the order of `known`; `all` names all of them.
///
/// # Errors
/// If it names none, or one that does not exist.
pub(super) fn named<T: Copy>(
    parameter: &str,
    list: &str,
    known: &[(String, T)],
) -> Result<Vec<(String, T)>, BenchmarkError> {
    let bad = |what: String| {
        let names: Vec<_> = known.iter().map(|(name, _)| name.as_str()).collect();
        BenchmarkError::BadInput(format!("{parameter}={list}: {what}; there are: all, {}", names.join(", ")))
    };
    let wanted: Vec<_> = list.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
    if wanted.is_empty() {
        return Err(bad("nothing is named".to_owned()));
    }
    let is_all = |name: &&str| name.eq_ignore_ascii_case("all");
    let unknown = wanted
        .iter()
        .find(|name| !is_all(name) && !known.iter().any(|(existing, _)| existing.eq_ignore_ascii_case(name)));
    if let Some(unknown) = unknown {
        return Err(bad(format!("there is no `{unknown}`")));
    }
    let all = wanted.iter().any(is_all);
    let chosen = |name: &str| all || wanted.iter().any(|wanted| wanted.eq_ignore_ascii_case(name));
    Ok(known.iter().filter(|(name, _)| chosen(name)).cloned().collect())
}

impl From<MemoryError> for BenchmarkError {
    fn from(error: MemoryError) -> Self {
        Self::Failed(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache(level: u8, kind: CacheKind, size_bytes: u64, lists: &[&str]) -> Cache {
        Cache {
            level,
            kind,
            size_bytes,
            instances: lists.len() as u32,
            line_size_bytes: Some(64),
            ways: None,
            shared_by_threads: None,
            shared_cpu_lists: lists.iter().map(|&list| list.to_owned()).collect(),
        }
    }

    fn machine() -> Machine {
        let caches = vec![
            cache(1, CacheKind::Instruction, 1 << 20, &["0", "1", "2", "3"]),
            cache(1, CacheKind::Data, 48 << 10, &["0", "1"]),
            cache(1, CacheKind::Data, 32 << 10, &["2", "3"]),
            cache(3, CacheKind::Unified, 64 << 20, &["0-1", "2-3"]),
        ];
        Machine::new(caches, Some(8 << 30))
    }

    #[test]
    fn only_the_caches_of_the_threads_count() {
        let level = |level, bytes, threads_sharing, instances| CacheLevel {
            level,
            bytes,
            threads_sharing,
            instances,
        };
        let machine = machine();
        assert_eq!(machine.hierarchy(&[0]).levels(), [level(1, 48 << 10, 1, 1), level(3, 64 << 20, 1, 1)]);
        assert_eq!(machine.hierarchy(&[0, 1]).levels(), [level(1, 48 << 10, 1, 2), level(3, 64 << 20, 2, 1)]);
        assert_eq!(
            machine.hierarchy(&[0, 1, 2]).levels(),
            [level(1, 32 << 10, 1, 3), level(3, 64 << 20, 2, 2)]
        );
    }

    #[test]
    fn an_unknown_machine_is_assumed_to_be_common() {
        let unknown = Machine::unknown();
        assert_eq!(unknown.hierarchy(&[0, 1]), Hierarchy::assumed(2));
        assert_eq!(unknown.line_bytes(), 64);
        assert_eq!(machine().hierarchy(&[17]), Hierarchy::assumed(1));
    }

    #[test]
    fn main_memory_is_used_modestly_unless_told_otherwise() {
        let (machine, hierarchy) = (machine(), machine().hierarchy(&[0, 1]));
        assert_eq!(machine.dram_bytes("dram_bytes", 0, 4096, &hierarchy), Ok(256 << 20));
        let poor = Machine { available_bytes: Some(512 << 20), ..machine.clone() };
        assert_eq!(poor.dram_bytes("dram_bytes", 0, 4096, &hierarchy), Ok(128 << 20));
        assert!(hierarchy.may_be_cached(128 << 20));
        assert_eq!(machine.dram_bytes("dram_bytes", 5 << 30, 4096, &hierarchy), Ok(5 << 30));
        for wrong in [-1, 4095, 7 << 30] {
            let error = machine.dram_bytes("dram_bytes", wrong, 4096, &hierarchy).unwrap_err();
            assert!(matches!(error, BenchmarkError::BadInput(_)));
            assert!(error.to_string().contains(&format!("dram_bytes={wrong}")), "{error}");
        }
    }

    #[test]
    fn names_are_taken_in_order_and_unknown_ones_refused() {
        let known: Vec<_> = ["L1", "L2", "DRAM"].into_iter().map(str::to_owned).zip(0..).collect();
        let chosen = |list| -> Result<Vec<i32>, _> {
            named("levels", list, &known).map(|chosen| chosen.into_iter().map(|(_, value)| value).collect())
        };
        assert_eq!(chosen("dram, l1,L1"), Ok(vec![0, 2]));
        assert_eq!(chosen("all"), Ok(vec![0, 1, 2]));
        let error = chosen("L1,L7").unwrap_err().to_string();
        assert!(error.contains("`L7`") && error.contains("all, L1, L2, DRAM"), "{error}");
        assert!(matches!(chosen(" ,"), Err(BenchmarkError::BadInput(_))));
    }
}

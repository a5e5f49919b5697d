//! The parameters of `mem_bandwidth`, checked against the machine.

use warpforge_probes::memory::Pages;
use warpforge_probes::memory::levels::Hierarchy;
use warpforge_probes::memory::stream::{Kernel, Routine, Stores};

use super::super::memory_levels::{DRAM, Machine, list_of, named};
use crate::benchmark::{BenchmarkError, int, text};
use crate::record::Params;

/// Each thread gets at least this much of main memory.
const LEAST_DRAM_BYTES_PER_THREAD: u64 = 1 << 20;

/// What serves the memory that is streamed through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Level {
    /// The cache of this number.
    Cache(u8),
    /// No cache.
    Dram,
}

impl Level {
    /// Its part of the time: main memory varies most, and has twice as many figures.
    pub(super) fn weight(self) -> u32 {
        match self {
            Self::Cache(_) => 1,
            Self::Dram => 5,
        }
    }

    /// The kinds of stores that are measured: those past the caches only where nothing is to stay in them.
    pub(super) fn stores(self) -> &'static [Stores] {
        match self {
            Self::Cache(_) => &[Stores::Ordinary],
            Self::Dram => &[Stores::Ordinary, Stores::Nontemporal],
        }
    }
}

/// What the parameters take.
pub(super) fn takes() -> Vec<(&'static str, String)> {
    vec![
        ("threads", "as many as there are processors and fewer; 0 for all".to_owned()),
        ("levels", format!("a list of the machine's caches, such as L1, L2, and {DRAM}, or all")),
        ("kernels", list_of(&Kernel::ALL.map(Kernel::name))),
        (
            "dram_bytes",
            format!(
                "{LEAST_DRAM_BYTES_PER_THREAD} a thread and more, up to three quarters of the memory; 0 chooses"
            ),
        ),
        ("pages", Pages::ALL.map(Pages::name).join(" or ")),
    ]
}

/// What to measure.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Settings {
    cpus: Vec<usize>,
    /// Whether `cpus` are all that may be used.
    all: bool,
    /// The levels by name, the closest first.
    pub(super) levels: Vec<(String, Level)>,
    /// The kernels by name, in STREAM's order.
    pub(super) kernels: Vec<(String, Kernel)>,
    /// The bytes for main memory, of all threads together.
    pub(super) dram_bytes: u64,
    /// Whether the user has chosen them; fewer threads may need less otherwise.
    dram_bytes_given: bool,
    /// The pages for main memory.
    pub(super) pages: Pages,
}

impl Settings {
    /// # Errors
    /// If a parameter makes no sense on this machine.
    pub(super) fn new(params: &Params, machine: &Machine, allowed: &[usize]) -> Result<Self, BenchmarkError> {
        let wanted = int(params, "threads");
        let threads = match usize::try_from(wanted) {
            Ok(0) => allowed.len(),
            Ok(threads) if threads <= allowed.len() => threads,
            _ => {
                let reason = format!("threads={wanted}: give 1 to {}, or 0 for all", allowed.len());
                return Err(BenchmarkError::BadInput(reason));
            }
        };
        let cpus = allowed[..threads].to_vec();
        let hierarchy = machine.hierarchy(&cpus);
        let mut known: Vec<_> = hierarchy
            .levels()
            .iter()
            .map(|cache| (format!("L{}", cache.level), Level::Cache(cache.level)))
            .collect();
        known.push((DRAM.to_owned(), Level::Dram));
        let least = LEAST_DRAM_BYTES_PER_THREAD * threads as u64;
        Ok(Self {
            levels: named("levels", text(params, "levels"), &known)?,
            kernels: named(
                "kernels",
                text(params, "kernels"),
                &Kernel::ALL.map(|kernel| (kernel.name().to_owned(), kernel)),
            )?,
            dram_bytes: machine.dram_bytes("dram_bytes", int(params, "dram_bytes"), least, &hierarchy)?,
            dram_bytes_given: int(params, "dram_bytes") != 0,
            pages: one_of_pages(text(params, "pages"))?,
            all: threads == allowed.len(),
            cpus,
        })
    }

    /// The sets of processors to measure with, the largest first, and what they are called.
    pub(super) fn scopes(&self) -> Vec<(&'static str, Vec<usize>)> {
        let one = ("one_core", self.cpus[..1].to_vec());
        match (self.cpus.len(), self.all) {
            (1, _) => vec![one],
            (_, true) => vec![("all_cores", self.cpus.clone()), one],
            (_, false) => vec![("some_cores", self.cpus.clone()), one],
        }
    }

    /// The bytes for each of so many threads at a level; `None` if they have no such cache.
    pub(super) fn bytes_per_thread(
        &self,
        level: Level,
        hierarchy: &Hierarchy,
        threads: usize,
    ) -> Option<usize> {
        let bytes = match level {
            Level::Cache(number) => {
                let position = hierarchy.levels().iter().position(|cache| cache.level == number)?;
                hierarchy.bytes_per_thread(position)?
            }
            Level::Dram if self.dram_bytes_given => self.dram_bytes / threads as u64,
            Level::Dram => self.dram_bytes.min(hierarchy.dram_bytes()) / threads as u64,
        };
        usize::try_from(bytes).ok()
    }

    /// How many metrics one scope has.
    pub(super) fn measurements(&self) -> usize {
        self.levels.iter().map(|(_, level)| self.measurements_of(*level)).sum()
    }

    /// How many metrics one level has.
    pub(super) fn measurements_of(&self, level: Level) -> usize {
        let possible = |(kernel, stores)| Routine::widest(kernel, stores).is_some();
        self.kernels
            .iter()
            .flat_map(|(_, kernel)| level.stores().iter().map(|stores| (*kernel, *stores)))
            .filter(|&pair| possible(pair))
            .count()
    }
}

fn one_of_pages(name: &str) -> Result<Pages, BenchmarkError> {
    Pages::ALL.into_iter().find(|pages| pages.name() == name).ok_or_else(|| {
        BenchmarkError::BadInput(format!(
            "pages={name}: there are: {}",
            Pages::ALL.map(Pages::name).join(", ")
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::super::MemBandwidth;
    use super::*;
    use crate::suites::testing::{refused, round};

    fn settings(changes: &[(&str, &str)]) -> Result<Settings, BenchmarkError> {
        Settings::new(&round(&MemBandwidth, changes, 0.0).params, &Machine::unknown(), &[4, 5, 6])
    }

    #[test]
    fn by_default_everything_is_measured() {
        let settings = settings(&[]).unwrap();
        let names: Vec<_> = settings.levels.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["L1", "L2", "L3", "DRAM"]);
        assert_eq!(settings.kernels.len(), 4);
        assert_eq!(settings.scopes(), [("all_cores", vec![4, 5, 6]), ("one_core", vec![4])]);
        assert!(settings.measurements() >= 16);
    }

    #[test]
    fn threads_can_be_fewer() {
        assert_eq!(
            settings(&[("threads", "2")]).unwrap().scopes(),
            [("some_cores", vec![4, 5]), ("one_core", vec![4])]
        );
        assert_eq!(settings(&[("threads", "1")]).unwrap().scopes(), [("one_core", vec![4])]);
    }

    #[test]
    fn levels_and_sizes_are_what_was_asked_for() {
        let settings =
            settings(&[("levels", "dram,L2"), ("kernels", "triad"), ("dram_bytes", "30000000")]).unwrap();
        let hierarchy = Hierarchy::assumed(3);
        assert_eq!(settings.bytes_per_thread(Level::Dram, &hierarchy, 1), Some(30_000_000));
        assert_eq!(
            settings.levels.iter().map(|(_, level)| *level).collect::<Vec<_>>(),
            [Level::Cache(2), Level::Dram]
        );
        assert_eq!(settings.bytes_per_thread(Level::Dram, &hierarchy, 3), Some(10_000_000));
        assert_eq!(settings.bytes_per_thread(Level::Cache(2), &hierarchy, 3), Some(80 << 10));
        assert_eq!(settings.bytes_per_thread(Level::Cache(4), &hierarchy, 3), None);
    }

    #[test]
    fn what_makes_no_sense_is_named() {
        let settings = |name: &str, value: &str| settings(&[(name, value)]);
        refused(settings, "threads", &["4", "-1"], "1 to 3");
        refused(settings, "levels", &["L9"], "L1, L2, L3, DRAM");
        refused(settings, "kernels", &["quad"], "copy, scale, add, triad");
        refused(settings, "dram_bytes", &["-5"], "negative");
        refused(settings, "dram_bytes", &["5"], "at least");
        refused(settings, "pages", &["tiny"], "default, huge");
    }
}

//! The lines of the roofline: peaks of arithmetic and bandwidths of levels.

use std::fmt;

use serde::Serialize;

use crate::profile::{Bandwidth, Mode, Profile};

/// The access that reads what another thread has just written.
const EXCHANGE: &str = "exchange";

/// What bounds a kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "resource", content = "of", rename_all = "lowercase")]
pub enum Bound {
    /// Arithmetic in this type.
    Arithmetic(String),
    /// The bandwidth of this level.
    Memory(String),
    /// What it costs to begin a kernel.
    Overhead,
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Arithmetic(dtype) => write!(f, "{dtype} arithmetic"),
            Self::Memory(level) => write!(f, "{level} bandwidth"),
            Self::Overhead => f.write_str("overhead"),
        }
    }
}

/// A level of memory.
#[derive(Debug, Clone)]
struct Level {
    name: String,
    /// What it holds, all instances together; main memory holds everything.
    bytes: u64,
    /// Bytes a second, reading and writing.
    triad: f64,
    /// Bytes a second, reading alone.
    read: f64,
    /// What was gone round in when they were measured, all threads together.
    measured_at: u64,
}

/// Peaks and bandwidths of a device.
#[derive(Debug, Clone)]
pub(super) struct Limits {
    /// Operations a second by type.
    peaks: Vec<(String, f64)>,
    /// The nearest first.
    levels: Vec<Level>,
    exchange: Option<Exchange>,
}

/// Reading what other threads have just written.
#[derive(Debug, Clone, Copy)]
struct Exchange {
    /// What stays in the caches of those that wrote it, all of them together.
    bytes: u64,
    /// Bytes a second, all threads together.
    rate: f64,
    threads: f64,
}

impl Limits {
    /// The limits of a device with so many threads: sustained peaks where they were measured.
    pub(super) fn new(profile: &Profile, device: &str, threads: usize) -> Self {
        let mut peaks: Vec<(String, Mode, f64)> = Vec::new();
        for peak in profile.peaks.iter().filter(|peak| peak.device == device && peak.threads == threads) {
            match peaks.iter_mut().find(|(dtype, mode, _)| *dtype == peak.dtype && *mode == peak.mode) {
                Some((_, _, best)) => *best = best.max(peak.gops * 1e9),
                None => peaks.push((peak.dtype.clone(), peak.mode, peak.gops * 1e9)),
            }
        }
        let sustained =
            |dtype: &str| peaks.iter().any(|(known, mode, _)| known == dtype && *mode == Mode::Sustained);
        let peaks = peaks
            .iter()
            .filter(|(dtype, mode, _)| *mode == Mode::Sustained || !sustained(dtype))
            .map(|(dtype, _, rate)| (dtype.clone(), *rate))
            .collect();
        let levels = levels(profile, device, threads);
        let exchanged = |found: &&Bandwidth| {
            found.device == device && found.threads == threads && found.access == EXCHANGE
        };
        let exchange = profile.bandwidth.iter().find(exchanged).and_then(|found| {
            let level = levels.iter().find(|level| level.name == found.level)?;
            Some(Exchange { bytes: level.bytes, rate: found.gbps * 1e9, threads: threads as f64 })
        });
        Self { peaks, levels, exchange }
    }

    /// Operations a second of a type; tf32 is f32's where it was not measured.
    pub(super) fn peak(&self, dtype: &str) -> Option<f64> {
        let of = |name: &str| self.peaks.iter().find(|(known, _)| known == name).map(|(_, rate)| *rate);
        of(dtype).or_else(|| if dtype == "tf32" { of("f32") } else { None })
    }

    fn level(&self, bytes: u64) -> Option<&Level> {
        self.levels.iter().find(|level| bytes <= level.bytes).or(self.levels.last())
    }

    /// Bytes a second where so many bytes are gone round in.
    pub(super) fn bandwidth(&self, bytes: u64) -> f64 {
        self.level(bytes).map_or(f64::INFINITY, |level| level.triad)
    }

    /// The same, reading alone. The last cache is shared, with other processes and other guests too: the more of it is asked
    /// for, the more comes from the memory behind it.
    pub(super) fn read_bandwidth(&self, bytes: u64) -> f64 {
        let Some(at) = self.levels.iter().position(|level| bytes <= level.bytes) else {
            return self.levels.last().map_or(f64::INFINITY, |level| level.read);
        };
        let level = &self.levels[at];
        match self.levels.get(at + 1) {
            Some(behind) if at + 2 == self.levels.len() && bytes > level.measured_at => {
                let octaves = |from: u64, to: u64| (to as f64 / from.max(1) as f64).log2();
                let part = octaves(level.measured_at, bytes) / octaves(level.measured_at, level.bytes);
                level.read * (behind.read / level.read).powf(part)
            }
            _ => level.read,
        }
    }

    /// Seconds that reading so many bytes takes longer because other threads wrote most of them, so many bytes ago, than where they are at hand.
    pub(super) fn exchange(&self, bytes: u64, ago: u64) -> f64 {
        let Some(exchange) = self.exchange.filter(|exchange| ago <= exchange.bytes) else { return 0.0 };
        let of_others = bytes as f64 * (exchange.threads - 1.0) / exchange.threads;
        of_others * (1.0 / exchange.rate - 1.0 / self.read_bandwidth(bytes)).max(0.0)
    }

    /// What bounds work, and the least seconds that it takes.
    pub(super) fn bound(&self, dtype: &str, flops: f64, bytes: f64, overhead: f64) -> (Bound, f64) {
        let arithmetic = self.peak(dtype).map_or(0.0, |peak| flops / peak);
        let level = self.level(bytes as u64);
        let memory = level.map_or(0.0, |level| bytes / level.triad);
        if overhead >= arithmetic.max(memory) {
            return (Bound::Overhead, overhead);
        }
        match level {
            Some(level) if memory >= arithmetic => (Bound::Memory(level.name.clone()), memory),
            _ => (Bound::Arithmetic(dtype.to_owned()), arithmetic),
        }
    }
}

/// The levels of a device, with what they hold.
fn levels(profile: &Profile, device: &str, threads: usize) -> Vec<Level> {
    let mut levels: Vec<Level> = Vec::new();
    let own = profile.bandwidth.iter().filter(|found| found.device == device && found.threads == threads);
    for found in own.filter(|found| found.level != "PCIe" && found.access != EXCHANGE) {
        let rate = found.gbps * 1e9;
        let level = match levels.iter_mut().find(|level| level.name == found.level) {
            Some(level) => level,
            None => {
                let bytes = held(profile, &found.level);
                levels.push(Level {
                    name: found.level.clone(),
                    bytes,
                    triad: 0.0,
                    read: 0.0,
                    measured_at: 0,
                });
                let last = levels.len() - 1;
                &mut levels[last]
            }
        };
        level.measured_at = level.measured_at.max(found.working_set_bytes * found.threads as u64);
        // Kernels write into the caches and stream past them: the better of the two counts.
        match found.access.as_str() {
            "read" => level.read = level.read.max(rate),
            _ => level.triad = level.triad.max(rate),
        }
    }
    for level in &mut levels {
        if level.triad == 0.0 {
            level.triad = level.read;
        }
        level.read = level.read.max(level.triad);
    }
    levels.sort_by_key(|level| level.bytes);
    levels
}

/// What a level holds, by the machine's caches: `L2 2048 KiB x2`.
fn held(profile: &Profile, level: &str) -> u64 {
    if profile.machine.gpu.is_some() && level == "L2" {
        // Half of what the copy that was measured went through fits for sure.
        let of = |found: &&crate::profile::Bandwidth| found.level == level;
        return profile.bandwidth.iter().find(of).map_or(0, |found| 2 * found.working_set_bytes);
    }
    let size = |text: &String| -> Option<u64> {
        let mut words = text.split(' ');
        let (name, size, unit) = (words.next()?, words.next()?, words.next()?);
        let instances = words.next()?.strip_prefix('x')?.parse::<u64>().ok()?;
        (name == level && unit == "KiB")
            .then(|| size.parse::<u64>().ok().map(|kib| (kib << 10) * instances))?
    };
    let known: u64 = profile.machine.caches.iter().filter_map(size).sum();
    match level {
        "DRAM" | "HBM" => u64::MAX,
        _ if known > 0 => known,
        // A machine that does not tell: what was measured fits.
        _ => {
            let own = profile.bandwidth.iter().filter(|found| found.level == level);
            own.map(|found| 2 * found.working_set_bytes * found.threads as u64).max().unwrap_or(0)
        }
    }
}

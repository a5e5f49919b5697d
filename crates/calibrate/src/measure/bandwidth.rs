//! Bandwidth of each level: triad by ordinary and by non-temporal stores, reading alone, and reading what another thread has just written,
//! by one thread and by all.

use std::time::{Duration, Instant};

use warpforge_bench::suites::micro::memory_levels::Machine;
use warpforge_measure::stats::{self, Summary};
use warpforge_probes::affinity;
use warpforge_probes::memory::Pages;
use warpforge_probes::memory::stream::{Arrays, InstructionSet, Kernel, Reader, Routine, Stores};
use warpforge_probes::team::Team;

use super::Session;
use super::timing::long_enough;
use crate::cases::Scale;
use crate::error::{Error, Result};
use crate::profile::Bandwidth;

/// Main memory is gone through in sections of this size.
const SECTION_BYTES: u64 = 8 << 20;

/// What is done with the memory.
#[derive(Clone, Copy)]
enum Access {
    Triad(Stores),
    Read,
    /// What another thread has just written.
    Exchange,
}

/// Every level is gone to so often, one after the other: another guest that uses the same caches takes bandwidth away for a while, and the
/// fastest visit says what there is.
const ROUNDS: usize = 3;

/// A cache or main memory, with the memory that is gone through.
struct Level {
    name: String,
    /// For each thread.
    bytes: u64,
    arrays: Arrays,
}

/// Measures all levels by the numbers of threads that are missing.
pub(super) fn measure(session: &mut Session<'_>) -> Result<()> {
    for threads in session.settings.thread_counts() {
        let device = session.device.clone();
        let is_known = |known: &Bandwidth| known.device == device && known.threads == threads;
        if !session.profile.bandwidth.iter().any(is_known) {
            let found = of_threads(session, threads)?;
            session.profile.bandwidth.extend(found);
        }
    }
    Ok(())
}

/// Every access to every level, after all visits: fewer of them are no measurement.
fn of_threads(session: &mut Session<'_>, threads: usize) -> Result<Vec<Bandwidth>> {
    let mut all = Vec::new();
    let mut cpus = affinity::allowed()?;
    cpus.truncate(threads);
    let mut team = Team::new(&cpus)?;
    let mut levels = levels(session, &mut team, &cpus)?;
    let rounds = if session.settings.scale == Scale::Smoke { 1 } else { ROUNDS };
    for _ in 0..rounds {
        for level in &mut levels {
            let exchange = (threads > 1 && level.name == "L2").then_some(Access::Exchange);
            let accesses =
                [Access::Triad(Stores::Ordinary), Access::Triad(Stores::Nontemporal), Access::Read];
            for access in accesses.into_iter().chain(exchange) {
                let found = visit(session, &mut team, level, access)?;
                if session.stopped() {
                    return Err(Error::Stopped);
                }
                if let Some(found) = found {
                    keep_fastest(&mut all, found);
                }
            }
        }
    }
    Ok(all)
}

fn levels(session: &Session<'_>, team: &mut Team, cpus: &[usize]) -> Result<Vec<Level>> {
    let machine = Machine::detect();
    let hierarchy = machine.hierarchy(cpus);
    let mut sizes: Vec<(String, u64, usize)> = Vec::new();
    for (at, cache) in hierarchy.levels().iter().enumerate() {
        if let Some(bytes) = hierarchy.bytes_per_thread(at) {
            sizes.push((format!("L{}", cache.level), bytes, 1));
        }
    }
    let dram = match session.settings.scale {
        Scale::Smoke => SECTION_BYTES,
        _ => machine.modest_dram_bytes(&hierarchy) / team.size() as u64,
    };
    let sections = usize::try_from(dram / SECTION_BYTES).unwrap_or(1).max(1);
    sizes.push(("DRAM".to_owned(), dram, sections));
    let mut level = |(name, bytes, sections): (String, u64, usize)| {
        let each = usize::try_from(bytes).map_err(|_| Error::NotPossible(format!("{bytes} bytes")))?;
        Ok(Level { name, bytes, arrays: Arrays::new(team, each, sections, Pages::Default)? })
    };
    sizes.into_iter().map(&mut level).collect()
}

/// Measures one access once; nothing where the processor has no such stores.
fn visit(
    session: &mut Session<'_>,
    team: &mut Team,
    level: &mut Level,
    access: Access,
) -> Result<Option<Bandwidth>> {
    let (rates, pace) = session.with_pace(|session| Ok(rates(session, team, &mut level.arrays, access)))?;
    let Some(summary) = rates.and_then(|rates| Summary::of_rounds(&[rates])) else { return Ok(None) };
    let (name, stores) = match access {
        Access::Triad(stores) => ("triad", stores.name()),
        Access::Read => ("read", "none"),
        Access::Exchange => ("exchange", Stores::Ordinary.name()),
    };
    Ok(Some(Bandwidth {
        device: session.device.clone(),
        level: level.name.clone(),
        access: name.to_owned(),
        stores: stores.to_owned(),
        threads: team.size(),
        working_set_bytes: level.bytes,
        gbps: summary.value,
        ci_low: summary.spread.ci_low,
        ci_high: summary.spread.ci_high,
        pace,
    }))
}

/// Puts a bandwidth among the others, in the place of an earlier visit that was slower.
fn keep_fastest(all: &mut Vec<Bandwidth>, found: Bandwidth) {
    let is_same = |known: &&mut Bandwidth| {
        (&known.device, &known.level, &known.access, &known.stores, known.threads)
            == (&found.device, &found.level, &found.access, &found.stores, found.threads)
    };
    match all.iter_mut().find(is_same) {
        Some(known) if known.gbps >= found.gbps => {}
        Some(known) => *known = found,
        None => all.push(found),
    }
}

/// Samples of the rate in GB/s by the vectors that are fastest, which are not always the widest; none where the processor has no such stores.
fn rates(session: &Session<'_>, team: &mut Team, arrays: &mut Arrays, access: Access) -> Option<Vec<f64>> {
    let all = InstructionSet::vectors().into_iter();
    let all = all.filter_map(|set| rates_by(session, team, arrays, access, set));
    all.filter_map(|rates| Some((stats::median(&rates)?, rates)))
        .max_by(|(one, _), (other, _)| one.total_cmp(other))
        .map(|(_, rates)| rates)
}

fn rates_by(
    session: &Session<'_>,
    team: &mut Team,
    arrays: &mut Arrays,
    access: Access,
    set: InstructionSet,
) -> Option<Vec<f64>> {
    let reader = Reader::new(set)?;
    let routine = match access {
        Access::Triad(stores) => Some(Routine::new(Kernel::Triad, stores, set)?),
        Access::Read | Access::Exchange => None,
    };
    let bytes = (Kernel::Triad.bytes_per_element() * arrays.elements_per_iteration(team)) as f64;
    let mut run = |iterations: u64| match (routine, access) {
        (Some(routine), _) => arrays.run(team, routine, iterations),
        (None, Access::Exchange) => arrays.read_of_others(team, reader, iterations),
        (None, _) => arrays.read(team, reader, iterations),
    };
    let (sample, budget) = match session.settings.scale {
        Scale::Smoke => (Duration::from_micros(100), Duration::from_millis(1)),
        Scale::Quick => (Duration::from_millis(5), Duration::from_millis(80)),
        Scale::Full => (Duration::from_millis(10), Duration::from_millis(200)),
    };
    let iterations = long_enough(sample, 1, &mut run);
    let (mut rates, begin) = (Vec::new(), Instant::now());
    while rates.len() < 5 || begin.elapsed() < budget {
        rates.push(bytes * iterations as f64 / run(iterations).as_secs_f64().max(1e-9) / 1e9);
    }
    Some(rates)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bandwidth(access: &str, gbps: f64) -> Bandwidth {
        Bandwidth {
            device: "cpu".to_owned(),
            level: "L1".to_owned(),
            access: access.to_owned(),
            stores: "none".to_owned(),
            threads: 2,
            working_set_bytes: 16384,
            gbps,
            ci_low: gbps,
            ci_high: gbps,
            pace: None,
        }
    }

    #[test]
    fn the_fastest_visit_counts() {
        let mut all = Vec::new();
        for (access, gbps) in [("read", 430.0), ("exchange", 30.0), ("read", 650.0), ("read", 600.0)] {
            keep_fastest(&mut all, bandwidth(access, gbps));
        }
        let rates: Vec<(&str, f64)> = all.iter().map(|found| (found.access.as_str(), found.gbps)).collect();
        assert_eq!(rates, [("read", 650.0), ("exchange", 30.0)]);
    }
}

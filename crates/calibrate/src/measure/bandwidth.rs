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

/// Measures all levels.
pub(super) fn measure(session: &mut Session<'_>) -> Result<()> {
    for threads in session.settings.thread_counts() {
        of_threads(session, threads)?;
    }
    Ok(())
}

fn of_threads(session: &mut Session<'_>, threads: usize) -> Result<()> {
    let mut cpus = affinity::allowed()?;
    cpus.truncate(threads);
    let mut team = Team::new(&cpus)?;
    let machine = Machine::detect();
    let hierarchy = machine.hierarchy(&cpus);
    let mut levels: Vec<(String, u64, usize)> = Vec::new();
    for (at, cache) in hierarchy.levels().iter().enumerate() {
        if let Some(bytes) = hierarchy.bytes_per_thread(at) {
            levels.push((format!("L{}", cache.level), bytes, 1));
        }
    }
    let dram = match session.settings.scale {
        Scale::Smoke => SECTION_BYTES,
        _ => machine.modest_dram_bytes(&hierarchy) / threads as u64,
    };
    let sections = usize::try_from(dram / SECTION_BYTES).unwrap_or(1).max(1);
    levels.push(("DRAM".to_owned(), dram, sections));
    for (level, bytes, sections) in levels {
        let each = usize::try_from(bytes).map_err(|_| Error::NotPossible(format!("{bytes} bytes")))?;
        let mut arrays = Arrays::new(&mut team, each, sections, Pages::Default)?;
        let exchange = (threads > 1 && level == "L2").then_some(Access::Exchange);
        let accesses = [Access::Triad(Stores::Ordinary), Access::Triad(Stores::Nontemporal), Access::Read];
        for access in accesses.into_iter().chain(exchange) {
            if session.stopped() {
                return Err(Error::Stopped);
            }
            let (rates, pace) =
                session.with_pace(|session| Ok(rates(session, &mut team, &mut arrays, access)))?;
            let Some(rates) = rates else { continue };
            let Some(summary) = Summary::of_rounds(&[rates]) else { continue };
            let (name, stores) = match access {
                Access::Triad(stores) => ("triad", stores.name()),
                Access::Read => ("read", "none"),
                Access::Exchange => ("exchange", Stores::Ordinary.name()),
            };
            session.profile.bandwidth.push(Bandwidth {
                device: session.device.clone(),
                level: level.clone(),
                access: name.to_owned(),
                stores: stores.to_owned(),
                threads,
                working_set_bytes: bytes,
                gbps: summary.value,
                ci_low: summary.spread.ci_low,
                ci_high: summary.spread.ci_high,
                pace,
            });
        }
    }
    Ok(())
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
        Scale::Quick => (Duration::from_millis(5), Duration::from_millis(200)),
        Scale::Full => (Duration::from_millis(10), Duration::from_millis(600)),
    };
    let iterations = long_enough(sample, 1, &mut run);
    let (mut rates, begin) = (Vec::new(), Instant::now());
    while rates.len() < 5 || (begin.elapsed() < budget && !session.stopped()) {
        rates.push(bytes * iterations as f64 / run(iterations).as_secs_f64().max(1e-9) / 1e9);
    }
    Some(rates)
}

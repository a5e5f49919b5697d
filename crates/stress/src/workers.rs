//! Threads tied to processors, and what each of them found.

use std::sync::{Mutex, PoisonError};

use warpforge_probes::affinity;
use warpforge_probes::team::Team;

use crate::error::StressError;
use crate::load::Work;
use crate::settings::Settings;

/// Threads, each on its own processor while there are enough.
#[derive(Debug)]
pub(crate) struct Workers {
    team: Team,
    cpus: Vec<usize>,
}

impl Workers {
    pub(crate) fn new(settings: &Settings) -> Result<Self, StressError> {
        let allowed = affinity::allowed().map_err(StressError::Threads)?;
        let count = settings.threads.unwrap_or(allowed.len());
        let cpus: Vec<usize> = allowed.iter().copied().cycle().take(count).collect();
        Ok(Self { team: Team::new(&cpus).map_err(StressError::Threads)?, cpus })
    }

    pub(crate) fn count(&self) -> usize {
        self.cpus.len()
    }

    pub(crate) fn team(&mut self) -> &mut Team {
        &mut self.team
    }

    /// What a thread runs on, as a place: `core 3`.
    pub(crate) fn place(&self, rank: usize) -> String {
        format!("core {}", self.cpus[rank])
    }

    /// Calls `work` on every thread at the same time; what all of them did, in the order of the threads.
    pub(crate) fn each<T: Send>(&mut self, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
        let results: Vec<Mutex<Option<T>>> = (0..self.count()).map(|_| Mutex::new(None)).collect();
        self.team.run(|rank| {
            let result = work(rank);
            *results[rank].lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
        });
        results
            .into_iter()
            .filter_map(|slot| slot.into_inner().unwrap_or_else(PoisonError::into_inner))
            .collect()
    }

    /// The sum of what all threads did.
    pub(crate) fn sum(&mut self, work: impl Fn(usize) -> Work + Sync) -> Work {
        let mut sum = Work::default();
        for part in self.each(work) {
            sum.add(part);
        }
        sum
    }
}

//! Pointers in random order, followed by every core in memory of its own.

use std::sync::{Mutex, PoisonError};

use warpforge_probes::memory::Pages;
use warpforge_probes::memory::chase::Chase;

use crate::error::StressError;
use crate::load::{Iteration, Load, Work};
use crate::workers::Workers;

/// Memory of all cores together unless the user says how much: more than caches hold, and a turn takes under a second.
pub(super) const USUAL_BYTES: u64 = 256 << 20;

/// Bytes of a cache line.
const LINE: usize = 64;

pub(super) struct Latency {
    workers: Workers,
    chases: Vec<Mutex<Ring>>,
}

/// A cycle of pointers, and where each of them has to point.
struct Ring {
    chase: Chase,
    /// For each line the number of the line after it.
    expected: Vec<u32>,
}

impl Latency {
    pub(super) fn new(mut workers: Workers, bytes: usize) -> Result<Self, StressError> {
        let each = bytes / workers.count();
        let rings = workers.each(|_| {
            let mut chase = Chase::new(each, LINE, Pages::Default)?;
            chase.grow_to(each);
            let expected = chase.links().map(|offset| (offset / LINE) as u32).collect();
            Ok::<_, StressError>(Mutex::new(Ring { chase, expected }))
        });
        Ok(Self { chases: rings.into_iter().collect::<Result<_, _>>()?, workers })
    }
}

impl Load for Latency {
    fn iterate(&mut self, iteration: Iteration) -> Result<Work, StressError> {
        let places: Vec<String> = (0..self.workers.count()).map(|rank| self.workers.place(rank)).collect();
        let chases = &self.chases;
        Ok(self.workers.sum(|rank| {
            let mut ring = chases[rank].lock().unwrap_or_else(PoisonError::into_inner);
            ring.turn(iteration.falsify && rank == 0, &places[rank])
        }))
    }

    fn notes(&self) -> Vec<String> {
        let of = |ring: &Mutex<Ring>| ring.lock().unwrap_or_else(PoisonError::into_inner).chase.bytes();
        let all = self.chases.iter().map(of).sum::<usize>();
        vec![format!("{} of memory", warpforge_diag::bytes(all as u64))]
    }
}

impl Ring {
    /// Compares every pointer, then follows all of them, which must end where it began.
    fn turn(&mut self, falsify: bool, core: &str) -> Work {
        let lines = self.chase.lines();
        let mut work = Work::of(lines as f64 / 1e6);
        for (line, (found, &expected)) in self.chase.links().zip(&self.expected).enumerate() {
            let found = if falsify && line == 0 { found ^ LINE } else { found };
            let expected = expected as usize * LINE;
            if found != expected {
                let place = format!("{core}, byte {}", line * LINE);
                work.mismatch("a pointer in memory", place, format!("{expected:#x}"), format!("{found:#x}"));
            }
        }
        // A pointer that is wrong is not followed.
        if work.errors == 0 {
            let begin = self.chase.position();
            self.chase.run(lines as u64);
            let end = self.chase.position();
            if end != begin {
                let place = format!("{core}, byte {}", end * LINE);
                work.mismatch("the end of a turn", place, format!("line {begin}"), format!("line {end}"));
            }
        }
        work
    }
}

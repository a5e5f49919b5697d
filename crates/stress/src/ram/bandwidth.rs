//! Patterns written to memory and read back by all cores.

use std::sync::{Mutex, PoisonError};

use warpforge_probes::memory::{Mapping, Pages};

use crate::error::StressError;
use crate::load::{Iteration, Load, Work};
use crate::pattern::{Pattern, first_other};
use crate::workers::Workers;

/// Memory that one iteration works on; the next iteration takes the memory behind it.
const SECTION_BYTES: usize = 128 << 20;

/// Bytes that memory is filled with, before the pattern that is different in every word and iteration.
const BYTES: [u8; 4] = [0x00, 0xff, 0x55, 0xaa];

pub(super) struct Bandwidth {
    workers: Workers,
    memory: Mapping,
    /// Where the next iteration begins.
    next: usize,
}

impl Bandwidth {
    pub(super) fn new(workers: Workers, bytes: usize) -> Result<Self, StressError> {
        Ok(Self { workers, memory: Mapping::new(bytes, Pages::Default)?, next: 0 })
    }
}

impl Load for Bandwidth {
    fn iterate(&mut self, iteration: Iteration) -> Result<Work, StressError> {
        let total = self.memory.len();
        let begin = self.next;
        let end = total.min(begin + SECTION_BYTES);
        self.next = if end == total { 0 } else { end };
        let section = &mut self.memory[begin..end];
        let each = section.len().div_ceil(self.workers.count()).next_multiple_of(64);
        let parts: Vec<Mutex<&mut [u8]>> = section.chunks_mut(each).map(Mutex::new).collect();
        let places: Vec<String> = (0..self.workers.count()).map(|rank| self.workers.place(rank)).collect();
        Ok(self.workers.sum(|rank| {
            let Some(part) = parts.get(rank) else { return Work::default() };
            let mut part = part.lock().unwrap_or_else(PoisonError::into_inner);
            let first = begin + rank * each;
            let place = |offset: usize| format!("{}, byte {} of {total}", places[rank], first + offset);
            exercise(&mut part, iteration, rank == 0, place)
        }))
    }

    fn notes(&self) -> Vec<String> {
        vec![format!("{} of memory", warpforge_diag::bytes(self.memory.len() as u64))]
    }
}

/// Writes each pattern and reads it back.
fn exercise(part: &mut [u8], iteration: Iteration, first: bool, place: impl Fn(usize) -> String) -> Work {
    let moved = 2 * (BYTES.len() + 1) * part.len();
    let mut work = Work::of(moved as f64 / 1e6);
    for byte in BYTES {
        part.fill(byte);
        if let Some(difference) = first_other(part, byte) {
            work.mismatch(
                format!("memory filled with {byte:02x}"),
                place(difference.offset),
                difference.expected,
                difference.found,
            );
        }
    }
    let pattern = Pattern::new(iteration.number);
    pattern.fill(part, 0);
    if iteration.falsify && first {
        part[part.len() / 2] ^= 1;
    }
    pattern.check(&mut work, "memory filled with a pattern", part, 0, place);
    work
}

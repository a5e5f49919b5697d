//! Three arrays that a team of threads streams through together.

#![allow(unsafe_code)]

use std::ptr::NonNull;
use std::time::Duration;

use super::kernel::Routine;
use super::read::Reader;
use crate::memory::{Mapping, MemoryError, Pages};
use crate::team::Team;

/// A thread's part of an array is a whole number of these, so that no two threads write to one cache line or to a pair
/// that is fetched together.
const PART_BYTES: usize = 512;

const PART_ELEMENTS: usize = PART_BYTES / size_of::<f64>();

/// What processors compare of a load's address with the stores before it: a load that agrees with one in these bytes waits for it.
const ALIAS_BYTES: usize = 4096;

/// How much further in [`ALIAS_BYTES`] each array begins: a third, in whole pairs of lines.
const STAGGER_BYTES: usize = ALIAS_BYTES / 3 / 128 * 128;

/// Three arrays of doubles, `a`, `b` and `c`, one after the other in memory.
#[derive(Debug)]
pub struct Arrays {
    mapping: Mapping,
    /// Elements of one array.
    elements: usize,
    /// Elements from the beginning of one array to that of the next.
    stride: usize,
    /// The most threads that the sections are long enough for.
    most_threads: usize,
    /// Sections of each thread's part; one is processed at a time.
    sections: usize,
    /// The section that is next.
    next: usize,
}

/// The address of the first array, for the threads of a team.
#[derive(Clone, Copy)]
struct Shared(NonNull<f64>);

// SAFETY: it is only an address; the threads that get it use disjoint parts of what it points to.
unsafe impl Sync for Shared {}

impl Arrays {
    /// Arrays of so many bytes for each thread of the team, all three together, rounded down to whole lines. Each
    /// thread is the first to touch its part.
    ///
    /// An iteration of [`Self::run`] processes one of `sections` equal sections, in turn, so that a short measurement
    /// over much memory still meets each section only after all others.
    ///
    /// # Errors
    /// If there is too little for some lines in each array, or the system has not enough.
    pub fn new(
        team: &mut Team,
        bytes_per_thread: usize,
        sections: usize,
        pages: Pages,
    ) -> Result<Self, MemoryError> {
        let per_thread = bytes_per_thread / 3 / PART_BYTES * PART_ELEMENTS;
        if per_thread == 0 {
            return Err(MemoryError::TooSmall { bytes: bytes_per_thread, least: 3 * PART_BYTES });
        }
        let elements = per_thread.saturating_mul(team.size());
        let bytes = elements.saturating_mul(size_of::<f64>());
        let stride_bytes = bytes.checked_next_multiple_of(ALIAS_BYTES).unwrap_or(usize::MAX - STAGGER_BYTES);
        let stride_bytes = stride_bytes + STAGGER_BYTES;
        let mapping = Mapping::new(stride_bytes.saturating_mul(3), pages)?;
        let stride = stride_bytes / size_of::<f64>();
        let mut arrays = Self { mapping, elements, stride, most_threads: team.size(), sections: 1, next: 0 };
        arrays.each_part(team, 1, 0, |[a, b, c], _| {
            a.fill(1.0);
            b.fill(2.0);
            c.fill(5.0);
        });
        arrays.sections = sections.clamp(1, per_thread / PART_ELEMENTS);
        Ok(arrays)
    }

    /// The bytes of the three arrays together.
    #[must_use]
    pub fn bytes(&self) -> usize {
        3 * self.elements * size_of::<f64>()
    }

    /// Which part of the memory lies in huge pages, as [`Mapping::huge_share`].
    #[must_use]
    pub fn huge_share(&self) -> Option<f64> {
        self.mapping.huge_share()
    }

    /// The elements that the team's threads process together in one iteration.
    #[must_use]
    pub fn elements_per_iteration(&self, team: &Team) -> usize {
        self.section_elements(team) * team.size()
    }

    /// Runs a kernel on the next section, and so on, so many times. The team may be another one than that which
    /// touched the memory; the arrays are then divided among its threads.
    ///
    /// # Panics
    /// If the team is larger than the one that touched the memory.
    pub fn run(&mut self, team: &mut Team, routine: Routine, iterations: u64) -> Duration {
        self.each_part(team, iterations, 0, |[a, b, c], passes| routine.run(a, b, c, passes))
    }

    /// Reads all three arrays on the next section, and so on, so many times.
    ///
    /// # Panics
    /// If the team is larger than the one that touched the memory.
    pub fn read(&mut self, team: &mut Team, reader: Reader, iterations: u64) -> Duration {
        self.each_part(team, iterations, 0, |[a, b, c], passes| reader.read([a, b, c], passes))
    }

    /// Reads what another thread has just written: each thread writes its own section, then reads that of the next rank. The time is that of
    /// reading.
    ///
    /// # Panics
    /// If the team is larger than the one that touched the memory.
    pub fn read_of_others(&mut self, team: &mut Team, reader: Reader, iterations: u64) -> Duration {
        let mut took = Duration::ZERO;
        for iteration in 0..iterations {
            let section = self.next;
            self.each_part(team, 1, 0, |arrays, _| {
                arrays.into_iter().for_each(|array| array.fill(iteration as f64));
            });
            self.next = section;
            took += self.each_part(team, 1, 1, |[a, b, c], passes| reader.read([a, b, c], passes));
        }
        took
    }

    fn section_elements(&self, team: &Team) -> usize {
        assert!(team.size() <= self.most_threads, "a team of {} for {}", team.size(), self.most_threads);
        self.elements / team.size() / self.sections / PART_ELEMENTS * PART_ELEMENTS
    }

    /// Has `work` done on every thread with the section of the three arrays that is its own, or that of so many ranks further, `iterations`
    /// times, a section further each time. Where there is one section, a single call makes all the passes.
    fn each_part(
        &mut self,
        team: &mut Team,
        iterations: u64,
        ranks_further: usize,
        work: impl Fn([&mut [f64]; 3], u64) + Sync,
    ) -> Duration {
        let (stride, sections, first_section) = (self.stride, self.sections, self.next);
        let (part, section) = (self.elements / team.size(), self.section_elements(team));
        let base = Shared(self.mapping.start().cast::<f64>());
        let size = team.size();
        let took = team.run(|rank| {
            let rank = (rank + ranks_further) % size;
            let base = &base;
            let mut current = first_section;
            let (calls, passes) = if sections == 1 { (1, iterations) } else { (iterations, 1) };
            for _ in 0..calls {
                let begin = rank * part + current * section;
                let slices = [0, 1, 2].map(|array| {
                    // SAFETY: `begin + section` is at most `(rank + 1) * part`, which is at most the elements of an array and so
                    // at most `stride`, so this lies within one of the mapping's three arrays, which the system has zeroed. Ranks
                    // have disjoint parts, a rank makes one set of slices at a time, and `self` is borrowed exclusively.
                    unsafe {
                        let start = base.0.add(array * stride + begin);
                        std::slice::from_raw_parts_mut(start.as_ptr(), section)
                    }
                });
                work(slices, passes);
                current = (current + 1) % sections;
            }
        });
        self.next = (first_section + (iterations % sections as u64) as usize) % sections;
        took
    }
}

#[cfg(test)]
mod tests {
    use super::super::{FACTOR, Kernel, Stores};
    use super::*;
    use crate::affinity;

    fn team(size: usize) -> Team {
        let cpus = affinity::allowed().unwrap();
        Team::new(&vec![cpus[0]; size]).unwrap()
    }

    fn values(arrays: &Arrays) -> [Vec<f64>; 3] {
        // SAFETY: the mapping holds three arrays of `elements` initialised doubles, and nobody writes to them.
        [0, 1, 2].map(|array| unsafe {
            let start = arrays.mapping.start().cast::<f64>().add(array * arrays.stride);
            std::slice::from_raw_parts(start.as_ptr(), arrays.elements).to_vec()
        })
    }

    #[test]
    fn all_threads_together_cover_the_arrays_in_turn() {
        let mut team = team(3);
        let mut arrays = Arrays::new(&mut team, 3 * 4 * PART_BYTES + 1, 4, Pages::Default).unwrap();
        assert_eq!(arrays.bytes(), 3 * 3 * 4 * PART_BYTES);
        assert_eq!(arrays.elements_per_iteration(&team), 3 * PART_ELEMENTS);
        let scale = Routine::widest(Kernel::Scale, Stores::Ordinary).unwrap();
        for sections in 1..=4 {
            arrays.run(&mut team, scale, 1);
            let [a, b, c] = values(&arrays);
            assert!(a.iter().all(|&value| value == 1.0) && c.iter().all(|&value| value == 5.0));
            let scaled = b.iter().filter(|&&value| value == 5.0 * FACTOR).count();
            assert_eq!(scaled, sections * arrays.elements_per_iteration(&team));
        }
    }

    #[test]
    fn one_thread_can_use_what_several_touched() {
        let mut arrays = Arrays::new(&mut team(2), 3 * 8 * PART_BYTES, 8, Pages::Huge).unwrap();
        let mut one = team(1);
        let add = Routine::widest(Kernel::Add, Stores::Ordinary).unwrap();
        arrays.run(&mut one, add, 8);
        assert!(values(&arrays)[2].iter().all(|&value| value == 3.0));
        arrays.run(&mut one, Routine::widest(Kernel::Copy, Stores::Ordinary).unwrap(), 8);
        assert!(values(&arrays)[2].iter().all(|&value| value == 1.0));
    }

    #[test]
    fn each_thread_reads_what_another_wrote() {
        let mut team = team(2);
        let mut arrays = Arrays::new(&mut team, 3 * 4 * PART_BYTES, 2, Pages::Default).unwrap();
        let took = arrays.read_of_others(&mut team, Reader::widest(), 4);
        assert!(took > Duration::ZERO);
        // Sections in turn: the first was written by the third iteration last, the second by the fourth.
        let half = 2 * PART_ELEMENTS;
        for array in values(&arrays) {
            for part in array.chunks(2 * half) {
                assert!(part[..half].iter().all(|&value| value == 2.0));
                assert!(part[half..].iter().all(|&value| value == 3.0));
            }
        }
    }

    #[test]
    fn no_two_arrays_begin_at_the_same_place_of_a_page() {
        for parts in [1, 4, 8, 12, 171] {
            let arrays = Arrays::new(&mut team(1), 3 * parts * PART_BYTES, 1, Pages::Default).unwrap();
            let begins = [0, 1, 2].map(|array| array * arrays.stride * size_of::<f64>() % ALIAS_BYTES);
            assert_eq!(begins, [0, STAGGER_BYTES, 2 * STAGGER_BYTES]);
            assert!(arrays.stride >= arrays.elements);
        }
    }

    #[test]
    fn too_little_is_an_error() {
        let error = Arrays::new(&mut team(1), 3 * PART_BYTES - 1, 1, Pages::Default).unwrap_err();
        assert_eq!(error, MemoryError::TooSmall { bytes: 3 * PART_BYTES - 1, least: 3 * PART_BYTES });
        assert!(Arrays::new(&mut team(1), usize::MAX / 2, 1, Pages::Default).is_err());
    }
}

//! A chase of pointers in random order: how long one load takes that depends on the one before.

#![allow(unsafe_code)]

use std::hint::black_box;
use std::time::{Duration, Instant};

use super::{Mapping, MemoryError, Pages};

/// Loads in one turn of the loop.
const UNROLLED: u64 = 8;

/// What a line begins with: the address of the next line's link.
#[derive(Clone, Copy)]
#[repr(transparent)]
struct Link(*const Link);

/// Cache lines linked to one cycle in random order. It grows, so that a curve over many sizes links each line once.
#[derive(Debug)]
pub struct Chase {
    mapping: Mapping,
    line_bytes: usize,
    /// The lines in the cycle.
    lines: usize,
    /// Where the chase is: the number of a line.
    at: usize,
    random: fastrand::Rng,
}

impl Chase {
    /// Memory for a chase of up to so many bytes; a line of this many bytes is the unit. Nothing is touched yet.
    ///
    /// # Errors
    /// If there are fewer than two lines, a line has no room for an address, or the system has not enough memory.
    pub fn new(most_bytes: usize, line_bytes: usize, pages: Pages) -> Result<Self, MemoryError> {
        let line_bytes = line_bytes.next_power_of_two().max(size_of::<Link>());
        if most_bytes < 2 * line_bytes {
            return Err(MemoryError::TooSmall { bytes: most_bytes, least: 2 * line_bytes });
        }
        let mapping = Mapping::new(most_bytes, pages)?;
        // The seed is fixed: the order is random to the processor, and the same in every run.
        Ok(Self { mapping, line_bytes, lines: 0, at: 0, random: fastrand::Rng::with_seed(0x5a77_0105) })
    }

    /// Adds lines until the cycle covers this many bytes, or all there are. It never shrinks.
    ///
    /// Each new line is put in behind a line chosen at random, which makes every cycle over the lines equally likely,
    /// as Sattolo's shuffle of all lines would.
    pub fn grow_to(&mut self, bytes: usize) {
        let wanted = bytes.min(self.mapping.bytes()) / self.line_bytes;
        for line in self.lines..wanted {
            if line == 0 {
                self.write(0, Link(self.place(0)));
            } else {
                let before = self.random.usize(..line);
                let after = self.read(before);
                self.write(line, after);
                self.write(before, Link(self.place(line)));
            }
        }
        self.lines = self.lines.max(wanted);
    }

    /// The bytes that the cycle covers.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.lines * self.line_bytes
    }

    /// The lines in the cycle: the loads of one turn.
    #[must_use]
    pub fn lines(&self) -> usize {
        self.lines
    }

    /// Which part of the memory touched so far lies in huge pages, as [`Mapping::huge_share`].
    #[must_use]
    pub fn huge_share(&self) -> Option<f64> {
        self.mapping.huge_share()
    }

    /// Reads every line once in order of address, which brings in what the caches can hold much faster than a turn of
    /// the cycle would.
    pub fn sweep(&self) {
        let sum = (0..self.lines).fold(0, |sum: usize, line| sum.wrapping_add(self.read(line).0 as usize));
        black_box(sum);
    }

    /// What the lines hold, in order of address: how many bytes from the start the line lies that each links to. It is
    /// the same in every cycle of this size, so that a check of the memory knows what to find.
    pub fn links(&self) -> impl Iterator<Item = usize> + '_ {
        let base = self.mapping.start().as_ptr() as usize;
        (0..self.lines).map(move |line| (self.read(line).0 as usize).wrapping_sub(base))
    }

    /// The line where the chase is. After as many loads as there are [`lines`](Self::lines) it is there again.
    #[must_use]
    pub fn position(&self) -> usize {
        self.at
    }

    /// Follows the cycle for so many loads from where the last call ended.
    ///
    /// # Panics
    /// If the cycle has not been grown yet.
    pub fn run(&mut self, loads: u64) -> Duration {
        assert!(self.lines > 0, "there is nothing to chase");
        let base = self.mapping.start().as_ptr() as usize;
        let mut address = self.place(self.at);
        let begin = Instant::now();
        // SAFETY: `address` is that of a line of the cycle, and each of those holds the address of another one: `grow_to`
        // is the only writer. Lines are aligned to their size, a power of two that has room for a link.
        unsafe {
            for _ in 0..loads / UNROLLED {
                for _ in 0..UNROLLED {
                    address = (*address).0;
                }
            }
            for _ in 0..loads % UNROLLED {
                address = (*address).0;
            }
        }
        let address = black_box(address);
        let took = begin.elapsed();
        self.at = (address as usize - base) / self.line_bytes;
        took
    }

    /// What a line holds.
    fn read(&self, line: usize) -> Link {
        // SAFETY: `place` returns an aligned address within the mapping; the system zeroes what nobody has written.
        unsafe { self.place(line).read() }
    }

    fn write(&mut self, line: usize, link: Link) {
        // SAFETY: `place` returns an aligned address within the mapping, and `self` is borrowed exclusively.
        unsafe { self.place(line).cast_mut().write(link) }
    }

    /// Where a line keeps its link.
    fn place(&self, line: usize) -> *const Link {
        assert!(line < self.mapping.bytes() / self.line_bytes, "there is no line {line}");
        // SAFETY: the line lies within the mapping.
        unsafe { self.mapping.start().as_ptr().add(line * self.line_bytes) }.cast::<Link>().cast_const()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: usize = 64;

    /// How many loads it takes to come back, visiting each line once.
    fn turn(chase: &mut Chase) -> usize {
        let mut seen = vec![false; chase.lines];
        let mut loads = 0;
        while !seen[chase.at] {
            seen[chase.at] = true;
            chase.run(1);
            loads += 1;
        }
        assert!(seen.iter().all(|&seen| seen), "a line was left out");
        loads
    }

    #[test]
    fn one_cycle_visits_every_line_once_at_every_size() {
        for pages in Pages::ALL {
            let mut chase = Chase::new(1 << 20, LINE, pages).unwrap();
            for bytes in [LINE, 2 * LINE, 3 * LINE, 4096, 4096 + 63, 100_000, 1 << 20, 1 << 30] {
                chase.grow_to(bytes);
                assert_eq!(chase.bytes(), bytes.min(1 << 20) / LINE * LINE);
                let lines = chase.lines;
                assert_eq!(turn(&mut chase), lines);
            }
        }
    }

    #[test]
    fn the_order_has_no_stride() {
        let mut chase = Chase::new(1 << 20, LINE, Pages::Default).unwrap();
        chase.grow_to(1 << 20);
        let mut near = 0;
        for _ in 0..chase.lines {
            let before = chase.at;
            chase.run(1);
            near += usize::from(before.abs_diff(chase.at) <= 8);
        }
        assert!(near < chase.lines / 100, "{near} of {} steps are short", chase.lines);
    }

    #[test]
    fn many_loads_are_as_many_single_ones() {
        let (mut one, mut other) = (Chase::new(8192, LINE, Pages::Default).unwrap(), 0);
        one.grow_to(8192);
        for loads in [0, 1, 7, 8, 9, 1000] {
            one.at = 5;
            for _ in 0..loads {
                one.run(1);
            }
            std::mem::swap(&mut other, &mut one.at);
            one.at = 5;
            one.run(loads);
            assert_eq!(one.at, other);
        }
    }

    #[test]
    fn links_are_the_lines_in_the_order_of_the_cycle_and_the_same_every_time() {
        let mut chase = Chase::new(8192, LINE, Pages::Default).unwrap();
        chase.grow_to(8192);
        let links: Vec<usize> = chase.links().collect();
        for _ in 0..chase.lines() {
            let before = chase.position();
            chase.run(1);
            assert_eq!(links[before], chase.position() * LINE);
        }
        assert_eq!(chase.position(), 0, "a whole turn ends where it began");
        let mut other = Chase::new(8192, LINE, Pages::Default).unwrap();
        other.grow_to(8192);
        assert!(other.links().eq(links));
    }

    #[test]
    fn a_cycle_that_has_grown_does_not_shrink() {
        let mut chase = Chase::new(8192, 100, Pages::Default).unwrap();
        chase.grow_to(8192);
        chase.grow_to(64);
        assert_eq!(chase.bytes(), 8192);
        assert_eq!(turn(&mut chase), 64, "a line of 100 bytes is rounded up to 128");
    }

    #[test]
    fn too_little_is_an_error() {
        assert!(matches!(
            Chase::new(127, LINE, Pages::Default),
            Err(MemoryError::TooSmall { least: 128, .. })
        ));
    }
}

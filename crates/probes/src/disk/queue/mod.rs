//! A queue of direct transfers between blocks in memory and a file, and the two ways to have one.

mod threads;
mod uring;

use std::fmt;
use std::fs::File;
use std::io;

use super::Operation;
use crate::memory::{Mapping, Pages};
use threads::Threads;
use uring::Uring;

/// Who carries out transfers that are in flight together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// The kernel, by io_uring.
    IoUring,
    /// A thread for each transfer in flight, by `pread` and `pwrite`.
    Threads,
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::IoUring => "io_uring",
            Self::Threads => "threads",
        })
    }
}

/// Slots, each with a block, that transfer at the same time.
pub(super) trait Queue {
    /// Who carries out the transfers.
    fn engine(&self) -> Engine;

    /// How many slots there are.
    fn depth(&self) -> usize;

    /// The block of a slot that is idle.
    ///
    /// # Panics
    /// If the slot is in flight.
    fn block(&mut self, slot: usize) -> &mut [u8];

    /// Makes an idle slot transfer its block from or to this place in the file.
    ///
    /// # Panics
    /// If the slot is in flight.
    fn start(&mut self, slot: usize, operation: Operation, offset: u64) -> io::Result<()>;

    /// Waits until at least one transfer has ended, and appends the slots of all that have. They are idle again.
    fn wait(&mut self, ended: &mut Vec<usize>) -> io::Result<()>;
}

/// A queue of this depth, by io_uring where the system permits it. Where it does not, the reason comes beside a queue
/// of threads.
pub(super) fn open(
    file: &File,
    depth: usize,
    block_bytes: usize,
) -> io::Result<(Box<dyn Queue>, Option<String>)> {
    match Uring::new(file, depth, block_bytes) {
        Ok(queue) => Ok((Box::new(queue), None)),
        Err(error) => {
            let queue = Threads::new(file, depth, block_bytes)?;
            Ok((Box::new(queue), Some(format!("io_uring cannot be used here ({error})"))))
        }
    }
}

/// Blocks filled with random data, so that no layer below can compress them.
fn random_blocks(count: usize, bytes: usize) -> io::Result<Vec<Mapping>> {
    (0..count)
        .map(|_| {
            let mut block = Mapping::new(bytes, Pages::Default).map_err(io::Error::other)?;
            fastrand::fill(&mut block);
            Ok(block)
        })
        .collect()
}

/// Judges how many bytes a transfer moved.
fn whole(moved: usize, block_bytes: usize) -> io::Result<()> {
    if moved == block_bytes {
        return Ok(());
    }
    Err(io::Error::new(
        io::ErrorKind::UnexpectedEof,
        format!("{moved} of {block_bytes} bytes were transferred"),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: usize = 4096;

    /// The fallback and the engine that this system is given, on the same file. `tests/hardware.rs` reports a system
    /// without io_uring.
    fn engines(file: &File, depth: usize) -> [Box<dyn Queue>; 2] {
        [Box::new(Threads::new(file, depth, BLOCK).unwrap()), open(file, depth, BLOCK).unwrap().0]
    }

    fn finish(queue: &mut dyn Queue, mut in_flight: usize) -> io::Result<()> {
        let mut ended = Vec::new();
        while in_flight > 0 {
            queue.wait(&mut ended)?;
            in_flight -= ended.drain(..).count();
        }
        Ok(())
    }

    #[test]
    fn each_engine_reads_what_each_wrote() {
        let file = tempfile::tempfile().unwrap();
        for depth in [1, 7] {
            for (marker, mut writer) in (1_u8..).zip(engines(&file, depth)) {
                for slot in 0..depth {
                    writer.block(slot).fill(marker * 16 + slot as u8);
                    writer.start(slot, Operation::Write, (slot * BLOCK) as u64).unwrap();
                }
                finish(&mut *writer, depth).unwrap();
                for mut reader in engines(&file, depth) {
                    for slot in 0..depth {
                        reader.start(slot, Operation::Read, ((depth - 1 - slot) * BLOCK) as u64).unwrap();
                    }
                    finish(&mut *reader, depth).unwrap();
                    for slot in 0..depth {
                        let expected = marker * 16 + (depth - 1 - slot) as u8;
                        assert!(
                            reader.block(slot).iter().all(|&byte| byte == expected),
                            "{}",
                            reader.engine()
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn a_read_past_the_end_is_an_error() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(BLOCK as u64 / 2).unwrap();
        for mut queue in engines(&file, 2) {
            queue.start(0, Operation::Read, 0).unwrap();
            let error = finish(&mut *queue, 1).unwrap_err();
            assert!(error.to_string().contains("2048 of 4096"), "{}: {error}", queue.engine());
        }
    }

    #[test]
    fn a_queue_may_be_dropped_in_flight() {
        let file = tempfile::tempfile().unwrap();
        for mut queue in engines(&file, 4) {
            for slot in 0..4 {
                queue.start(slot, Operation::Write, (slot * BLOCK) as u64).unwrap();
            }
            drop(queue);
        }
        assert_eq!(file.metadata().unwrap().len(), 4 * BLOCK as u64);
    }

    #[test]
    fn a_block_in_flight_is_out_of_reach() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(2 * BLOCK as u64).unwrap();
        for mut queue in engines(&file, 2) {
            queue.start(1, Operation::Read, 0).unwrap();
            let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| queue.block(1).len()));
            assert!(outcome.is_err(), "{}", queue.engine());
            assert_eq!(queue.block(0).len(), BLOCK);
        }
    }
}

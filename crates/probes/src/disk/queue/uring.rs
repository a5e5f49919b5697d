//! Transfers by io_uring: the kernel reads and writes our blocks while we do something else.

// The kernel is given addresses of memory that it uses after the call has returned.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;

use io_uring::{IoUring, Probe, opcode, types};

use super::{Engine, Queue, random_blocks, whole};
use crate::disk::Operation;
use crate::memory::Mapping;

/// A ring, and the blocks that the kernel works on.
pub(super) struct Uring {
    ring: IoUring,
    file: File,
    blocks: Vec<Mapping>,
    in_flight: Vec<bool>,
}

impl Uring {
    /// A queue on this file; an error if the system has no io_uring or does not permit it.
    pub(super) fn new(file: &File, depth: usize, block_bytes: usize) -> io::Result<Self> {
        let entries = u32::try_from(depth).map_err(io::Error::other)?;
        let ring = IoUring::new(entries)?;
        let mut probe = Probe::new();
        ring.submitter().register_probe(&mut probe)?;
        if ![opcode::Read::CODE, opcode::Write::CODE].into_iter().all(|code| probe.is_supported(code)) {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "the kernel is older than Linux 5.6"));
        }
        Ok(Self {
            ring,
            file: file.try_clone()?,
            blocks: random_blocks(depth, block_bytes)?,
            in_flight: vec![false; depth],
        })
    }

    /// Hands new transfers to the kernel and waits until as many have ended as are wanted.
    fn enter(&mut self, wanted: usize) -> io::Result<()> {
        loop {
            match self.ring.submit_and_wait(wanted) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                outcome => return outcome.map(drop),
            }
        }
    }
}

impl Queue for Uring {
    fn engine(&self) -> Engine {
        Engine::IoUring
    }

    fn depth(&self) -> usize {
        self.blocks.len()
    }

    fn block(&mut self, slot: usize) -> &mut [u8] {
        assert!(!self.in_flight[slot], "slot {slot} is in flight");
        &mut self.blocks[slot]
    }

    fn start(&mut self, slot: usize, operation: Operation, offset: u64) -> io::Result<()> {
        let file = types::Fd(self.file.as_raw_fd());
        let block = self.block(slot);
        let bytes = u32::try_from(block.len()).map_err(io::Error::other)?;
        let entry = match operation {
            Operation::Read => opcode::Read::new(file, block.as_mut_ptr(), bytes).offset(offset).build(),
            Operation::Write => opcode::Write::new(file, block.as_ptr(), bytes).offset(offset).build(),
        };
        let entry = entry.user_data(slot as u64);
        // SAFETY: the block is a mapping of its own that neither moves nor goes before the transfer has ended: `drop`
        // waits for all of them. Nobody else looks at it meanwhile: `block` refuses slots in flight. The file is
        // open as long as this queue.
        unsafe { self.ring.submission().push(&entry) }.map_err(io::Error::other)?;
        self.in_flight[slot] = true;
        // At once, and not together with others: the disk would idle meanwhile, and then face a burst.
        self.enter(0)
    }

    fn wait(&mut self, ended: &mut Vec<usize>) -> io::Result<()> {
        if self.ring.completion().is_empty() {
            self.enter(1)?;
        }
        let mut outcome = Ok(());
        for completion in self.ring.completion() {
            let slot = completion.user_data() as usize;
            self.in_flight[slot] = false;
            ended.push(slot);
            let moved = match usize::try_from(completion.result()) {
                Ok(moved) => whole(moved, self.blocks[slot].len()),
                Err(_) => Err(io::Error::from_raw_os_error(-completion.result())),
            };
            outcome = outcome.and(moved);
        }
        outcome
    }
}

impl Drop for Uring {
    fn drop(&mut self) {
        let mut ended = Vec::new();
        while self.in_flight.contains(&true) {
            let before = ended.len();
            // A failed transfer has ended all the same; a failed wait has not ended any.
            if self.wait(&mut ended).is_err() && ended.len() == before {
                // The kernel may still write to the blocks: give them up for good.
                std::mem::forget(std::mem::take(&mut self.blocks));
                return;
            }
        }
    }
}

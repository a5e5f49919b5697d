//! Transfers by a thread each: the way where io_uring is not permitted.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

use super::{Engine, Queue, random_blocks, whole};
use crate::disk::Operation;
use crate::memory::Mapping;

/// A transfer that a thread carries out, with the block it owns meanwhile.
struct Job {
    block: Mapping,
    operation: Operation,
    offset: u64,
}

/// What a thread says when it is done: the slot, its block, how it went.
type Done = (usize, Mapping, io::Result<()>);

/// A thread for each slot. A queue of depth 1 has none: the caller would only wait for it.
pub(super) struct Threads {
    file: Arc<File>,
    /// The blocks of idle slots.
    blocks: Vec<Option<Mapping>>,
    workers: Vec<(Sender<Job>, JoinHandle<()>)>,
    report: Sender<Done>,
    done: Receiver<Done>,
}

impl Threads {
    /// A queue on this file.
    pub(super) fn new(file: &File, depth: usize, block_bytes: usize) -> io::Result<Self> {
        let (report, done) = channel();
        let mut queue = Self {
            file: Arc::new(file.try_clone()?),
            blocks: random_blocks(depth, block_bytes)?.into_iter().map(Some).collect(),
            workers: Vec::new(),
            report,
            done,
        };
        let workers = if depth == 1 { 0 } else { depth };
        for slot in 0..workers {
            let (jobs, inbox) = channel();
            let (file, report) = (Arc::clone(&queue.file), queue.report.clone());
            let thread = thread::Builder::new()
                .name(format!("disk-{slot}"))
                .spawn(move || inbox.into_iter().for_each(|job| carry_out(&file, slot, job, &report)))?;
            queue.workers.push((jobs, thread));
        }
        Ok(queue)
    }

    /// Takes back what a thread returned.
    fn take_back(&mut self, (slot, block, outcome): Done, ended: &mut Vec<usize>) -> io::Result<()> {
        self.blocks[slot] = Some(block);
        ended.push(slot);
        outcome
    }
}

impl Queue for Threads {
    fn engine(&self) -> Engine {
        Engine::Threads
    }

    fn depth(&self) -> usize {
        self.blocks.len()
    }

    fn block(&mut self, slot: usize) -> &mut [u8] {
        self.blocks[slot].as_mut().unwrap_or_else(|| panic!("slot {slot} is in flight"))
    }

    fn start(&mut self, slot: usize, operation: Operation, offset: u64) -> io::Result<()> {
        let block = self.blocks[slot].take().unwrap_or_else(|| panic!("slot {slot} is in flight"));
        let job = Job { block, operation, offset };
        match self.workers.get(slot) {
            Some((jobs, _)) => {
                jobs.send(job).map_err(|_| io::Error::other("a thread of the queue has ended"))
            }
            None => {
                carry_out(&self.file, slot, job, &self.report);
                Ok(())
            }
        }
    }

    fn wait(&mut self, ended: &mut Vec<usize>) -> io::Result<()> {
        // The queue holds a sender itself, so the channel is never closed.
        let first = self.done.recv().map_err(io::Error::other)?;
        let mut outcome = self.take_back(first, ended);
        while let Ok(next) = self.done.try_recv() {
            outcome = outcome.and(self.take_back(next, ended));
        }
        outcome
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        for (jobs, thread) in self.workers.drain(..) {
            drop(jobs);
            // A thread ends when it has no more jobs; there is nobody to tell if it panicked.
            let _ = thread.join();
        }
    }
}

/// Carries out one transfer and reports it.
fn carry_out(file: &File, slot: usize, job: Job, report: &Sender<Done>) {
    let Job { mut block, operation, offset } = job;
    let moved = loop {
        let moved = match operation {
            Operation::Read => file.read_at(&mut block, offset),
            Operation::Write => file.write_at(&block, offset),
        };
        if !moved.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::Interrupted) {
            break moved;
        }
    };
    let outcome = moved.and_then(|moved| whole(moved, block.len()));
    // The queue is gone if nobody listens.
    let _ = report.send((slot, block, outcome));
}

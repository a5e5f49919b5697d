//! Keeping a queue full: which blocks, how many at a time, for how long, and how fast that was.

use std::fmt;
use std::time::{Duration, Instant};

use super::meter::Meter;
use super::queue::{self, Engine, Queue};
use super::{DiskError, ScratchFile};
use crate::latency::Latencies;

/// Every block begins at a multiple of this many bytes and is a multiple of it long.
pub const BLOCK_ALIGNMENT: usize = 4096;

/// The share of the time that passes before anything is recorded, while queues fill.
const WARM_UP: f64 = 0.1;

/// Transfers after the warm-up that a median needs.
const FEWEST_TRANSFERS: u64 = 2;

/// Rates taken in one measurement, if operations are quick enough.
const SLICES: u32 = 8;

/// How often the caller is asked whether to stop.
const STOP_INTERVAL: Duration = Duration::from_millis(20);

/// Bytes between the marks that make each written block unlike all others.
const MARK_SPACING: usize = 512;

/// The order in which blocks are visited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pattern {
    /// From the first to the last, again and again.
    Sequential,
    /// Any block at any time.
    Random,
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sequential => "sequential",
            Self::Random => "random",
        })
    }
}

/// What is done to a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// From the file to memory.
    Read,
    /// From memory to the file.
    Write,
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "read",
            Self::Write => "write",
        })
    }
}

/// What to do to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Workload {
    /// The order of the blocks.
    pub pattern: Pattern,
    /// Read or write.
    pub operation: Operation,
    /// The size of a block, a multiple of [`BLOCK_ALIGNMENT`].
    pub block_bytes: usize,
    /// How many blocks are in flight at a time.
    pub queue_depth: usize,
}

/// What a workload showed.
#[derive(Debug, Clone)]
pub struct Observation {
    /// Operations a second, a value for each slice of the time. Empty if it was stopped before the first slice ended.
    pub rates: Vec<f64>,
    /// How long each operation took.
    pub latencies: Latencies,
    /// Who carried out the operations.
    pub engine: Engine,
    /// Why that is not io_uring, if so.
    pub fallback: Option<String>,
}

/// Runs a workload on a laid-out file for the given time, or until `stop` says so.
///
/// # Errors
/// If a read or write fails, or the queue cannot be made.
pub fn measure(
    file: &ScratchFile,
    workload: &Workload,
    time: Duration,
    stop: &dyn Fn() -> bool,
) -> Result<Observation, DiskError> {
    let (mut queue, fallback) = queue::open(file.handle(), workload.queue_depth, workload.block_bytes)
        .map_err(|cause| file.error("set up the queue", cause))?;
    let start = Instant::now();
    let warm = start + time.mul_f64(WARM_UP);
    let slice = time.mul_f64(1.0 - WARM_UP) / (SLICES + 1);
    let mut schedule = Timed {
        operation: workload.operation,
        order: Order::new(workload.pattern, file.bytes(), workload.block_bytes as u64),
        deadline: start + time,
        meter: Meter::new(warm, slice),
        latencies: Latencies::new(),
        stop,
        asked: start,
        stopped: false,
    };
    drive(&mut *queue, &mut schedule)?;
    let engine = queue.engine();
    Ok(Observation { rates: schedule.meter.into_rates(), latencies: schedule.latencies, engine, fallback })
}

/// Runs a schedule on a file, `queue_depth` blocks in flight, and says who carried out the transfers.
///
/// # Errors
/// If a read or write fails, or the queue cannot be made.
pub fn transfer(
    file: &ScratchFile,
    block_bytes: usize,
    queue_depth: usize,
    schedule: &mut dyn Schedule,
) -> Result<Engine, DiskError> {
    let (mut queue, _) = queue::open(file.handle(), queue_depth, block_bytes)
        .map_err(|cause| file.error("set up the queue", cause))?;
    drive(&mut *queue, schedule)?;
    Ok(queue.engine())
}

/// One block on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transfer {
    /// Read or write.
    pub operation: Operation,
    /// Its place in the file, a multiple of the size of a block.
    pub offset: u64,
}

/// Which blocks come next, and what becomes of those that are done.
pub trait Schedule {
    /// The next block, or none when it is over.
    fn next(&mut self, now: Instant) -> Option<Transfer>;

    /// Fills a block before it is written. `count` grows with every block; unless told otherwise, no two written are alike.
    fn fill(&mut self, block: &mut [u8], offset: u64, count: u64) {
        make_unique(block, offset, count);
    }

    /// A block was transferred.
    fn ended(&mut self, transfer: Transfer, block: &[u8], started: Instant, now: Instant);
}

/// Keeps every slot of the queue busy until the schedule is over, and waits for the last transfers.
pub(super) fn drive(queue: &mut dyn Queue, schedule: &mut dyn Schedule) -> Result<(), DiskError> {
    let engine = queue.engine();
    let depth = queue.depth();
    let mut flights: Vec<Option<(Transfer, Instant)>> = vec![None; depth];
    let mut idle: Vec<usize> = (0..depth).rev().collect();
    let mut ended = Vec::with_capacity(depth);
    let mut written = 0;
    loop {
        while let Some(&slot) = idle.last() {
            let now = Instant::now();
            let Some(transfer) = schedule.next(now) else { break };
            idle.pop();
            let Transfer { operation, offset } = transfer;
            if operation == Operation::Write {
                written += 1;
                schedule.fill(queue.block(slot), offset, written);
            }
            flights[slot] = Some((transfer, now));
            queue.start(slot, operation, offset).map_err(|cause| DiskError::Transfer {
                operation,
                engine,
                offset: Some(offset),
                cause,
            })?;
        }
        if idle.len() == depth {
            return Ok(());
        }
        queue.wait(&mut ended).map_err(|cause| {
            // Which of several failed is not known; one alone is.
            let mut flying = flights.iter().flatten().map(|(transfer, _)| transfer.operation);
            let operation = flying.next().unwrap_or(Operation::Read);
            DiskError::Transfer { operation, engine, offset: None, cause }
        })?;
        let now = Instant::now();
        for slot in ended.drain(..) {
            if let Some((transfer, started)) = flights[slot].take() {
                schedule.ended(transfer, queue.block(slot), started, now);
            }
            idle.push(slot);
        }
    }
}

/// Marks every sector of a block of random data, so that no layer below finds two alike.
fn make_unique(block: &mut [u8], offset: u64, mark: u64) {
    for sector in block.chunks_mut(MARK_SPACING) {
        sector[..8].copy_from_slice(&offset.to_le_bytes());
        sector[8..16].copy_from_slice(&mark.to_le_bytes());
    }
}

/// The places of blocks, without end.
struct Order {
    pattern: Pattern,
    blocks: u64,
    block_bytes: u64,
    upcoming: u64,
    random: fastrand::Rng,
}

impl Order {
    fn new(pattern: Pattern, file_bytes: u64, block_bytes: u64) -> Self {
        let blocks = file_bytes / block_bytes;
        assert!(blocks > 0, "the file has room for a block");
        Self { pattern, blocks, block_bytes, upcoming: 0, random: fastrand::Rng::new() }
    }

    fn next(&mut self) -> u64 {
        let block = match self.pattern {
            Pattern::Sequential => {
                let block = self.upcoming;
                self.upcoming = (block + 1) % self.blocks;
                block
            }
            Pattern::Random => self.random.u64(..self.blocks),
        };
        block * self.block_bytes
    }
}

/// A schedule that lasts for some time and records what it sees.
struct Timed<'a> {
    operation: Operation,
    order: Order,
    deadline: Instant,
    meter: Meter,
    latencies: Latencies,
    stop: &'a dyn Fn() -> bool,
    asked: Instant,
    stopped: bool,
}

impl Timed<'_> {
    /// Whether the time is up. A disk so slow that there is no figure yet gets more of it.
    fn over(&self, now: Instant) -> bool {
        now >= self.deadline && self.meter.has_rates() && self.latencies.count() >= FEWEST_TRANSFERS
    }
}

impl Schedule for Timed<'_> {
    fn next(&mut self, now: Instant) -> Option<Transfer> {
        if now.duration_since(self.asked) >= STOP_INTERVAL {
            self.stopped = (self.stop)();
            self.asked = now;
        }
        let operation = self.operation;
        (!self.stopped && !self.over(now)).then(|| Transfer { operation, offset: self.order.next() })
    }

    fn ended(&mut self, _transfer: Transfer, _block: &[u8], started: Instant, now: Instant) {
        // What ends while the queue runs empty says nothing about a full one.
        if !self.over(now) && self.meter.count(now) {
            self.latencies.add(now - started);
        }
    }
}

/// A schedule that writes a part of a file, each block once.
pub(super) struct Once<F> {
    upcoming: u64,
    end: u64,
    block_bytes: u64,
    stop: F,
}

impl<F: Fn() -> bool> Once<F> {
    /// A schedule from one place to another, a whole number of blocks away, that ends early if `stop` says so.
    pub(super) fn new(start: u64, end: u64, block_bytes: u64, stop: F) -> Self {
        Self { upcoming: start, end, block_bytes, stop }
    }
}

impl<F: Fn() -> bool> Schedule for Once<F> {
    fn next(&mut self, _now: Instant) -> Option<Transfer> {
        let offset = self.upcoming;
        (offset < self.end && !(self.stop)()).then(|| {
            self.upcoming += self.block_bytes;
            Transfer { operation: Operation::Write, offset }
        })
    }

    fn ended(&mut self, _transfer: Transfer, _block: &[u8], _started: Instant, _now: Instant) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn a_sequential_order_wraps_and_a_random_one_stays_inside() {
        let mut order = Order::new(Pattern::Sequential, 3 * 8192 + 5, 8192);
        assert_eq!([0; 4].map(|_| order.next()), [0, 8192, 16384, 0]);
        let mut order = Order::new(Pattern::Random, 4 * 4096, 4096);
        let seen: HashSet<u64> = (0..1000).map(|_| order.next()).collect();
        assert_eq!(seen, HashSet::from([0, 4096, 8192, 12288]));
    }

    #[test]
    fn no_two_sectors_written_are_alike() {
        let mut block = vec![7; 4096];
        make_unique(&mut block, 4096, 1);
        let first: Vec<u8> = block[..512].to_vec();
        make_unique(&mut block, 4096, 2);
        assert!(block.chunks(512).all(|sector| sector != first));
    }
}

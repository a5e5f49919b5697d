//! Loads of a disk: blocks whose content is known from their place and how often they were written.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::time::Instant;

use warpforge_diag::bytes as size;
use warpforge_probes::disk::{
    Engine, Operation, Pattern as Order, Schedule, ScratchFile, Transfer, transfer,
};

use crate::error::StressError;
use crate::load::{Iteration, Load, Work};
use crate::pattern::Pattern;
use crate::settings::{MOST_DISK_SHARE, Settings, part, within};

/// The file's size unless the user says otherwise.
const USUAL_BYTES: u64 = 256 << 20;

/// The least size of the file: as many blocks as are in flight.
const LEAST_BYTES: u64 = 16 << 20;

/// Writes among ten transfers of a mixed load.
const WRITES_IN_TEN: usize = 3;

/// What a load does to the file.
#[derive(Debug, Clone, Copy)]
enum Mode {
    Read,
    /// Blocks written are read back.
    Write,
    Mixed,
}

/// The size of blocks, how many are in flight, and how many an iteration transfers.
#[derive(Debug, Clone, Copy)]
struct Shape {
    order: Order,
    block_bytes: usize,
    depth: usize,
    batch: usize,
}

const SEQUENTIAL: Shape = Shape { order: Order::Sequential, block_bytes: 1 << 20, depth: 8, batch: 32 };
const RANDOM: Shape = Shape { order: Order::Random, block_bytes: 4096, depth: 16, batch: 512 };

pub(crate) fn sequential_read(settings: &Settings) -> Result<Box<dyn Load>, StressError> {
    Ok(Box::new(Disk::new(settings, SEQUENTIAL, Mode::Read)?))
}

pub(crate) fn sequential_write(settings: &Settings) -> Result<Box<dyn Load>, StressError> {
    Ok(Box::new(Disk::new(settings, SEQUENTIAL, Mode::Write)?))
}

pub(crate) fn random_read(settings: &Settings) -> Result<Box<dyn Load>, StressError> {
    Ok(Box::new(Disk::new(settings, RANDOM, Mode::Read)?))
}

pub(crate) fn random_write(settings: &Settings) -> Result<Box<dyn Load>, StressError> {
    Ok(Box::new(Disk::new(settings, RANDOM, Mode::Write)?))
}

pub(crate) fn mixed(settings: &Settings) -> Result<Box<dyn Load>, StressError> {
    Ok(Box::new(Disk::new(settings, RANDOM, Mode::Mixed)?))
}

struct Disk {
    file: ScratchFile,
    blocks: Blocks,
    shape: Shape,
    mode: Mode,
    /// The next block of a sequential order.
    next: usize,
    random: fastrand::Rng,
    engine: Engine,
}

/// What each block of the file holds.
struct Blocks {
    directory: PathBuf,
    block_bytes: usize,
    /// How often each block was written.
    generations: Vec<u32>,
}

impl Disk {
    fn new(settings: &Settings, shape: Shape, mode: Mode) -> Result<Self, StressError> {
        let directory = settings.directory.clone().unwrap_or_else(|| PathBuf::from("."));
        let bytes = within(
            "disk",
            settings.bytes,
            part(free_bytes(&directory)?, MOST_DISK_SHARE),
            USUAL_BYTES,
            "half of the free space of the file system",
        )?;
        let bytes = bytes / shape.block_bytes as u64 * shape.block_bytes as u64;
        if bytes < LEAST_BYTES {
            let way = match settings.bytes {
                Some(_) => "ask for more with --size",
                None => "name a disk with more free space with --directory",
            };
            return Err(StressError::Missing(format!(
                "{}: a file of {} is too small, at least {} are needed; {way}",
                directory.display(),
                size(bytes),
                size(LEAST_BYTES)
            )));
        }
        let file = ScratchFile::create(&directory, bytes)?;
        let count = usize::try_from(bytes / shape.block_bytes as u64).unwrap_or(usize::MAX);
        let mut blocks = Blocks { directory, block_bytes: shape.block_bytes, generations: vec![0; count] };
        // Every block has known content before the first one is read.
        let everything = (0..count).map(|block| blocks.transfer(Operation::Write, block)).collect();
        let engine = blocks.run(&file, shape.depth, everything, false)?.1;
        let random = fastrand::Rng::with_seed(0xd15c);
        Ok(Self { file, blocks, shape, mode, next: 0, random, engine })
    }

    /// The blocks of one iteration, no block twice.
    fn batch(&mut self) -> Vec<usize> {
        let count = self.blocks.generations.len();
        let size = self.shape.batch.min(count);
        match self.shape.order {
            Order::Sequential => {
                let first = self.next;
                self.next = (first + size) % count;
                (first..first + size).map(|block| block % count).collect()
            }
            Order::Random => {
                let mut chosen = std::collections::HashSet::with_capacity(size);
                while chosen.len() < size {
                    chosen.insert(self.random.usize(..count));
                }
                let mut chosen: Vec<usize> = chosen.into_iter().collect();
                self.random.shuffle(&mut chosen);
                chosen
            }
        }
    }
}

impl Load for Disk {
    fn iterate(&mut self, iteration: Iteration) -> Result<Work, StressError> {
        let batch = self.batch();
        let all = |blocks: &Blocks, operation| {
            batch.iter().map(|&block| blocks.transfer(operation, block)).collect()
        };
        let (reads, writes) = (all(&self.blocks, Operation::Read), all(&self.blocks, Operation::Write));
        let depth = self.shape.depth;
        let mut work = Work::default();
        match self.mode {
            Mode::Read => work.add(self.blocks.run(&self.file, depth, reads, iteration.falsify)?.0),
            Mode::Write => {
                work.add(self.blocks.run(&self.file, depth, writes, false)?.0);
                work.add(self.blocks.run(&self.file, depth, reads, iteration.falsify)?.0);
            }
            Mode::Mixed => {
                let pairs = reads.into_iter().zip(writes).enumerate();
                let mixed =
                    pairs.map(|(index, (read, write))| if index % 10 < WRITES_IN_TEN { write } else { read });
                work.add(self.blocks.run(&self.file, depth, mixed.collect(), iteration.falsify)?.0);
            }
        }
        Ok(work)
    }

    fn notes(&self) -> Vec<String> {
        vec![format!(
            "a file of {} in {}, {} blocks of {} in flight by {}, past the page cache",
            size(self.file.bytes()),
            self.blocks.directory.display(),
            self.shape.depth,
            size(self.shape.block_bytes as u64),
            self.engine
        )]
    }
}

impl Blocks {
    fn transfer(&self, operation: Operation, block: usize) -> Transfer {
        Transfer { operation, offset: (block * self.block_bytes) as u64 }
    }

    fn block_at(&self, offset: u64) -> usize {
        (offset / self.block_bytes as u64) as usize
    }

    /// What a block holds: unlike every other block, and unlike what it held before.
    fn content(&self, block: usize) -> Pattern {
        Pattern::new((u64::from(self.generations[block]) << 32) | block as u64)
    }

    fn run(
        &mut self,
        file: &ScratchFile,
        depth: usize,
        transfers: VecDeque<Transfer>,
        falsify: bool,
    ) -> Result<(Work, Engine), StressError> {
        let block_bytes = self.block_bytes;
        let mut batch = Batch { blocks: self, transfers, work: Work::default(), falsify };
        let engine = transfer(file, block_bytes, depth, &mut batch)?;
        Ok((batch.work, engine))
    }
}

/// Transfers of one iteration, and what was found in the blocks read.
struct Batch<'a> {
    blocks: &'a mut Blocks,
    transfers: VecDeque<Transfer>,
    work: Work,
    falsify: bool,
}

impl Schedule for Batch<'_> {
    fn next(&mut self, _now: Instant) -> Option<Transfer> {
        self.transfers.pop_front()
    }

    fn fill(&mut self, content: &mut [u8], offset: u64, _count: u64) {
        let block = self.blocks.block_at(offset);
        self.blocks.generations[block] = self.blocks.generations[block].wrapping_add(1);
        self.blocks.content(block).fill(content, 0);
    }

    fn ended(&mut self, transfer: Transfer, content: &[u8], _started: Instant, _now: Instant) {
        self.work.amount += content.len() as f64 / 1e6;
        if transfer.operation == Operation::Write {
            return;
        }
        let block = self.blocks.block_at(transfer.offset);
        let place = |byte: usize| {
            let directory = self.blocks.directory.display();
            format!("block {block}, byte {} of the file in {directory}", transfer.offset + byte as u64)
        };
        let expected = self.blocks.content(block);
        let what = "a block of the file";
        if std::mem::take(&mut self.falsify) {
            let mut changed = content.to_vec();
            changed[content.len() / 2] ^= 1;
            expected.check(&mut self.work, what, &changed, 0, place);
        } else {
            expected.check(&mut self.work, what, content, 0, place);
        }
    }
}

/// The space that this user may still write in a folder's file system.
fn free_bytes(directory: &std::path::Path) -> Result<u64, StressError> {
    let facts = rustix::fs::statvfs(directory).map_err(|cause| {
        StressError::Missing(format!("{}: {}", directory.display(), std::io::Error::from(cause)))
    })?;
    Ok(facts.f_bavail.saturating_mul(facts.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_block_is_unlike_the_others_and_unlike_its_past() {
        let mut blocks = Blocks { directory: PathBuf::new(), block_bytes: 4096, generations: vec![0; 2] };
        let content = |blocks: &Blocks, block| {
            let mut bytes = vec![0; 64];
            blocks.content(block).fill(&mut bytes, 0);
            bytes
        };
        let (zero, one) = (content(&blocks, 0), content(&blocks, 1));
        assert_ne!(zero, one);
        blocks.generations[0] += 1;
        let later = content(&blocks, 0);
        assert!(later != zero && later != one);
    }

    #[test]
    fn a_schedule_finds_stale_and_changed_blocks() {
        let mut blocks =
            Blocks { directory: PathBuf::from("/d"), block_bytes: 4096, generations: vec![0; 4] };
        let read = |blocks: &mut Blocks, content: &[u8], falsify| {
            let transfer = Transfer { operation: Operation::Read, offset: 2 * 4096 };
            let mut batch = Batch { blocks, transfers: VecDeque::new(), work: Work::default(), falsify };
            batch.ended(transfer, content, Instant::now(), Instant::now());
            batch.work
        };
        let mut content = vec![0; 4096];
        let mut batch =
            Batch { blocks: &mut blocks, transfers: VecDeque::new(), work: Work::default(), falsify: false };
        batch.fill(&mut content, 2 * 4096, 1);
        assert_eq!(read(&mut blocks, &content, false).errors, 0);
        let work = read(&mut blocks, &content, true);
        assert_eq!(work.errors, 1);
        assert_eq!(
            work.mismatches[0].location,
            format!("block 2, byte {} of the file in /d", 2 * 4096 + 2048)
        );
        // A write that was lost: the block holds what it held before.
        blocks.generations[2] += 1;
        assert_eq!(read(&mut blocks, &content, false).errors, 1);
    }

    #[test]
    fn a_folder_that_is_none_and_too_large_a_file_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let mut settings = Settings::new(std::time::Duration::ZERO);
        settings.directory = Some(folder.path().join("missing"));
        assert!(matches!(mixed(&settings).err(), Some(StressError::Missing(_))));
        settings.directory = Some(folder.path().to_owned());
        settings.bytes = Some(u64::MAX);
        assert!(matches!(mixed(&settings).err(), Some(StressError::TooMuch { .. })));
        settings.bytes = Some(4096);
        assert!(mixed(&settings).err().unwrap().to_string().contains("too small"));
    }
}

//! Disks: direct reads and writes at a given queue depth.
//!
//! A [`ScratchFile`] is a file without a name, laid out with random data. [`measure`] reads or writes its blocks past
//! the page cache, a given number of them in flight, and says how many a second there were and how long each took.

mod drive;
mod error;
mod file;
mod meter;
mod page_cache;
mod queue;
#[cfg(test)]
mod tests;

pub use drive::{
    BLOCK_ALIGNMENT, Observation, Operation, Pattern, Schedule, Transfer, Workload, measure, transfer,
};
pub use error::DiskError;
pub use file::ScratchFile;
pub use queue::Engine;

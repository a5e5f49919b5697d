//! Why a part of the machine cannot be loaded.

use warpforge_diag::bytes;
use warpforge_probes::cpu::ProductError;
use warpforge_probes::disk::DiskError;
use warpforge_probes::memory::MemoryError;
use warpforge_probes::net::NetError;

/// Why a test cannot run, or cannot go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StressError {
    /// The machine lacks what the test needs.
    #[error("{0}")]
    Missing(String),
    /// More was asked for than a test may take.
    #[error(
        "{what}: {} were asked for, at most {} may be used ({share}); ask for less", bytes(*.asked), bytes(*.most)
    )]
    TooMuch {
        /// Memory or disk.
        what: &'static str,
        /// What was asked for.
        asked: u64,
        /// What may be used.
        most: u64,
        /// The rule behind it.
        share: &'static str,
    },
    /// Threads cannot be started or tied to processors.
    #[error("cannot start threads: {0}")]
    Threads(std::io::Error),
    /// There is no memory.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// There is no memory for matrices.
    #[error(transparent)]
    Product(#[from] ProductError),
    /// The disk cannot be used.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The host that was named does not answer.
    #[error("{0}")]
    Unreachable(NetError),
    /// The network cannot be used.
    #[error(transparent)]
    Net(#[from] NetError),
    /// The engine refuses or fails.
    #[error(transparent)]
    Engine(#[from] warpforge::Error),
    /// A call to the system failed.
    #[error("cannot {what}: {cause}")]
    System {
        /// What was tried.
        what: &'static str,
        /// What the system said.
        cause: std::io::Error,
    },
}

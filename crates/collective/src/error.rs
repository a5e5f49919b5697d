//! What can go wrong.

use crate::Collectives;

/// Why a process group cannot be made, or cannot go on.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The variables of a launcher make no sense.
    #[error("{variable}={value}: {reason}")]
    Variable {
        /// Which.
        variable: &'static str,
        /// What it says.
        value: String,
        /// What it should be.
        reason: String,
    },
    /// The launcher does not lead to the engine that is wanted.
    #[error("{wanted}: {reason}")]
    Engine {
        /// Which.
        wanted: Collectives,
        /// Why not.
        reason: String,
    },
    /// The ranks did not find each other.
    #[error("rank {rank} of {size} at {address}: {reason}")]
    Rendezvous {
        /// This rank.
        rank: usize,
        /// How many there are.
        size: usize,
        /// Where they meet.
        address: String,
        /// What happened.
        reason: String,
    },
    /// A rank ended or does not answer.
    #[error("rank {rank} is gone: {reason}")]
    Lost {
        /// Which.
        rank: usize,
        /// How this is known.
        reason: String,
    },
    /// The ranks are not at the same operation.
    #[error(
        "rank {rank} is at another operation ({found} where {expected} was expected): do all ranks run the same program?"
    )]
    Apart {
        /// The other rank.
        rank: usize,
        /// What this rank is at.
        expected: String,
        /// What the other is at.
        found: String,
    },
    /// The MPI library cannot be used.
    #[error("MPI: {0}")]
    Mpi(String),
    /// The UCC library cannot be used.
    #[error("UCC: {0}")]
    Ucc(String),
    /// The group ended before.
    #[error("the process group has ended")]
    Ended,
}

//! Process groups between processes: ranks that add up and share values, over TCP, MPI or UCC.
//!
//! [`World::from_environment`] says which rank of how many this process is, [`Communicator::open`] connects it to the others. A
//! communicator runs collectives in a thread of its own, in the order in which they were started, so that they overlap with what
//! the caller computes.
//!
//! Collectives between GPUs are not here: NCCL and RCCL are part of the GPU engine. Ranks whose GPUs they connect agree on that by a
//! communicator, and [`Communicator::on_failure`] tells them of a rank that is gone.

mod alone;
mod choice;
mod communicator;
mod error;
mod group;
mod launch;
mod library;
mod mpi;
mod tcp;
mod ucc;

pub use choice::Collectives;
pub use communicator::{Buffer, Communicator, Pending};
pub use error::Error;
pub use group::{Numbers, ProcessGroup};
pub use launch::{Engine, Variables, World};
pub use mpi::MpiLibrary;
pub use tcp::{Lost, Meeting, TcpGroup, listen};
pub use ucc::find_ucc;

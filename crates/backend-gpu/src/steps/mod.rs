//! What a run does, one step after the other on a stream.

mod exchange;
mod host;
mod kernels;
mod launch;
mod mask;
mod network;
mod processes;
mod product;

pub(crate) use exchange::Exchanged;
pub(crate) use host::Host;
pub(crate) use kernels::{Kernels, dialect};
pub(crate) use launch::{Launch, scratch_bytes};
pub(crate) use mask::Masks;
pub(crate) use network::Netted;
pub(crate) use processes::{Parallel, Processes};
pub(crate) use product::Multiply;

use std::sync::Arc;

use warpforge_fusion::NodeId;

use crate::driver::{Address, Buffer, Stream};
use crate::error::Result;
use crate::watch::Watch;
use warpforge_runtime::Fallback;

/// One step.
pub(crate) trait Step: Send + Sync {
    /// Puts its work on a stream; does not wait for it, unless it needs the host.
    fn start(&self, stream: &Stream) -> Result<()>;

    /// The same, and whoever watches is shown what happens inside of it.
    fn start_watched(&self, stream: &Stream, _: &Arc<Watch>) -> Result<()> {
        self.start(stream)
    }

    /// Whether the work can be recorded once and launched again: it needs the host for nothing.
    fn recordable(&self) -> bool {
        true
    }

    /// Whether its first run does more than others, so that a later one is what can be recorded.
    fn settles(&self) -> bool {
        false
    }

    /// Whether the reference computes it.
    fn is_reference(&self) -> bool {
        false
    }

    /// What of it falls back to the reference interpreter.
    fn fallbacks(&self) -> Vec<Fallback> {
        Vec::new()
    }

    /// Bytes that it holds besides the program's own.
    fn memory_bytes(&self) -> u64 {
        0
    }

    /// Kernels that it launches.
    fn launches(&self) -> u64;

    /// What it is called in profiles.
    fn name(&self) -> String;
}

/// A step with what is said about it in profiles.
pub(crate) struct Planned {
    pub(crate) step: Box<dyn Step>,
    /// What it gives, or a part of it.
    pub(crate) node: NodeId,
    pub(crate) flops: u64,
    pub(crate) bytes: u64,
    /// Its number among the instrumented kernels.
    pub(crate) salted: Option<usize>,
}

/// Where values lie on the device: fixed when a program is compiled.
pub(crate) struct Layout {
    /// The address of each value, by its node; 0 where it has none.
    pub(crate) addresses: Vec<Address>,
    /// For what steps need while they run; one step at a time uses it.
    pub(crate) workspace: Buffer,
}

impl Layout {
    /// The address of a value.
    pub(crate) fn address(&self, id: NodeId) -> Address {
        self.addresses.get(id.index()).copied().unwrap_or(0)
    }
}

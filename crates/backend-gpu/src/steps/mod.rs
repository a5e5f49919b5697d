//! Execution steps on a stream.

mod bucket;
mod collective;
mod copy;
mod dnn;
mod gemm;
mod host;
mod kernel;
mod kernels;

pub(crate) use bucket::Buckets;
pub(crate) use collective::CollectiveStep;
pub(crate) use copy::{CopyStep, DeviceCopy};
pub(crate) use dnn::DnnStep;
pub(crate) use gemm::GemmStep;
pub(crate) use host::HostStep;
pub(crate) use kernel::{KernelStep, scratch_bytes};
pub(crate) use kernels::{LoadedKernels, dialect};

use std::sync::Arc;

use warpforge_fusion::NodeId;
use warpforge_ir::OpId;

use crate::driver::{Address, Buffer, Stream};
use crate::error::Result;
use crate::observe::RunObserver;
use warpforge_runtime::Fallback;

/// An execution step.
pub(crate) trait ExecutionStep: Send + Sync {
    /// Enqueues its work; blocks only if it needs the host.
    fn start(&self, stream: &Stream) -> Result<()>;

    /// Runs it with an observer of nested operations.
    fn start_observed(&self, stream: &Stream, _: &Arc<RunObserver>) -> Result<()> {
        self.start(stream)
    }

    /// Whether it can be captured into a graph.
    fn is_capturable(&self) -> bool {
        true
    }

    /// Whether its first run differs and must not be captured.
    fn has_warmup(&self) -> bool {
        false
    }

    /// Whether the reference evaluates it.
    fn is_reference(&self) -> bool {
        false
    }

    /// What of it falls back to the reference interpreter.
    fn fallbacks(&self) -> Vec<Fallback> {
        Vec::new()
    }

    /// Device memory that it owns.
    fn memory_bytes(&self) -> u64 {
        0
    }

    /// Kernels that it launches.
    fn launches(&self) -> u64;

    /// The name in profiles.
    fn name(&self) -> String;
}

/// A step with its profile data.
pub(crate) struct PlannedStep {
    pub(crate) step: Box<dyn ExecutionStep>,
    /// The output node, or one of several.
    pub(crate) node: NodeId,
    pub(crate) flops: u64,
    pub(crate) bytes: u64,
    /// Its index among instrumented kernels.
    pub(crate) salted: Option<usize>,
    /// The operations of the module that its cluster computes.
    pub(crate) ops: Vec<OpId>,
    /// The nodes and source lines that it comes from, as profiles say them.
    pub(crate) provenance: Vec<(&'static str, String)>,
    /// The values that its cluster has written when it ends; empty but for the last step of a cluster.
    pub(crate) gives: Vec<NodeId>,
}

impl PlannedStep {
    /// A step that computes a node, with its floating-point operations and bytes.
    pub(crate) fn new(step: Box<dyn ExecutionStep>, node: NodeId, (flops, bytes): (u64, u64)) -> Self {
        let (ops, provenance, gives) = (Vec::new(), Vec::new(), Vec::new());
        Self { step, node, flops, bytes, salted: None, ops, provenance, gives }
    }
}

/// Device addresses of values, fixed at compile time.
pub(crate) struct DeviceLayout {
    /// The address of each node; 0 for none.
    pub(crate) addresses: Vec<Address>,
    /// Workspace, used by one step at a time.
    pub(crate) workspace: Buffer,
}

impl DeviceLayout {
    /// The address of a value.
    pub(crate) fn address(&self, id: NodeId) -> Address {
        self.addresses.get(id.index()).copied().unwrap_or(0)
    }
}

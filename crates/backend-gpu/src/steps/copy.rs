//! Copies between places of the device's memory.

use warpforge_fusion::NodeId;

use super::{ExecutionStep, PlannedStep};
use crate::driver::{Address, Stream};
use crate::error::Result;

/// A copy of so many bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DeviceCopy {
    pub(crate) from: Address,
    pub(crate) to: Address,
    pub(crate) bytes: usize,
}

/// A copy of state that the memory plan asks for.
pub(crate) struct CopyStep(DeviceCopy);

impl CopyStep {
    /// The step, after all others.
    pub(crate) fn planned(copy: DeviceCopy) -> PlannedStep {
        let bytes = 2 * copy.bytes as u64;
        // It belongs to no operation: the first node is always before the end of the last operation.
        PlannedStep {
            step: Box::new(Self(copy)),
            node: NodeId(0),
            flops: 0,
            bytes,
            salted: None,
            ops: Vec::new(),
            provenance: Vec::new(),
            gives: Vec::new(),
        }
    }
}

impl ExecutionStep for CopyStep {
    fn start(&self, stream: &Stream) -> Result<()> {
        let Self(DeviceCopy { from, to, bytes }) = *self;
        stream.copy(to, from, bytes)
    }

    fn launches(&self) -> u64 {
        1
    }

    fn name(&self) -> String {
        "copy of state".to_owned()
    }
}

//! Collectives.

use std::sync::Arc;

use warpforge_fusion::cluster::Operand;
use warpforge_fusion::{Graph, NodeId};

use super::{DeviceLayout, ExecutionStep};
use crate::collectives::{Collective, CollectiveKind, Communicator};
use crate::driver::{Address, Stream};
use crate::error::{GpuError, Result};

/// A collective step.
pub(crate) struct CollectiveStep {
    collective: Arc<Collective>,
    /// The communicator; none for a group of one without a library.
    communicator: Option<Arc<Communicator>>,
    values: Vec<Transfer>,
}

/// Source and target of one operand.
struct Transfer {
    from: Address,
    from_bytes: usize,
    to: Address,
    to_bytes: usize,
    /// Bytes of one element.
    width: usize,
}

impl CollectiveStep {
    /// The collective of a node.
    pub(crate) fn new(
        collective: &Arc<Collective>,
        communicator: Option<Arc<Communicator>>,
        graph: &Graph,
        (node, operands): (NodeId, &[Operand]),
        layout: &DeviceLayout,
    ) -> Result<Self> {
        let transfer = |(at, operand): (usize, &Operand)| {
            let missing = || GpuError::Other(format!("{} has no result {at}", collective.name));
            let result = graph.result(node, at).ok_or_else(missing)?;
            let source = graph.node(operand.value);
            Ok(Transfer {
                from: layout.address(operand.value),
                from_bytes: source.bytes(),
                to: layout.address(result),
                to_bytes: graph.node(result).bytes(),
                width: source.element.byte_width().max(1),
            })
        };
        let values = operands.iter().enumerate().map(transfer).collect::<Result<_>>()?;
        if communicator.is_none() && collective.group.len() > 1 {
            return Err(GpuError::Other(format!("{} has nothing that connects them", collective.name)));
        }
        Ok(Self { collective: Arc::clone(collective), communicator, values })
    }

    /// Enqueues one operand.
    fn enqueue(&self, communicator: &Communicator, value: &Transfer, stream: &Stream) -> Result<()> {
        let &Transfer { from, from_bytes, to, to_bytes, width } = value;
        match &self.collective.kind {
            CollectiveKind::AllReduce(by) => communicator.all_reduce(from, to, to_bytes / width, *by, stream),
            CollectiveKind::ReduceScatter(by) => {
                communicator.reduce_scatter(from, to, to_bytes / width, *by, stream)
            }
            CollectiveKind::AllGather => communicator.all_gather(from, to, from_bytes, stream),
            CollectiveKind::Broadcast { root } => communicator.broadcast(from, to, to_bytes, *root, stream),
            CollectiveKind::AllToAll => {
                let part = from_bytes / self.collective.group.len().max(1);
                (0..self.collective.group.len()).try_for_each(|peer| {
                    let at = (peer * part) as u64;
                    communicator.send(from + at, part, peer, stream)?;
                    communicator.receive(to + at, part, peer, stream)
                })
            }
            CollectiveKind::Permute { to: targets, from: source } => {
                targets.iter().try_for_each(|&peer| communicator.send(from, from_bytes, peer, stream))?;
                source.map_or(Ok(()), |peer| communicator.receive(to, to_bytes, peer, stream))
            }
            CollectiveKind::Zeros => Ok(()),
        }
    }

    /// Whether this process receives nothing.
    fn receives_zeros(&self) -> bool {
        matches!(self.collective.kind, CollectiveKind::Zeros | CollectiveKind::Permute { from: None, .. })
    }

    fn values(&self) -> impl Iterator<Item = &Transfer> {
        self.values.iter().filter(|value| value.from_bytes > 0 && value.to_bytes > 0)
    }
}

impl ExecutionStep for CollectiveStep {
    fn start(&self, stream: &Stream) -> Result<()> {
        if self.receives_zeros() {
            self.values().try_for_each(|value| stream.fill(value.to, 0, value.to_bytes))?;
        }
        match &self.communicator {
            _ if self.collective.kind == CollectiveKind::Zeros => Ok(()),
            Some(communicator) => communicator.grouped_calls(|| {
                self.values().try_for_each(|value| self.enqueue(communicator, value, stream))
            }),
            // In a group of one, collectives are copies.
            None if self.receives_zeros() => Ok(()),
            None => self.values().try_for_each(|value| stream.copy(value.to, value.from, value.to_bytes)),
        }
    }

    fn is_capturable(&self) -> bool {
        self.communicator.as_ref().is_none_or(|communicator| communicator.is_capturable())
    }

    fn has_warmup(&self) -> bool {
        self.communicator.is_some()
    }

    fn launches(&self) -> u64 {
        self.values().count() as u64
    }

    fn name(&self) -> String {
        let how = if self.communicator.is_some() { "library" } else { "copied" };
        format!("{how} {}", self.collective.name)
    }
}

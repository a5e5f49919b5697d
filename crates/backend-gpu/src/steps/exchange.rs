//! What a process does at an exchange with others.

use std::sync::Arc;

use warpforge_fusion::cluster::Operand;
use warpforge_fusion::{Graph, NodeId, Op};
use warpforge_runtime::memory_plan::results;

use super::{Layout, Step};
use crate::collectives::{Communicator, Exchange, Kind};
use crate::driver::{Address, Stream};
use crate::error::{GpuError, Result};

/// An exchange of some values.
pub(crate) struct Exchanged {
    exchange: Arc<Exchange>,
    /// The process's end of its group; a process that is alone there may do without.
    end: Option<Arc<Communicator>>,
    values: Vec<Passed>,
}

/// A value that is given and what is got for it.
struct Passed {
    from: Address,
    from_bytes: usize,
    to: Address,
    to_bytes: usize,
    /// Bytes of one element.
    width: usize,
}

impl Exchanged {
    /// The exchange of a node.
    pub(crate) fn new(
        exchange: &Arc<Exchange>,
        end: Option<Arc<Communicator>>,
        graph: &Graph,
        (node, operands): (NodeId, &[Operand]),
        layout: &Layout,
    ) -> Result<Self> {
        let given = results(graph, node);
        let passed = |(at, operand): (usize, &Operand)| {
            let result =
                given.iter().copied().find(|&id| matches!(graph.node(id).op, Op::Result(of) if of == at));
            let result =
                result.ok_or_else(|| GpuError::Other(format!("{} has no result {at}", exchange.name)))?;
            let source = graph.node(operand.value);
            Ok(Passed {
                from: layout.address(operand.value),
                from_bytes: source.bytes(),
                to: layout.address(result),
                to_bytes: graph.node(result).bytes(),
                width: source.element.byte_width().max(1),
            })
        };
        let values = operands.iter().enumerate().map(passed).collect::<Result<_>>()?;
        if end.is_none() && exchange.group.len() > 1 {
            return Err(GpuError::Other(format!("{} has nothing that connects them", exchange.name)));
        }
        Ok(Self { exchange: Arc::clone(exchange), end, values })
    }

    /// What is enqueued for a value.
    fn pass(&self, end: &Communicator, value: &Passed, stream: &Stream) -> Result<()> {
        let &Passed { from, from_bytes, to, to_bytes, width } = value;
        match &self.exchange.kind {
            Kind::Reduce(by) => end.all_reduce(from, to, to_bytes / width, *by, stream),
            Kind::ReduceScatter(by) => end.reduce_scatter(from, to, to_bytes / width, *by, stream),
            Kind::Gather => end.all_gather(from, to, from_bytes, stream),
            Kind::Broadcast { root } => end.broadcast(from, to, to_bytes, *root, stream),
            Kind::Shuffle => {
                let part = from_bytes / self.exchange.group.len().max(1);
                (0..self.exchange.group.len()).try_for_each(|peer| {
                    let at = (peer * part) as u64;
                    end.send(from + at, part, peer, stream)?;
                    end.receive(to + at, part, peer, stream)
                })
            }
            Kind::Permute { to: targets, from: source } => {
                targets.iter().try_for_each(|&peer| end.send(from, from_bytes, peer, stream))?;
                source.map_or(Ok(()), |peer| end.receive(to, to_bytes, peer, stream))
            }
            Kind::Zeros => Ok(()),
        }
    }

    /// Whether nobody sends this process anything.
    fn gets_zeros(&self) -> bool {
        matches!(self.exchange.kind, Kind::Zeros | Kind::Permute { from: None, .. })
    }

    fn values(&self) -> impl Iterator<Item = &Passed> {
        self.values.iter().filter(|value| value.from_bytes > 0 && value.to_bytes > 0)
    }
}

impl Step for Exchanged {
    fn start(&self, stream: &Stream) -> Result<()> {
        if self.gets_zeros() {
            self.values().try_for_each(|value| stream.fill(value.to, 0, value.to_bytes))?;
        }
        match &self.end {
            _ if self.exchange.kind == Kind::Zeros => Ok(()),
            Some(end) => end.together(|| self.values().try_for_each(|value| self.pass(end, value, stream))),
            // All that a group of one exchanges is what it has.
            None if self.gets_zeros() => Ok(()),
            None => self.values().try_for_each(|value| stream.copy(value.to, value.from, value.to_bytes)),
        }
    }

    fn recordable(&self) -> bool {
        self.end.as_ref().is_none_or(|end| end.is_recordable())
    }

    fn settles(&self) -> bool {
        self.end.is_some()
    }

    fn launches(&self) -> u64 {
        self.values().count() as u64
    }

    fn name(&self) -> String {
        let how = if self.end.is_some() { "library" } else { "copied" };
        format!("{how} {}", self.exchange.name)
    }
}

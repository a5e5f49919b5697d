//! All-reduces of gradients between ranks, beside what the device computes.
//!
//! A start copies gradients into a bucket of their own memory, so that theirs is free for other values, and lets the communication
//! stream go on from there. A wait lets the computation go on from the end of the all-reduce, and copies the values out. Events
//! order the two streams; the host waits for neither.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use warpforge_fusion::cluster::Operand;
use warpforge_fusion::{Graph, NodeId};
use warpforge_tensor::ElementType;

use super::{DeviceLayout, ExecutionStep};
use crate::collectives::Reduction;
use crate::driver::{Address, Buffer, Event, Gpu, Stream};
use crate::error::{GpuError, Result};
use crate::ranks::RankGroup;

/// The communication stream of a program.
struct RankStream {
    group: RankGroup,
    stream: Stream,
}

/// Gradients on their way.
struct Bucket {
    ranks: Arc<RankStream>,
    memory: Buffer,
    /// Where each value begins, in bytes.
    offsets: Vec<usize>,
    /// Elements in all.
    count: usize,
    by: Reduction,
    filled: Event,
    averaged: Event,
}

impl Bucket {
    fn reduce(&self) -> Result<()> {
        let RankStream { group, stream } = self.ranks.as_ref();
        stream.wait(&self.filled)?;
        if self.count > 0 {
            group.all_reduce(self.memory.address(), self.count, self.by, stream)?;
        }
        self.averaged.record(stream)
    }
}

impl Drop for Bucket {
    fn drop(&mut self) {
        // An all-reduce that is under way writes to the memory, which others get next. It ends, or is aborted with its group.
        let RankStream { group, stream } = self.ranks.as_ref();
        if let Err(error) = group.enter().and_then(|()| stream.synchronise()) {
            tracing::debug!(%error, "the communication stream of a program");
        }
    }
}

/// A copy from or to a bucket.
struct Transfer {
    offset: usize,
    value: Address,
    bytes: usize,
}

/// The buckets of a program that is being compiled.
#[derive(Default)]
pub(crate) struct Buckets {
    ranks: Option<Arc<RankStream>>,
    made: HashMap<usize, Arc<Bucket>>,
    /// Buckets that are filled before those that ranks send first.
    held: BTreeMap<usize, Arc<Bucket>>,
    /// The bucket that is sent next.
    next: usize,
}

impl Buckets {
    /// The start of a bucket. All ranks send their buckets in the order of their numbers, in whatever order they are filled.
    pub(crate) fn start(
        &mut self,
        group: &RankGroup,
        gpu: &Arc<Gpu>,
        graph: &Graph,
        (number, conditional): (usize, bool),
        operands: &[Operand],
        layout: &DeviceLayout,
    ) -> Result<BucketStart> {
        let ranks = match &self.ranks {
            Some(ranks) => Arc::clone(ranks),
            None => {
                let ranks = RankStream { group: group.clone(), stream: Stream::new(gpu)? };
                Arc::clone(self.ranks.insert(Arc::new(ranks)))
            }
        };
        let (condition, values) = operands.split_at(usize::from(conditional).min(operands.len()));
        let (mut transfers, mut offsets, mut bytes) = (Vec::new(), Vec::new(), 0);
        for operand in values {
            let node = graph.node(operand.value);
            offsets.push(bytes);
            transfers.push(Transfer {
                offset: bytes,
                value: layout.address(operand.value),
                bytes: node.bytes(),
            });
            bytes += node.bytes();
        }
        let element = values.first().map_or(ElementType::F32, |first| graph.node(first.value).element);
        let wrong = || GpuError::Other(format!("no sum of {element} is made between ranks"));
        let bucket = Arc::new(Bucket {
            ranks,
            memory: gpu.allocate(bytes)?,
            offsets,
            count: bytes / element.byte_width().max(1),
            by: Reduction::sum(element).ok_or_else(wrong)?,
            filled: Event::new(gpu)?,
            averaged: Event::new(gpu)?,
        });
        self.made.insert(number, Arc::clone(&bucket));
        self.held.insert(number, Arc::clone(&bucket));
        let mut sent = Vec::new();
        while let Some(bucket) = self.held.remove(&self.next) {
            sent.push(bucket);
            self.next += 1;
        }
        let condition = condition.first().map(|operand| layout.address(operand.value));
        Ok(BucketStart { number, bucket, transfers, condition, sent })
    }

    /// The end of a bucket.
    pub(crate) fn done(
        &self,
        graph: &Graph,
        number: usize,
        node: NodeId,
        layout: &DeviceLayout,
    ) -> Result<BucketDone> {
        let bucket = self.made.get(&number).filter(|_| !self.held.contains_key(&number));
        let bucket = bucket.ok_or_else(|| {
            GpuError::Other(format!("bucket {number} is waited for before all ranks can send it"))
        })?;
        let mut transfers = Vec::new();
        for (at, &offset) in bucket.offsets.iter().enumerate() {
            // A value that nobody reads stays in the bucket.
            let Some(result) = graph.result(node, at) else { continue };
            let bytes = graph.node(result).bytes();
            transfers.push(Transfer { offset, value: layout.address(result), bytes });
        }
        Ok(BucketDone { number, bucket: Arc::clone(bucket), transfers })
    }
}

/// Fills a bucket and starts its all-reduce.
pub(crate) struct BucketStart {
    number: usize,
    bucket: Arc<Bucket>,
    transfers: Vec<Transfer>,
    /// Where it says whether the values are complete; those that are not stay.
    condition: Option<Address>,
    /// The buckets that can be sent now.
    sent: Vec<Arc<Bucket>>,
}

impl ExecutionStep for BucketStart {
    fn start(&self, stream: &Stream) -> Result<()> {
        for transfer in self.transfers.iter().filter(|transfer| transfer.bytes > 0) {
            let to = self.bucket.memory.address() + transfer.offset as u64;
            stream.copy(to, transfer.value, transfer.bytes)?;
        }
        self.bucket.filled.record(stream)?;
        let complete = match self.condition {
            None => true,
            Some(condition) => {
                let mut value = [0];
                stream.read(condition, &mut value)?;
                value != [0]
            }
        };
        if complete { self.sent.iter().try_for_each(|bucket| bucket.reduce()) } else { Ok(()) }
    }

    fn is_capturable(&self) -> bool {
        self.condition.is_none() && self.bucket.ranks.group.is_capturable()
    }

    /// The library connects ranks when they first meet.
    fn has_warmup(&self) -> bool {
        true
    }

    fn memory_bytes(&self) -> u64 {
        self.bucket.memory.bytes() as u64
    }

    fn launches(&self) -> u64 {
        1
    }

    fn name(&self) -> String {
        format!("library all_reduce of bucket {} among {} ranks", self.number, self.bucket.ranks.group.size())
    }
}

/// Waits for an all-reduce and empties its bucket.
pub(crate) struct BucketDone {
    number: usize,
    bucket: Arc<Bucket>,
    transfers: Vec<Transfer>,
}

impl ExecutionStep for BucketDone {
    fn start(&self, stream: &Stream) -> Result<()> {
        stream.wait(&self.bucket.averaged)?;
        for transfer in self.transfers.iter().filter(|transfer| transfer.bytes > 0) {
            let from = self.bucket.memory.address() + transfer.offset as u64;
            stream.copy(transfer.value, from, transfer.bytes)?;
        }
        Ok(())
    }

    fn launches(&self) -> u64 {
        0
    }

    fn name(&self) -> String {
        format!("wait for bucket {}", self.number)
    }
}

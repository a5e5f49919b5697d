//! What the emitter gives.

use std::collections::HashSet;

use thiserror::Error;
use warpforge_fusion::NodeId;

use crate::options::Dialect;
use crate::prelude::prelude;

/// How the copy engine of a device reads a value of two-byte elements: in tiles of 64 neighbours and some lines, whose parts
/// of 16 bytes are exchanged by the number of the line (`CU_TENSOR_MAP_SWIZZLE_128B`); what lies outside is zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Map {
    /// The value.
    pub value: NodeId,
    /// Bytes from where the value begins.
    pub offset: u64,
    /// Neighbours, lines, and batches.
    pub dims: [u64; 3],
    /// Bytes between lines, and between batches.
    pub strides: [u64; 2],
    /// Lines of a tile.
    pub lines: u32,
}

/// A parameter of a kernel, a pointer each but for maps. Addresses are multiples of 16.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Argument {
    /// A value that it reads.
    Value(NodeId),
    /// A value that it reads by the copy engine: the 128 bytes of a `CUtensorMap`.
    Map(Map),
    /// A value that it writes.
    Output(NodeId),
    /// Memory between kernels of one cluster: the place in [`Emitted::scratch`]. Its contents are not known at first.
    Scratch(usize),
    /// Where blocks leave what they saw; [`Kernel::salt_bytes`] of it, zeroed.
    Salt,
}

/// One kernel: its text and how it is launched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kernel {
    /// The name of the function; equal names have equal text.
    pub name: String,
    /// The text, without the prelude.
    pub source: String,
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// Bytes of shared memory given at launch, besides what the text declares; a device may have to be asked for more than
    /// 48 KiB.
    pub shared_bytes: u32,
    /// What it is given, in order.
    pub arguments: Vec<Argument>,
    /// Floating-point operations, as the cost model counts them.
    pub flops: u64,
    /// Bytes read and written, each value once.
    pub bytes: u64,
    /// Bytes that instrumentation writes; 0 without.
    pub salt_bytes: u64,
    /// What it does, for people.
    pub title: String,
}

/// The kernels of a cluster, run one after the other.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Emitted {
    /// The kernels.
    pub kernels: Vec<Kernel>,
    /// Sizes in bytes of memory that they need between them.
    pub scratch: Vec<u64>,
}

/// Why a cluster has no kernel.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("no kernel for {what}")]
pub struct Unsupported {
    /// What has none.
    pub what: String,
}

impl Unsupported {
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self { what: what.into() }
    }
}

/// One text for many kernels: the prelude and each different kernel once.
#[must_use]
pub fn unit<'k>(dialect: Dialect, kernels: impl IntoIterator<Item = &'k Kernel>) -> String {
    let mut text = prelude(dialect).to_owned();
    let mut known = HashSet::new();
    for kernel in kernels {
        if known.insert(kernel.name.as_str()) {
            text.push('\n');
            text.push_str(&kernel.source);
        }
    }
    text
}

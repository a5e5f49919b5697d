//! The output of the emitter.

use std::collections::HashSet;

use thiserror::Error;
use warpforge_fusion::NodeId;

use crate::options::Dialect;
use crate::prelude::prelude;

/// A TMA descriptor of a value of two-byte elements: tiles of 64 elements by some lines, with a 128-byte swizzle
/// (`CU_TENSOR_MAP_SWIZZLE_128B`) and zeros out of bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TensorMap {
    /// The value.
    pub value: NodeId,
    /// Byte offset from the start of the value.
    pub offset: u64,
    /// Elements per line, lines, and batches.
    pub dims: [u64; 3],
    /// Bytes between lines, and between batches.
    pub strides: [u64; 2],
    /// Lines of a tile.
    pub lines: u32,
}

/// A kernel parameter: a pointer, or a tensor map. Addresses are multiples of 16.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Argument {
    /// A value that it reads.
    Value(NodeId),
    /// A value that it reads by TMA: the 128 bytes of a `CUtensorMap`.
    TensorMap(TensorMap),
    /// A value that it writes.
    Output(NodeId),
    /// Scratch memory shared by the kernels of one cluster: the index in [`Emitted::scratch`]. Uninitialised.
    Scratch(usize),
    /// The instrumentation buffer: [`Kernel::salt_bytes`] bytes, zeroed.
    Salt,
}

/// A kernel: its source and launch configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kernel {
    /// The name of the function; equal names have equal sources.
    pub name: String,
    /// The source, without the prelude.
    pub source: String,
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads per block.
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory. More than 48 KiB may have to be enabled on the device.
    pub shared_bytes: u32,
    /// The arguments, in order.
    pub arguments: Vec<Argument>,
    /// Floating-point operations, as the cost model counts them.
    pub flops: u64,
    /// Bytes read and written, each value once.
    pub bytes: u64,
    /// Bytes that the instrumentation writes; 0 without.
    pub salt_bytes: u64,
    /// A readable description.
    pub title: String,
}

/// The kernels of a cluster, launched in order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Emitted {
    /// The kernels.
    pub kernels: Vec<Kernel>,
    /// Sizes in bytes of their scratch buffers.
    pub scratch: Vec<u64>,
}

/// Why a cluster has no kernel.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("no kernel for {what}")]
pub struct Unsupported {
    /// The unsupported operation.
    pub what: String,
}

impl Unsupported {
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self { what: what.into() }
    }
}

/// One translation unit for several kernels: the prelude and each distinct kernel once.
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

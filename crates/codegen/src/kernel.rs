//! The output of the emitter.

use std::collections::HashSet;

use thiserror::Error;
use warpforge_fusion::cluster::Cluster;
use warpforge_fusion::{Graph, NodeId};

use crate::options::{Dialect, Options};
use crate::prelude::prelude;

/// What kernels are emitted for: a cluster of a graph, and how.
#[derive(Clone, Copy)]
pub(crate) struct Request<'a> {
    pub(crate) graph: &'a Graph,
    pub(crate) cluster: &'a Cluster,
    pub(crate) options: &'a Options,
}

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

impl Kernel {
    /// Whether it is instrumented.
    #[must_use]
    pub fn is_salted(&self) -> bool {
        self.arguments.contains(&Argument::Salt)
    }

    /// The kernel for launches whose outputs lie over a value that it reads: the compiler is not told that they are apart.
    #[must_use]
    pub fn with_aliased(&self, value: NodeId) -> Self {
        let mut kernel = self.clone();
        let mut suffix = String::new();
        for (at, argument) in self.arguments.iter().enumerate() {
            if !matches!(argument, Argument::Output(_)) && *argument != Argument::Value(value) {
                continue;
            }
            for end in [",", ")"] {
                let (apart, plain) = (format!("WF_RESTRICT p{at}{end}"), format!("p{at}{end}"));
                kernel.source = kernel.source.replacen(&apart, &plain, 1);
            }
            suffix += &format!("_a{at}");
        }
        kernel.name += &suffix;
        kernel.source = kernel.source.replace(&format!("{}(", self.name), &format!("{}(", kernel.name));
        kernel
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_that_alias_are_not_declared_apart() {
        let pointer = |number: usize| format!("const float* WF_RESTRICT p{number}");
        let parameters: Vec<String> = (0..12).map(pointer).collect();
        let mut arguments: Vec<Argument> = (0..11).map(|at| Argument::Value(NodeId(at))).collect();
        arguments.push(Argument::Output(NodeId(50)));
        let kernel = Kernel {
            name: "wf_k".to_owned(),
            source: format!("void wf_k({}) {{ p11[0] = p1[0]; }}", parameters.join(", ")),
            grid: [1; 3],
            block: [1; 3],
            shared_bytes: 0,
            arguments,
            flops: 0,
            bytes: 0,
            salt_bytes: 0,
            title: String::new(),
        };
        let aliased = kernel.with_aliased(NodeId(1));
        assert_eq!(aliased.name, "wf_k_a1_a11");
        assert!(
            aliased
                .source
                .starts_with("void wf_k_a1_a11(const float* WF_RESTRICT p0, const float* p1, const")
        );
        assert!(aliased.source.contains("WF_RESTRICT p10, const float* p11) {"));
    }
}

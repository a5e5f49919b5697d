//! Kernels of clusters: made once, run often.

// Kernels read and write memory that the plan has set aside for them.
#![allow(unsafe_code)]

mod attention;
mod conv;
mod dot;
mod epilogue;
mod forms;
mod looped;
mod reference;
mod single;
mod steps;

use thiserror::Error;
use warpforge_fusion::cluster::{Cluster, Kind};
use warpforge_fusion::{Graph, NodeId};
use warpforge_kernels::conv::ConvError;
use warpforge_kernels::gemm::{GemmError, MemoryError};
use warpforge_kernels::movement::LayoutError;
use warpforge_kernels::pool::Pool;
use warpforge_kernels::program::ProgramError;
use warpforge_runtime::ErrorKind;

use crate::backend::NAME;

/// Why a cluster has no kernel, or its kernel failed.
#[derive(Debug, Error)]
pub(crate) enum KernelError {
    /// A product cannot be made.
    #[error(transparent)]
    Gemm(#[from] GemmError),
    /// A convolution cannot be made.
    #[error(transparent)]
    Conv(#[from] ConvError),
    /// A loop cannot be made.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// A copy cannot be made.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// There is no memory.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// The reference stopped.
    #[error(transparent)]
    Reference(#[from] warpforge_interp::Error),
    /// There is no kernel for it.
    #[error("{0}")]
    Unsupported(String),
    /// A tensor cannot be made.
    #[error(transparent)]
    Tensor(#[from] warpforge_tensor::Error),
}

impl KernelError {
    /// Why a program cannot be compiled. Only what is unsupported may fall back to the reference.
    pub(crate) fn into_runtime(self) -> warpforge_runtime::Error {
        match self {
            KernelError::Memory(_)
            | KernelError::Gemm(GemmError::Memory(_))
            | KernelError::Conv(ConvError::Gemm(GemmError::Memory(_)))
            | KernelError::Tensor(_)
            | KernelError::Reference(_) => {
                ErrorKind::Failed { backend: NAME, reason: self.to_string() }.into()
            }
            _ => ErrorKind::Unsupported { backend: NAME, operations: vec![self.to_string()] }.into(),
        }
    }
}

pub(crate) type Result<T> = std::result::Result<T, KernelError>;

/// Where the values of a run lie.
pub(crate) struct Memory<'a> {
    pub(crate) pool: &'a Pool,
    /// The address of each value, by its node.
    pub(crate) addresses: &'a [*mut u8],
}

// SAFETY: kernels write only what their clusters give, and the plan keeps that apart from what they read.
unsafe impl Sync for Memory<'_> {}

impl Memory<'_> {
    pub(crate) fn read(&self, id: NodeId) -> *const u8 {
        self.addresses[id.index()]
    }

    pub(crate) fn write(&self, id: NodeId) -> *mut u8 {
        self.addresses[id.index()]
    }
}

/// What computes a cluster.
pub(crate) trait Kernel: Send + Sync {
    /// Computes the cluster.
    ///
    /// # Safety
    ///
    /// The addresses of all values that the cluster reads and gives are good for their sizes and aligned, and nobody else
    /// writes there.
    unsafe fn run(&self, memory: &Memory<'_>) -> Result<()>;

    /// Bytes of packed weights and of memory that it keeps between runs.
    fn bytes(&self) -> usize {
        0
    }

    /// The constant that it has a copy of and reads no more.
    fn replaces(&self) -> Option<NodeId> {
        None
    }

    /// What it is called in profiles.
    fn name(&self) -> String;

    /// Whether the reference computes it.
    fn is_reference(&self) -> bool {
        false
    }
}

/// What kernels are made from.
pub(crate) struct Setting<'a> {
    pub(crate) graph: &'a Graph,
    pub(crate) pool: &'a Pool,
}

/// Makes the kernel of a cluster.
pub(crate) fn kernel(setting: &Setting<'_>, cluster: &Cluster) -> Result<Box<dyn Kernel>> {
    Ok(match &cluster.kind {
        Kind::Loop(body) => looped::kernel(setting.graph, body, cluster.output)?,
        Kind::Dot(product) => Box::new(dot::Dot::new(setting, product, cluster.output)?),
        Kind::Conv(product) => conv::kernel(setting, product, cluster.output)?,
        Kind::Attention(attention) => {
            Box::new(attention::Attention::new(setting, attention, cluster.output)?)
        }
        Kind::AttentionGradient(_) | Kind::Library(..) => {
            return Err(KernelError::Unsupported(
                "a cluster that only another device has kernels for".to_owned(),
            ));
        }
        Kind::Unfused(operands) => single::kernel(setting.graph, operands, cluster.output)?,
    })
}

/// A tensor whose bytes begin where its elements may: itself, or a copy.
pub(crate) fn aligned(tensor: &warpforge_tensor::Tensor) -> Result<warpforge_tensor::Tensor> {
    let element = tensor.element_type();
    if (tensor.bytes().as_ptr() as usize).is_multiple_of(crate::executable::alignment(element)) {
        return Ok(tensor.clone());
    }
    let copy = warpforge_tensor::Tensor::from_bytes(element, tensor.shape().clone(), tensor.bytes());
    Ok(copy?)
}

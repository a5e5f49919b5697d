//! The interface of kernels: the trait, its errors, and what kernels are compiled from and run on.

use std::ops::Range;

use thiserror::Error;
use warpforge_fusion::cluster::Cluster;
use warpforge_fusion::{Graph, NodeId};
use warpforge_kernels::buffer::{AlignedBuffer, AllocationError};
use warpforge_kernels::conv::ConvError;
use warpforge_kernels::data_movement::LayoutError;
use warpforge_kernels::fused_loop::FusedLoopError;
use warpforge_kernels::gemm::GemmError;
use warpforge_kernels::lane_function::LaneFunctionError;
use warpforge_kernels::pool::Pool;
use warpforge_kernels::regions::RegionError;
use warpforge_runtime::{CustomCalls, ErrorKind, Program};
use warpforge_tensor::{ElementType, Shape, Tensor};

use super::shared_weights::SharedWeights;

/// Why a cluster has no kernel, or its kernel failed.
#[derive(Debug, Error)]
pub(crate) enum KernelError {
    /// A GEMM cannot be created.
    #[error(transparent)]
    Gemm(#[from] GemmError),
    /// A convolution cannot be created.
    #[error(transparent)]
    Conv(#[from] ConvError),
    /// A fused loop cannot be created.
    #[error(transparent)]
    FusedLoop(#[from] FusedLoopError),
    /// An operation by a function of scalars cannot be planned.
    #[error(transparent)]
    LaneFunction(#[from] LaneFunctionError),
    /// A copy cannot be planned.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// An operation on regions cannot be planned.
    #[error(transparent)]
    Regions(#[from] RegionError),
    /// Memory cannot be allocated.
    #[error(transparent)]
    Allocation(#[from] AllocationError),
    /// The reference interpreter failed.
    #[error(transparent)]
    Reference(#[from] warpforge_interp::Error),
    /// A tensor cannot be made.
    #[error(transparent)]
    Tensor(#[from] warpforge_tensor::Error),
    /// A program that a kernel runs cannot be compiled, or failed.
    #[error(transparent)]
    Program(#[from] warpforge_runtime::Error),
    /// There is no kernel for it.
    #[error("{0}")]
    Unsupported(String),
}

impl KernelError {
    /// Whether there is no kernel; every other error is a failure, and nothing falls back for it.
    pub(crate) fn is_unsupported(&self) -> bool {
        match self {
            KernelError::Gemm(error) | KernelError::Conv(ConvError::Gemm(error)) => {
                !matches!(error, GemmError::Memory(_))
            }
            KernelError::Conv(_)
            | KernelError::FusedLoop(_)
            | KernelError::LaneFunction(_)
            | KernelError::Layout(_)
            | KernelError::Regions(_)
            | KernelError::Unsupported(_) => true,
            KernelError::Program(error) => matches!(error.kind(), ErrorKind::Unsupported { .. }),
            KernelError::Allocation(_) | KernelError::Tensor(_) | KernelError::Reference(_) => false,
        }
    }
}

pub(crate) type Result<T> = std::result::Result<T, KernelError>;

/// The addresses of the values of a run.
pub(crate) struct ValueBuffers<'a> {
    pub(crate) pool: &'a Pool,
    /// The address of each value, by its node.
    pub(crate) addresses: &'a [*mut u8],
}

// SAFETY: kernels write only the results of their clusters, which the memory plan keeps separate from their inputs.
unsafe impl Sync for ValueBuffers<'_> {}

impl ValueBuffers<'_> {
    pub(crate) fn read(&self, id: NodeId) -> *const u8 {
        self.addresses[id.index()]
    }

    pub(crate) fn write(&self, id: NodeId) -> *mut u8 {
        self.addresses[id.index()]
    }
}

/// The addresses of the parts of a tuple. Parts that nothing reads have no allocation in the memory plan.
pub(crate) struct ResultBuffers {
    pub(crate) targets: Vec<*mut u8>,
    /// Memory of the parts that nothing reads.
    _unread: Vec<AlignedBuffer>,
}

impl ResultBuffers {
    /// The buffers of parts, where something reads them, of these sizes in bytes.
    pub(crate) fn new(buffers: &ValueBuffers<'_>, parts: &[(Option<NodeId>, usize)]) -> Result<Self> {
        let mut unread = Vec::new();
        let mut targets = Vec::new();
        for &(id, bytes) in parts {
            targets.push(match id {
                Some(id) => buffers.write(id),
                None => {
                    let buffer = AlignedBuffer::new(bytes)?;
                    let target = buffer.as_ptr();
                    unread.push(buffer);
                    target
                }
            });
        }
        Ok(Self { targets, _unread: unread })
    }
}

/// A kernel computes one cluster.
pub(crate) trait Kernel: Send + Sync {
    /// Computes the cluster.
    ///
    /// # Safety
    ///
    /// The addresses of all values that the cluster reads and writes are valid for their sizes and aligned, and nothing
    /// else writes to them. They do not overlap, but for a result and a value that [`Kernel::updates_in_place`] names.
    unsafe fn run(&self, buffers: &ValueBuffers<'_>) -> Result<()>;

    /// Whether the kernel may write the result of its cluster over a value that it reads.
    fn updates_in_place(&self, _graph: &Graph, _cluster: &Cluster, _value: NodeId) -> bool {
        false
    }

    /// Bytes of packed weights and of scratch memory that are kept between runs.
    fn bytes(&self) -> usize {
        0
    }

    /// The constant that the kernel has a packed copy of and no longer reads.
    fn replaces(&self) -> Option<NodeId> {
        None
    }

    /// The addresses that each of so many workers reads first, where they are known: for
    /// [`Pool::prefetch_while_waiting`].
    fn first_reads(&self, _workers: usize) -> Vec<Range<usize>> {
        Vec::new()
    }

    /// The name in profiles.
    fn name(&self) -> String;

    /// Whether the kernel falls back to the reference interpreter.
    fn is_reference(&self) -> bool {
        false
    }
}

/// A program that a kernel runs: a branch, or a part of a loop.
pub(crate) trait Subprogram: Send + Sync {
    /// Runs it on the inputs of the program.
    fn run(&self, inputs: &[Tensor]) -> Result<Vec<Tensor>>;

    /// Bytes that it needs beside its inputs.
    fn bytes(&self) -> usize;

    /// Whether a part of it falls back to the reference interpreter.
    fn falls_back(&self) -> bool;
}

/// What kernels are compiled from.
pub(crate) struct CompileContext<'a> {
    pub(crate) graph: &'a Graph,
    pub(crate) pool: &'a Pool,
    /// Custom calls of the host.
    pub(crate) calls: &'a CustomCalls,
    /// The weights that kernels of the program have packed.
    pub(crate) weights: &'a SharedWeights,
    /// Compiles a program for the same device.
    pub(crate) compile: &'a dyn Fn(&Program) -> Result<Box<dyn Subprogram>>,
}

/// The tensor of a value: a copy.
///
/// # Safety
///
/// The address of the value is valid for its size.
pub(crate) unsafe fn tensor_at(
    buffers: &ValueBuffers<'_>,
    id: NodeId,
    element: ElementType,
    dims: &[usize],
) -> Result<Tensor> {
    let shape = Shape::new(dims)?;
    let bytes = shape.num_elements() * element.byte_width();
    // SAFETY: guaranteed by the caller.
    let bytes = unsafe { std::slice::from_raw_parts(buffers.read(id), bytes) };
    Ok(Tensor::from_bytes(element, shape, bytes)?)
}

/// A tensor whose data is aligned to its elements: itself, or a copy.
pub(crate) fn aligned(tensor: &Tensor) -> Result<Tensor> {
    let element = tensor.element_type();
    if (tensor.bytes().as_ptr() as usize).is_multiple_of(alignment(element)) {
        return Ok(tensor.clone());
    }
    let copy = Tensor::from_bytes(element, tensor.shape().clone(), tensor.bytes());
    Ok(copy?)
}

/// The alignment of an element type.
fn alignment(element: ElementType) -> usize {
    match element {
        ElementType::Complex(part) => part.format().bits() as usize / 8,
        _ => element.byte_width(),
    }
}

//! Descriptions of GEMMs, independent of the library.

use warpforge_tensor::ElementType;

use crate::driver::{Address, Stream};
use crate::error::Result;

/// Bytes of GEMM workspace.
pub(crate) const WORKSPACE: usize = 64 << 20;

/// The memory layout of a GEMM operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Matrix {
    /// Its element type.
    pub(crate) element: ElementType,
    /// Whether it is column-major.
    pub(crate) by_columns: bool,
    /// The leading dimension.
    pub(crate) stride: usize,
    /// The stride between matrices of a batch.
    pub(crate) batch_stride: usize,
    /// Alignment of its address in bytes.
    pub(crate) alignment: u32,
}

/// The activation, the last operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Activation {
    /// Nothing.
    None,
    /// ReLU.
    Relu,
    /// GELU, tanh approximation.
    Gelu,
    /// The result times the derivative of GELU at an auxiliary matrix of the same type and shape.
    GeluGradient,
    /// The result masked by the bits of an auxiliary matrix of the same shape; cuBLASLt only.
    ReluGradient,
}

/// Accumulation and compute type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum ComputeType {
    /// f32.
    F32,
    /// f32, operands rounded to tf32.
    Tf32,
    /// f64.
    F64,
    /// i32.
    I32,
}

/// Which products a scale of an operand holds for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum ScaleMode {
    /// All of them.
    Tensor,
    /// Those of a row of the left operand, and those of a column of the right one.
    Row,
}

/// A row-major GEMM: out[m, n] = lhs[m, k] · rhs[k, n].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Gemm {
    pub(crate) batch: usize,
    pub(crate) m: usize,
    pub(crate) n: usize,
    pub(crate) k: usize,
    pub(crate) lhs: Matrix,
    pub(crate) rhs: Matrix,
    /// The element type of the dense result.
    pub(crate) out: ElementType,
    pub(crate) compute_type: ComputeType,
    /// The element type of a bias per column.
    pub(crate) bias: Option<ElementType>,
    pub(crate) activation: Activation,
    /// Whether a matrix of the result's shape is added.
    pub(crate) residual: bool,
    /// What each operand is multiplied by, in f32; floats of 8 bits only.
    pub(crate) scales: Option<ScaleMode>,
    /// Whether floats of 8 bits are accumulated by the faster way that keeps fewer bits.
    pub(crate) fast_accumulation: bool,
    /// The operand whose sum over k is computed too, as a bias gradient in the result's type. Excludes a bias.
    pub(crate) bias_gradient: Option<OperandSide>,
}

/// One of the operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum OperandSide {
    Left,
    Right,
}

/// Addresses of a GEMM's matrices.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct GemmBuffers {
    pub(crate) lhs: Address,
    pub(crate) rhs: Address,
    pub(crate) out: Address,
    /// The bias, or the output of the bias gradient.
    pub(crate) bias: Address,
    pub(crate) residual: Address,
    /// The scales of the left and the right operand.
    pub(crate) scales: [Address; 2],
    /// The auxiliary matrix of an activation gradient.
    pub(crate) aux: Address,
    pub(crate) workspace: Address,
}

/// A GEMM that is ready to run.
pub(crate) trait RunGemm: Send + Sync {
    /// Launches it.
    fn run(&self, stream: &Stream) -> Result<()>;
}

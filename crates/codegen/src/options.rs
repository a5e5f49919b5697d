//! Emitter options.

use crate::salt::Salt;

/// A device dialect of C++.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// CUDA C++ as NVRTC takes it, without headers.
    Cuda,
    /// HIP C++ as hiprtc and clang take it, without headers.
    Hip,
}

/// Compute precision of f32 GEMMs and convolutions. Roundings to bf16 and f16 are operations of the graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ComputePrecision {
    /// As in the model.
    #[default]
    Model,
    /// f32 operands rounded to tf32.
    Tf32,
}

/// Multiprocessors of an H100: what persistent kernels have blocks for.
pub(crate) const MULTIPROCESSORS: usize = 132;

/// Optimisation effort.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Effort {
    /// Tiling, tensor cores, vectorised access.
    #[default]
    Fast,
    /// One thread per output element.
    Naive,
}

/// Emitter options.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Options {
    /// The dialect.
    pub dialect: Dialect,
    /// The instrumentation.
    pub salt: Salt,
    /// The target architecture, such as `sm_90` or `gfx942`.
    pub architecture: String,
    /// The compute precision of GEMMs.
    pub compute_precision: ComputePrecision,
    /// The optimisation effort.
    pub effort: Effort,
}

impl Options {
    /// Fast kernels without instrumentation.
    #[must_use]
    pub fn new(dialect: Dialect, architecture: impl Into<String>) -> Self {
        let architecture = architecture.into();
        Self {
            dialect,
            salt: Salt::Off,
            architecture,
            compute_precision: ComputePrecision::default(),
            effort: Effort::default(),
        }
    }

    /// The compute capability of an NVIDIA device: 90 for `sm_90`. None for others.
    #[must_use]
    pub fn compute_capability(&self) -> Option<u32> {
        self.architecture.strip_prefix("sm_")?.parse().ok()
    }

    /// Bytes of shared memory that a block may ask for on an NVIDIA device.
    pub(crate) fn shared_of_block(&self) -> usize {
        match self.compute_capability() {
            Some(80 | 87) => 163 << 10,
            Some(90..120) => 227 << 10,
            _ => 99 << 10,
        }
    }
}

//! What is asked of the emitter.

use crate::salt::Salt;

/// A dialect of C++ for devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// CUDA C++ as NVRTC takes it, without headers.
    Cuda,
    /// HIP C++ as hiprtc and clang take it, without headers.
    Hip,
}

/// In which numbers products of f32 are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Products {
    /// As the model says.
    #[default]
    Model,
    /// f32 operands rounded to tf32.
    Tf32,
    /// f32 operands rounded to bf16, sums in f32.
    Bf16,
    /// f32 operands rounded to f16, sums in f32.
    F16,
}

/// How much is done for speed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Effort {
    /// Tiled products, tensor cores, vectorised access.
    #[default]
    Fast,
    /// One thread for each element of a result, nothing shared.
    Naive,
}

/// What is asked of the emitter.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Options {
    /// The dialect.
    pub dialect: Dialect,
    /// The instrumentation.
    pub salt: Salt,
    /// What the kernels will run on, such as `sm_90` or `gfx942`.
    pub architecture: String,
    /// The numbers of products.
    pub products: Products,
    /// How much is done for speed.
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
            products: Products::default(),
            effort: Effort::default(),
        }
    }
}

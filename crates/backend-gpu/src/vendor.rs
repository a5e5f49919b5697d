//! GPU vendors.

/// A GPU vendor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Vendor {
    /// NVIDIA, CUDA.
    Cuda,
    /// AMD, HIP.
    Hip,
}

impl Vendor {
    /// The device prefix.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Vendor::Cuda => "cuda",
            Vendor::Hip => "hip",
        }
    }
}

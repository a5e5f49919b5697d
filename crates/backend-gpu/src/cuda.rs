//! NVIDIA: library names and minimum versions.

use crate::library::LibrarySpec;
use crate::vendor::Vendor;

/// The driver.
pub(crate) const DRIVER: LibrarySpec = LibrarySpec {
    what: "CUDA driver",
    names: &["libcuda.so.1", "libcuda.so"],
    vendor: Vendor::Cuda,
    driver: true,
};

/// The compiler of kernels.
pub(crate) const COMPILER: LibrarySpec = LibrarySpec {
    what: "CUDA run-time compiler (NVRTC)",
    names: &["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"],
    vendor: Vendor::Cuda,
    driver: false,
};

/// cuBLASLt.
pub(crate) const BLAS_LT: LibrarySpec = LibrarySpec {
    what: "cuBLASLt",
    names: &["libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"],
    vendor: Vendor::Cuda,
    driver: false,
};

/// cuDNN.
pub(crate) const DNN: LibrarySpec = LibrarySpec {
    what: "cuDNN",
    names: &["libcudnn.so.9", "libcudnn.so"],
    vendor: Vendor::Cuda,
    driver: false,
};

/// NCCL.
pub(crate) const COLLECTIVES: LibrarySpec =
    LibrarySpec { what: "NCCL", names: &["libnccl.so.2", "libnccl.so"], vendor: Vendor::Cuda, driver: false };

/// Minimum driver version: CUDA 12.0.
pub(crate) const OLDEST: i32 = 12_000;

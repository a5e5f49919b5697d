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
pub(crate) const COMPILER: LibrarySpec = LibrarySpec::new(
    Vendor::Cuda,
    "CUDA run-time compiler (NVRTC)",
    &["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"],
);

/// cuBLASLt.
pub(crate) const BLAS_LT: LibrarySpec =
    LibrarySpec::new(Vendor::Cuda, "cuBLASLt", &["libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"]);

/// cuDNN.
pub(crate) const DNN: LibrarySpec =
    LibrarySpec::new(Vendor::Cuda, "cuDNN", &["libcudnn.so.9", "libcudnn.so"]);

/// cuSOLVER.
pub(crate) const SOLVER: LibrarySpec =
    LibrarySpec::new(Vendor::Cuda, "cuSOLVER", &["libcusolver.so.12", "libcusolver.so.11", "libcusolver.so"]);

/// NCCL.
pub(crate) const COLLECTIVES: LibrarySpec =
    LibrarySpec::new(Vendor::Cuda, "NCCL", &["libnccl.so.2", "libnccl.so"]);

/// Minimum driver version: CUDA 12.0.
pub(crate) const OLDEST: i32 = 12_000;

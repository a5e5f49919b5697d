//! NVIDIA: library names and interface constants.

pub(crate) mod cudnn;

use crate::blas::ApiConstants;
use crate::driver::Attributes;
use crate::library::{LibrarySpec, Vendor};

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

/// Device attributes.
pub(crate) const ATTRIBUTES: Attributes =
    Attributes { major: 75, minor: 76, multiprocessors: 16, shared_bytes: 97 };

/// cuBLASLt constants.
pub(crate) const BLAS_CONSTANTS: ApiConstants = ApiConstants {
    compute_f32: 68,
    compute_tf32: 77,
    compute_f64: 70,
    compute_i32: 72,
    plain: 0,
    transposed: 1,
    transpose_a: 3,
    transpose_b: 4,
    epilogue: 7,
    bias_address: 8,
    bias_type: 26,
    aux_address: 11,
    aux_stride: 12,
    batch_count: 5,
    batch_stride: 6,
    most_workspace: 1,
    alignments: Some(5),
    algorithm_bytes: 64,
    answer_bytes: 96,
};

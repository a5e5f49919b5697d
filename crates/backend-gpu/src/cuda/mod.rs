//! NVIDIA: the names of its libraries and the numbers of its interfaces.

pub(crate) mod networks;

use crate::driver::Attributes;
use crate::library::{Vendor, Wanted};
use crate::products::Numbers;

/// The driver.
pub(crate) const DRIVER: Wanted = Wanted {
    what: "CUDA driver",
    names: &["libcuda.so.1", "libcuda.so"],
    vendor: Vendor::Cuda,
    driver: true,
};

/// The compiler of kernels.
pub(crate) const COMPILER: Wanted = Wanted {
    what: "CUDA run-time compiler (NVRTC)",
    names: &["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"],
    vendor: Vendor::Cuda,
    driver: false,
};

/// Matrix products.
pub(crate) const PRODUCTS: Wanted = Wanted {
    what: "cuBLASLt",
    names: &["libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"],
    vendor: Vendor::Cuda,
    driver: false,
};

/// Convolutions and attention.
pub(crate) const NETWORKS: Wanted =
    Wanted { what: "cuDNN", names: &["libcudnn.so.9", "libcudnn.so"], vendor: Vendor::Cuda, driver: false };

/// What several processes do together.
pub(crate) const COLLECTIVES: Wanted =
    Wanted { what: "NCCL", names: &["libnccl.so.2", "libnccl.so"], vendor: Vendor::Cuda, driver: false };

/// The oldest driver that will do: CUDA 12.0.
pub(crate) const OLDEST: i32 = 12_000;

/// The numbers of device attributes.
pub(crate) const ATTRIBUTES: Attributes =
    Attributes { major: 75, minor: 76, multiprocessors: 16, shared_bytes: 97 };

/// The numbers of cuBLASLt.
pub(crate) const NUMBERS: Numbers = Numbers {
    sum_f32: 68,
    sum_tf32: 77,
    sum_f64: 70,
    sum_i32: 72,
    plain: 0,
    transposed: 1,
    transpose_a: 3,
    transpose_b: 4,
    epilogue: 7,
    bias_address: 8,
    bias_type: 26,
    beside_address: 11,
    beside_stride: 12,
    batch_count: 5,
    batch_stride: 6,
    most_workspace: 1,
    alignments: Some(5),
    algorithm_bytes: 64,
    answer_bytes: 96,
};

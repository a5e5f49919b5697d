//! AMD: library names and interface constants.

pub(crate) mod miopen;

use crate::blas::ApiConstants;
use crate::driver::Attributes;
use crate::library::{LibrarySpec, Vendor};

/// The HIP runtime.
pub(crate) const DRIVER: LibrarySpec = LibrarySpec {
    what: "HIP runtime",
    names: &["libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so"],
    vendor: Vendor::Hip,
    driver: false,
};

/// The compiler of kernels.
pub(crate) const COMPILER: LibrarySpec = LibrarySpec {
    what: "HIP run-time compiler (hiprtc)",
    names: &["libhiprtc.so.7", "libhiprtc.so.6", "libhiprtc.so"],
    vendor: Vendor::Hip,
    driver: false,
};

/// hipBLASLt.
pub(crate) const BLAS_LT: LibrarySpec = LibrarySpec {
    what: "hipBLASLt",
    names: &["libhipblaslt.so.1", "libhipblaslt.so.0", "libhipblaslt.so"],
    vendor: Vendor::Hip,
    driver: false,
};

/// rocBLAS.
pub(crate) const ROCBLAS: LibrarySpec = LibrarySpec {
    what: "rocBLAS",
    names: &["librocblas.so.5", "librocblas.so.4", "librocblas.so"],
    vendor: Vendor::Hip,
    driver: false,
};

/// MIOpen.
pub(crate) const DNN: LibrarySpec = LibrarySpec {
    what: "MIOpen",
    names: &["libMIOpen.so.1", "libMIOpen.so"],
    vendor: Vendor::Hip,
    driver: false,
};

/// RCCL.
pub(crate) const COLLECTIVES: LibrarySpec =
    LibrarySpec { what: "RCCL", names: &["librccl.so.1", "librccl.so"], vendor: Vendor::Hip, driver: false };

/// Minimum runtime version: HIP 6.0.
pub(crate) const OLDEST: i32 = 60_000_000;

/// Device attributes.
pub(crate) const ATTRIBUTES: Attributes =
    Attributes { major: 23, minor: 61, multiprocessors: 63, shared_bytes: 74 };

/// hipBLASLt constants.
pub(crate) const BLAS_CONSTANTS: ApiConstants = ApiConstants {
    compute_f32: 2,
    compute_tf32: 6,
    compute_f64: 7,
    compute_i32: 9,
    plain: 111,
    transposed: 112,
    transpose_a: 0,
    transpose_b: 1,
    epilogue: 2,
    bias_address: 3,
    bias_type: 4,
    aux_address: 10,
    aux_stride: 11,
    batch_count: 0,
    batch_stride: 1,
    most_workspace: 1,
    alignments: None,
    algorithm_bytes: 24,
    answer_bytes: 56,
};

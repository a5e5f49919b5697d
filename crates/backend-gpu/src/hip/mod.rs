//! AMD: the names of its libraries and the numbers of its interfaces.

pub(crate) mod networks;

use crate::driver::Attributes;
use crate::library::{Vendor, Wanted};
use crate::products::Numbers;

/// The driver's interface.
pub(crate) const DRIVER: Wanted = Wanted {
    what: "HIP runtime",
    names: &["libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so"],
    vendor: Vendor::Hip,
    driver: false,
};

/// The compiler of kernels.
pub(crate) const COMPILER: Wanted = Wanted {
    what: "HIP run-time compiler (hiprtc)",
    names: &["libhiprtc.so.7", "libhiprtc.so.6", "libhiprtc.so"],
    vendor: Vendor::Hip,
    driver: false,
};

/// Matrix products.
pub(crate) const PRODUCTS: Wanted = Wanted {
    what: "hipBLASLt",
    names: &["libhipblaslt.so.1", "libhipblaslt.so.0", "libhipblaslt.so"],
    vendor: Vendor::Hip,
    driver: false,
};

/// Matrix products where hipBLASLt is not there or refuses.
pub(crate) const OLDER_PRODUCTS: Wanted = Wanted {
    what: "rocBLAS",
    names: &["librocblas.so.5", "librocblas.so.4", "librocblas.so"],
    vendor: Vendor::Hip,
    driver: false,
};

/// Convolutions.
pub(crate) const NETWORKS: Wanted =
    Wanted { what: "MIOpen", names: &["libMIOpen.so.1", "libMIOpen.so"], vendor: Vendor::Hip, driver: false };

/// What several processes do together.
pub(crate) const COLLECTIVES: Wanted =
    Wanted { what: "RCCL", names: &["librccl.so.1", "librccl.so"], vendor: Vendor::Hip, driver: false };

/// The oldest runtime that will do: HIP 6.0.
pub(crate) const OLDEST: i32 = 60_000_000;

/// The numbers of device attributes.
pub(crate) const ATTRIBUTES: Attributes =
    Attributes { major: 23, minor: 61, multiprocessors: 63, shared_bytes: 74 };

/// The numbers of hipBLASLt.
pub(crate) const NUMBERS: Numbers = Numbers {
    sum_f32: 2,
    sum_tf32: 6,
    sum_f64: 7,
    sum_i32: 9,
    plain: 111,
    transposed: 112,
    transpose_a: 0,
    transpose_b: 1,
    epilogue: 2,
    bias_address: 3,
    bias_type: 4,
    beside_address: 10,
    beside_stride: 11,
    batch_count: 0,
    batch_stride: 1,
    most_workspace: 1,
    alignments: None,
    algorithm_bytes: 24,
    answer_bytes: 56,
};

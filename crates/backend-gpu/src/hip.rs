//! AMD: library names and minimum versions.

use crate::library::LibrarySpec;
use crate::vendor::Vendor;

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

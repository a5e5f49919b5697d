//! AMD: library names and minimum versions.

use crate::library::LibrarySpec;
use crate::vendor::Vendor;

/// The HIP runtime.
pub(crate) const DRIVER: LibrarySpec =
    LibrarySpec::new(Vendor::Hip, "HIP runtime", &["libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so"]);

/// The compiler of kernels.
pub(crate) const COMPILER: LibrarySpec = LibrarySpec::new(
    Vendor::Hip,
    "HIP run-time compiler (hiprtc)",
    &["libhiprtc.so.7", "libhiprtc.so.6", "libhiprtc.so"],
);

/// hipBLASLt.
pub(crate) const BLAS_LT: LibrarySpec = LibrarySpec::new(
    Vendor::Hip,
    "hipBLASLt",
    &["libhipblaslt.so.1", "libhipblaslt.so.0", "libhipblaslt.so"],
);

/// rocBLAS.
pub(crate) const ROCBLAS: LibrarySpec =
    LibrarySpec::new(Vendor::Hip, "rocBLAS", &["librocblas.so.5", "librocblas.so.4", "librocblas.so"]);

/// MIOpen.
pub(crate) const DNN: LibrarySpec =
    LibrarySpec::new(Vendor::Hip, "MIOpen", &["libMIOpen.so.1", "libMIOpen.so"]);

/// RCCL.
pub(crate) const COLLECTIVES: LibrarySpec =
    LibrarySpec::new(Vendor::Hip, "RCCL", &["librccl.so.1", "librccl.so"]);

/// Minimum runtime version: HIP 6.0.
pub(crate) const OLDEST: i32 = 60_000_000;

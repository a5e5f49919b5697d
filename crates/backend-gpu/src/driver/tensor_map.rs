//! Tensor maps for TMA.

use std::ffi::c_void;
use std::sync::OnceLock;

use warpforge_codegen::TensorMap;

use super::functions::Address;
use crate::cuda;
use crate::error::{GpuError, Result};
use crate::library::functions;

functions! {
    /// The driver function that encodes tensor maps.
    TensorMapFunctions {
        encode(
            *mut EncodedTensorMap, i32, u32, *mut c_void, *const u64, *const u64, *const u32, *const u32, i32, i32, i32, i32,
        ) = "cuTensorMapEncodeTiled";
    }
}

/// An encoded tensor map.
#[repr(C, align(64))]
pub(crate) struct EncodedTensorMap([u64; 16]);

/// `CU_TENSOR_MAP_DATA_TYPE_UINT16`: elements are copied, not computed with.
const TWO_BYTES: i32 = 1;

/// `CU_TENSOR_MAP_INTERLEAVE_NONE`, and `CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE`: zeros.
const NONE: i32 = 0;

/// `CU_TENSOR_MAP_SWIZZLE_128B` and `CU_TENSOR_MAP_L2_PROMOTION_L2_256B`.
const SWIZZLE_128B: i32 = 3;
const PROMOTE_256B: i32 = 3;

/// Encodes the tensor map of a value at an address.
///
/// # Errors
///
/// When the driver is too old or refuses the map.
pub(crate) fn encode(map: &TensorMap, address: Address) -> Result<Vec<u64>> {
    static FUNCTIONS: OnceLock<Result<TensorMapFunctions>> = OnceLock::new();
    let functions =
        FUNCTIONS.get_or_init(|| TensorMapFunctions::open(&cuda::DRIVER)).as_ref().map_err(Clone::clone)?;
    let (sides, steps) = ([64, map.lines, 1], [1u32; 3]);
    let mut words = EncodedTensorMap([0; 16]);
    // SAFETY: the words are aligned as asked for, and the lists have as many numbers as the map has dimensions.
    let code = unsafe {
        (functions.encode)(
            &raw mut words,
            TWO_BYTES,
            3,
            (address + map.offset) as *mut c_void,
            map.dims.as_ptr(),
            map.strides.as_ptr(),
            sides.as_ptr(),
            steps.as_ptr(),
            NONE,
            SWIZZLE_128B,
            PROMOTE_256B,
            NONE,
        )
    };
    if code != 0 {
        return Err(GpuError::Other(format!(
            "the driver refuses a map of {:?} elements: error {code}",
            map.dims
        )));
    }
    Ok(words.0.to_vec())
}

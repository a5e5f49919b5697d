//! Maps by which the copy engine of a device reads values.

use std::ffi::c_void;
use std::sync::OnceLock;

use warpforge_codegen::Map;

use super::Address;
use crate::cuda;
use crate::error::{GpuError, Result};
use crate::library::functions;

functions! {
    /// The part of NVIDIA's driver that makes maps.
    Maps {
        encode(
            *mut Words, i32, u32, *mut c_void, *const u64, *const u64, *const u32, *const u32, i32, i32, i32, i32,
        ) = "cuTensorMapEncodeTiled";
    }
}

/// A map: only the driver and the device look into it.
#[repr(C, align(64))]
pub(crate) struct Words([u64; 16]);

/// `CU_TENSOR_MAP_DATA_TYPE_UINT16`: elements are copied, not computed with.
const TWO_BYTES: i32 = 1;

/// `CU_TENSOR_MAP_INTERLEAVE_NONE`, and `CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE`: zeros.
const NONE: i32 = 0;

/// `CU_TENSOR_MAP_SWIZZLE_128B` and `CU_TENSOR_MAP_L2_PROMOTION_L2_256B`.
const EXCHANGED: i32 = 3;
const PROMOTED: i32 = 3;

/// The words of a map of a value at an address.
///
/// # Errors
///
/// When the driver is too old to make maps, or refuses this one.
pub(crate) fn words(map: &Map, address: Address) -> Result<Vec<u64>> {
    static MAPS: OnceLock<Result<Maps>> = OnceLock::new();
    let maps = MAPS.get_or_init(|| Maps::open(&cuda::DRIVER)).as_ref().map_err(Clone::clone)?;
    let (sides, steps) = ([64, map.lines, 1], [1u32; 3]);
    let mut words = Words([0; 16]);
    // SAFETY: the words are aligned as asked for, and the lists have as many numbers as the map has dimensions.
    let code = unsafe {
        (maps.encode)(
            &raw mut words,
            TWO_BYTES,
            3,
            (address + map.offset) as *mut c_void,
            map.dims.as_ptr(),
            map.strides.as_ptr(),
            sides.as_ptr(),
            steps.as_ptr(),
            NONE,
            EXCHANGED,
            PROMOTED,
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

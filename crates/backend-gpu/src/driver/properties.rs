//! Device properties.

use crate::vendor::Vendor;

/// Driver constants of device attributes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Attributes {
    pub(crate) major: i32,
    pub(crate) minor: i32,
    pub(crate) multiprocessors: i32,
    pub(crate) shared_bytes: i32,
}

/// CUDA device attributes.
pub(super) const CUDA_ATTRIBUTES: Attributes =
    Attributes { major: 75, minor: 76, multiprocessors: 16, shared_bytes: 97 };

/// HIP device attributes.
pub(super) const HIP_ATTRIBUTES: Attributes =
    Attributes { major: 23, minor: 61, multiprocessors: 63, shared_bytes: 74 };

/// Device properties.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Properties {
    /// Its name.
    pub(crate) name: String,
    /// The identifier that the vendor's management tools use, if available.
    pub(crate) guid: Option<String>,
    /// Compute capability.
    pub(crate) capability: (u32, u32),
    /// Its multiprocessors.
    pub(crate) multiprocessors: u32,
    /// Maximum dynamic shared memory per block in bytes.
    pub(crate) shared_bytes: u32,
}

/// The identifier in the vendor's format: NVIDIA formats the bytes, AMD's are text.
pub(super) fn guid(vendor: Vendor, uuid: [u8; 16]) -> String {
    match vendor {
        Vendor::Cuda => {
            let groups = [0..4, 4..6, 6..8, 8..10, 10..16];
            let text = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
            let groups = groups.map(|group| text(&uuid[group]));
            format!("GPU-{}", groups.join("-"))
        }
        Vendor::Hip => String::from_utf8_lossy(&uuid).trim_end_matches('\0').to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_identifiers_match_vendor_tools() {
        let bytes = std::array::from_fn(|at| at as u8);
        assert_eq!(guid(Vendor::Cuda, bytes), "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f");
        assert_eq!(guid(Vendor::Hip, *b"8f3c0d6e21aa4b57"), "8f3c0d6e21aa4b57");
    }
}

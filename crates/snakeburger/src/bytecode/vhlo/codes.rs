//! The numbers that stand for attributes and types of VHLO, and for the values of enumerations.

use crate::bytecode::version::Version;

/// Numbers of attributes.
pub(crate) mod attr {
    pub(crate) const ARRAY: u64 = 1;
    pub(crate) const BOOL: u64 = 2;
    pub(crate) const API_VERSION: u64 = 5;
    pub(crate) const DICT: u64 = 6;
    pub(crate) const FLOAT: u64 = 8;
    pub(crate) const INTEGER: u64 = 9;
    pub(crate) const ALIAS: u64 = 10;
    pub(crate) const STRING: u64 = 14;
    pub(crate) const TENSOR: u64 = 15;
    pub(crate) const TYPE: u64 = 17;
    pub(crate) const TYPE_EXTENSIONS: u64 = 18;
    pub(crate) const RESULT_ACCURACY: u64 = 20;
    pub(crate) const SUB_AXIS_INFO: u64 = 21;
    pub(crate) const AXIS_REF: u64 = 22;
    pub(crate) const REPLICA_GROUP_MESH_AXES: u64 = 23;
    pub(crate) const MESH_AXIS: u64 = 24;
    pub(crate) const MESH: u64 = 25;
}

/// Numbers of types that are more than a word.
pub(crate) mod ty {
    pub(crate) const COMPLEX: u64 = 1;
    pub(crate) const FUNCTION: u64 = 8;
    pub(crate) const TENSOR: u64 = 20;
    pub(crate) const TENSOR_WITH_ENCODING: u64 = 21;
    pub(crate) const TOKEN: u64 = 22;
    pub(crate) const TUPLE: u64 = 23;
    pub(crate) const QUANTIZED: u64 = 24;
    pub(crate) const UNRANKED_TENSOR: u64 = 25;
    pub(crate) const WITNESS: u64 = 26;
    pub(crate) const QUANTIZED_PER_AXIS: u64 = 30;
    pub(crate) const NONE: u64 = 33;
    pub(crate) const BUFFER: u64 = 41;
    pub(crate) const FUTURE: u64 = 42;
}

/// The version since when per-axis quantized types exist.
pub(crate) const PER_AXIS_SINCE: Version = Version::new(0, 18);
/// The version since when buffers exist.
pub(crate) const BUFFER_SINCE: Version = Version::new(1, 13);
/// The version since when pending results exist.
pub(crate) const FUTURE_SINCE: Version = Version::new(1, 15);
/// The version since when groups of processes may be axes of a mesh.
pub(crate) const MESH_SINCE: Version = Version::new(1, 16);

/// A type that is a word: its number, its name, and since when it exists.
pub(crate) struct Scalar {
    pub(crate) code: u64,
    pub(crate) name: &'static str,
    pub(crate) since: Version,
}

const fn scalar(code: u64, name: &'static str, since: (u32, u32)) -> Scalar {
    Scalar { code, name, since: Version::new(since.0, since.1) }
}

const FIRST: (u32, u32) = (0, 9);

/// Types that are a word.
pub(crate) const SCALARS: &[Scalar] = &[
    scalar(0, "i1", FIRST),
    scalar(2, "bf16", FIRST),
    scalar(3, "f16", FIRST),
    scalar(4, "f32", FIRST),
    scalar(5, "f64", FIRST),
    scalar(6, "f8E4M3FN", FIRST),
    scalar(7, "f8E5M2", FIRST),
    scalar(9, "index", FIRST),
    scalar(10, "i4", FIRST),
    scalar(11, "i8", FIRST),
    scalar(12, "i16", FIRST),
    scalar(13, "i32", FIRST),
    scalar(14, "i64", FIRST),
    scalar(15, "ui4", FIRST),
    scalar(16, "ui8", FIRST),
    scalar(17, "ui16", FIRST),
    scalar(18, "ui32", FIRST),
    scalar(19, "ui64", FIRST),
    scalar(27, "f8E4M3FNUZ", (0, 10)),
    scalar(28, "f8E5M2FNUZ", (0, 10)),
    scalar(29, "f8E4M3B11FNUZ", (0, 11)),
    scalar(31, "i2", (1, 2)),
    scalar(32, "ui2", (1, 2)),
    scalar(34, "tf32", (1, 6)),
    scalar(35, "f8E4M3", (1, 7)),
    scalar(36, "f8E3M4", (1, 7)),
    scalar(37, "f4E2M1FN", (1, 8)),
    scalar(38, "f6E2M3FN", (1, 8)),
    scalar(39, "f6E3M2FN", (1, 8)),
    scalar(40, "f8E8M0FNU", (1, 8)),
];

/// An attribute that is a value of an enumeration: its number, the enumeration, and the number of its first value.
pub(crate) struct EnumCode {
    pub(crate) code: u64,
    pub(crate) mnemonic: &'static str,
    pub(crate) first: u64,
}

const fn enumeration(code: u64, mnemonic: &'static str, first: u64) -> EnumCode {
    EnumCode { code, mnemonic, first }
}

/// Enumerations of VHLO.
pub(crate) const ENUMS: &[EnumCode] = &[
    enumeration(3, "comparison_direction", 0),
    enumeration(4, "comparison_type", 0),
    enumeration(7, "fft_type", 0),
    enumeration(11, "precision", 0),
    enumeration(12, "rng_algorithm", 0),
    enumeration(13, "rng_distribution", 1),
    enumeration(16, "transpose", 0),
    enumeration(19, "result_accuracy_mode", 0),
];

/// Enumerations of the StableHLO dialect itself.
pub(crate) const STABLEHLO_ENUMS: &[EnumCode] = &[
    enumeration(2, "comparison_direction", 0),
    enumeration(3, "comparison_type", 0),
    enumeration(6, "fft_type", 0),
    enumeration(8, "precision", 0),
    enumeration(9, "rng_algorithm", 0),
    enumeration(10, "rng_distribution", 1),
    enumeration(12, "transpose", 0),
    enumeration(16, "result_accuracy_mode", 0),
];

/// Enumerations of CHLO.
pub(crate) const CHLO_ENUMS: &[EnumCode] =
    &[enumeration(0, "comparison_direction", 0), enumeration(1, "comparison_type", 0)];

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use warpforge_ir::attr::EnumValue;
    use warpforge_ir::types::ElementType;

    use super::*;

    #[test]
    fn every_element_type_has_a_number_of_its_own() {
        let codes: HashSet<u64> = SCALARS.iter().map(|scalar| scalar.code).collect();
        assert_eq!(codes.len(), SCALARS.len());
        for element in ElementType::all().filter(|element| !matches!(element, ElementType::Complex(_))) {
            let name = element.to_string();
            assert!(SCALARS.iter().any(|scalar| scalar.name == name), "{name}");
        }
    }

    #[test]
    fn every_enumeration_is_one() {
        for code in ENUMS.iter().chain(STABLEHLO_ENUMS).chain(CHLO_ENUMS) {
            assert!(EnumValue::is_mnemonic(code.mnemonic), "{}", code.mnemonic);
        }
    }
}

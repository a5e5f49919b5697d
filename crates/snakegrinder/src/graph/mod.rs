//! The exported graph: its JSON, its sizes, its element types.

pub(crate) mod outputs;
pub(crate) mod schema;
pub(crate) mod size;
mod source;

pub(crate) use source::Source;
use warpforge_tensor::{ElementType, FloatType};

/// The element type of a scalar type's code in the export schema.
pub(crate) fn element_type(code: i64) -> Result<ElementType, String> {
    Ok(match code {
        1 => ElementType::U8,
        2 => ElementType::I8,
        3 => ElementType::I16,
        4 => ElementType::I32,
        5 => ElementType::I64,
        6 => ElementType::F16,
        7 => ElementType::F32,
        8 => ElementType::F64,
        9 => return Err("elements of type ComplexHalf have no counterpart in StableHLO".to_owned()),
        10 => ElementType::C64,
        11 => ElementType::C128,
        12 => ElementType::Bool,
        13 => ElementType::BF16,
        28 => ElementType::U16,
        29 => ElementType::Float(FloatType::F8E4M3Fn),
        30 => ElementType::Float(FloatType::F8E5M2),
        31 => ElementType::Float(FloatType::F8E4M3Fnuz),
        32 => ElementType::Float(FloatType::F8E5M2Fnuz),
        33 => ElementType::Float(FloatType::F8E8M0Fnu),
        34 => ElementType::U32,
        35 => ElementType::U64,
        other => return Err(format!("unknown element type, code {other}")),
    })
}

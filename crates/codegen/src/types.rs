//! Element types in generated code.

use warpforge_fusion::graph::ReduceKind;
use warpforge_tensor::{ElementType, FloatType, IntType, Scalar};

use crate::kernel::Unsupported;
use crate::options::{ComputePrecision, Options};

/// The storage type of an element.
pub(crate) fn storage_type(element: ElementType) -> Result<&'static str, Unsupported> {
    Ok(match element {
        ElementType::Float(FloatType::F16) => "wf_f16",
        ElementType::Float(FloatType::Bf16) => "wf_bf16",
        ElementType::Float(FloatType::F8E4M3Fn) => "wf_f8e4m3",
        ElementType::Float(FloatType::F8E5M2) => "wf_f8e5m2",
        ElementType::I4 => "wf_i4",
        _ => compute_type(element)?,
    })
}

/// The compute type of an element.
pub(crate) fn compute_type(element: ElementType) -> Result<&'static str, Unsupported> {
    Ok(match element {
        ElementType::Bool => "bool",
        ElementType::Float(FloatType::F64) => "double",
        ElementType::Float(
            FloatType::F32 | FloatType::F16 | FloatType::Bf16 | FloatType::F8E4M3Fn | FloatType::F8E5M2,
        ) => "float",
        ElementType::Int(IntType::I8 | IntType::I4) => "signed char",
        ElementType::Int(IntType::U8) => "unsigned char",
        ElementType::Int(IntType::I16) => "short",
        ElementType::Int(IntType::U16) => "unsigned short",
        ElementType::Int(IntType::I32) => "int",
        ElementType::Int(IntType::U32) => "unsigned int",
        ElementType::Int(IntType::I64) => "long long",
        ElementType::Int(IntType::U64) => "unsigned long long",
        other => return Err(Unsupported::new(format!("elements of type {other}"))),
    })
}

/// The storage type of tensor-core operands, where they have one type that tensor cores take.
pub(crate) fn tensor_core_type(operands: &[ElementType]) -> Option<&'static str> {
    let &first = operands.first()?;
    let name = match first {
        ElementType::Float(FloatType::Bf16) => "wf_bf16",
        ElementType::Float(FloatType::F16) => "wf_f16",
        _ => return None,
    };
    operands.iter().all(|&element| element == first).then_some(name)
}

/// The storage type of the operands of attention on tensor cores: as of [`tensor_core_type`], or f32 where it may be computed in tf32.
pub(crate) fn attention_type(options: &Options, operands: &[ElementType]) -> Option<&'static str> {
    let wide = options.compute_precision == ComputePrecision::Tf32
        && operands.iter().all(|&element| element == ElementType::F32);
    if wide { Some("float") } else { tensor_core_type(operands) }
}

/// Bytes of an element of a tensor-core operand.
pub(crate) fn tensor_core_bytes(ty: &str) -> usize {
    if ty == "float" { 4 } else { 2 }
}

/// An expression rounded to the storage type, where that is narrower than the compute type.
pub(crate) fn rounded(element: ElementType, expression: String) -> Result<String, Unsupported> {
    let (stored, computed) = (storage_type(element)?, compute_type(element)?);
    Ok(if stored == computed { expression } else { format!("wf_round<{stored}>({expression})") })
}

/// A literal.
pub(crate) fn literal(element: ElementType, value: Scalar) -> Result<String, Unsupported> {
    Ok(match (element, value) {
        (ElementType::Bool, value) => value.is_true().to_string(),
        (ElementType::Float(FloatType::F64), value) => {
            format!("wf_double(0x{:016x}ull)", value.to_f64().to_bits())
        }
        (ElementType::Float(_), value) => float(value.to_f64() as f32),
        (ElementType::Int(_), value) => {
            let name = compute_type(element)?;
            match value.to_i128() {
                number if number == i128::from(i64::MIN) => format!("({name})(-{}ll - 1ll)", i64::MAX),
                number if number > i128::from(i64::MAX) => format!("({name}){number}ull"),
                number => format!("({name}){number}ll"),
            }
        }
        (other, _) => return Err(Unsupported::new(format!("a number of type {other}"))),
    })
}

fn float(value: f32) -> String {
    let short = format!("{value:?}f");
    if value.is_finite() && short.len() < 14 {
        return short;
    }
    format!("wf_float(0x{:08x}u)", value.to_bits())
}

/// The identity element of a reduction.
pub(crate) fn identity(kind: ReduceKind, element: ElementType) -> Result<String, Unsupported> {
    let int = |least: bool| match element {
        ElementType::Int(int) => Scalar::Int(int.clamp(if least { i128::MIN } else { i128::MAX })),
        ElementType::Bool => Scalar::Bool(!least),
        _ => Scalar::Float(if least { f64::NEG_INFINITY } else { f64::INFINITY }),
    };
    let number = |value: i64| match element {
        ElementType::Bool => Scalar::Bool(value != 0),
        ElementType::Int(int) => Scalar::Int(int.clamp(i128::from(value))),
        _ => Scalar::Float(value as f64),
    };
    let value = match kind {
        ReduceKind::Add | ReduceKind::Or => number(0),
        ReduceKind::Multiply => number(1),
        ReduceKind::Max => int(true),
        ReduceKind::Min => int(false),
        ReduceKind::And => match element {
            ElementType::Int(int) => Scalar::Int(if int.is_signed() { -1 } else { int.clamp(i128::MAX) }),
            _ => Scalar::Bool(true),
        },
    };
    literal(element, value)
}

/// The function that combines two elements.
pub(crate) fn combine_fn(kind: ReduceKind) -> &'static str {
    match kind {
        ReduceKind::Add => "wf_add",
        ReduceKind::Multiply => "wf_mul",
        ReduceKind::Max => "wf_max",
        ReduceKind::Min => "wf_min",
        ReduceKind::And => "wf_and",
        ReduceKind::Or => "wf_or",
    }
}

/// The function object of a reduction.
pub(crate) fn reducer(kind: ReduceKind) -> &'static str {
    match kind {
        ReduceKind::Add => "wf_reduce_add()",
        ReduceKind::Multiply => "wf_reduce_mul()",
        ReduceKind::Max => "wf_reduce_max()",
        ReduceKind::Min => "wf_reduce_min()",
        ReduceKind::And => "wf_reduce_and()",
        ReduceKind::Or => "wf_reduce_or()",
    }
}

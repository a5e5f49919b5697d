//! Element types as the prelude names them.

use warpforge_fusion::graph::ReduceKind;
use warpforge_tensor::{ElementType, FloatType, IntType, Scalar};

use crate::kernel::Unsupported;

/// How an element lies in memory.
pub(crate) fn stored(element: ElementType) -> Result<&'static str, Unsupported> {
    Ok(match element {
        ElementType::Float(FloatType::F16) => "wf_f16",
        ElementType::Float(FloatType::Bf16) => "wf_bf16",
        _ => computed(element)?,
    })
}

/// How an element is computed with.
pub(crate) fn computed(element: ElementType) -> Result<&'static str, Unsupported> {
    Ok(match element {
        ElementType::Bool => "bool",
        ElementType::Float(FloatType::F64) => "double",
        ElementType::Float(FloatType::F32 | FloatType::F16 | FloatType::Bf16) => "float",
        ElementType::Int(IntType::I8) => "signed char",
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

/// An expression rounded to what an element of the type can hold; types that are computed with as they are stay.
pub(crate) fn rounded(element: ElementType, expression: String) -> Result<String, Unsupported> {
    let (stored, computed) = (stored(element)?, computed(element)?);
    Ok(if stored == computed { expression } else { format!("wf_round<{stored}>({expression})") })
}

/// A number.
pub(crate) fn literal(element: ElementType, value: Scalar) -> Result<String, Unsupported> {
    Ok(match (element, value) {
        (ElementType::Bool, value) => value.is_true().to_string(),
        (ElementType::Float(FloatType::F64), value) => {
            format!("wf_double(0x{:016x}ull)", value.to_f64().to_bits())
        }
        (ElementType::Float(_), value) => float(value.to_f64() as f32),
        (ElementType::Int(_), value) => {
            let name = computed(element)?;
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

/// What a fold begins with.
pub(crate) fn identity(fold: ReduceKind, element: ElementType) -> Result<String, Unsupported> {
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
    let value = match fold {
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
pub(crate) fn combiner(fold: ReduceKind) -> &'static str {
    match fold {
        ReduceKind::Add => "wf_add",
        ReduceKind::Multiply => "wf_mul",
        ReduceKind::Max => "wf_max",
        ReduceKind::Min => "wf_min",
        ReduceKind::And => "wf_and",
        ReduceKind::Or => "wf_or",
    }
}

/// The same as an object that templates take.
pub(crate) fn functor(fold: ReduceKind) -> &'static str {
    match fold {
        ReduceKind::Add => "wf_fold_add()",
        ReduceKind::Multiply => "wf_fold_mul()",
        ReduceKind::Max => "wf_fold_max()",
        ReduceKind::Min => "wf_fold_min()",
        ReduceKind::And => "wf_fold_and()",
        ReduceKind::Or => "wf_fold_or()",
    }
}

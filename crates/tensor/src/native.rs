//! Rust types whose memory is that of an element type.

use crate::{ElementType, FloatType};

/// A Rust type that a tensor's elements can be viewed as.
pub trait Native: bytemuck::Pod + Send + Sync {
    /// The element type with this memory layout and meaning.
    const ELEMENT: ElementType;
}

macro_rules! natives {
    ($($rust:ty => $element:expr;)*) => {
        $(impl Native for $rust { const ELEMENT: ElementType = $element; })*
    };
}

natives! {
    i8 => ElementType::I8;
    i16 => ElementType::I16;
    i32 => ElementType::I32;
    i64 => ElementType::I64;
    u8 => ElementType::U8;
    u16 => ElementType::U16;
    u32 => ElementType::U32;
    u64 => ElementType::U64;
    f64 => ElementType::F64;
    f32 => ElementType::F32;
    half::f16 => ElementType::F16;
    half::bf16 => ElementType::BF16;
    [f32; 2] => ElementType::Complex(FloatType::F32);
    [f64; 2] => ElementType::Complex(FloatType::F64);
}

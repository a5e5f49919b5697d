//! From element types to Rust's own types.

/// Evaluates an expression with `T` as the Rust type of a floating-point element type, or the other one where there is
/// none.
macro_rules! for_floats {
    ($element:expr, $T:ident => $body:expr, else $other:expr) => {
        $crate::native::for_types!($element, $T => $body, else $other;
            F32 f32, F64 f64, F16 half::f16, BF16 half::bf16)
    };
}

/// The same for integers.
macro_rules! for_ints {
    ($element:expr, $T:ident => $body:expr, else $other:expr) => {
        $crate::native::for_types!($element, $T => $body, else $other;
            I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64)
    };
}

/// The same for both.
macro_rules! for_numbers {
    ($element:expr, $T:ident => $body:expr, else $other:expr) => {
        $crate::native::for_types!($element, $T => $body, else $other;
            F32 f32, F64 f64, F16 half::f16, BF16 half::bf16,
            I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64)
    };
}

macro_rules! for_types {
    ($element:expr, $T:ident => $body:expr, else $other:expr; $($name:ident $rust:ty),*) => {
        match $element {
            $(warpforge_tensor::ElementType::$name => { type $T = $rust; $body })*
            _ => $other,
        }
    };
}

pub(crate) use {for_floats, for_ints, for_numbers, for_types};

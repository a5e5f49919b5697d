//! Selection of the elementwise loop of an instruction.

use crate::isa::Isa;
use crate::math::scalar;

use super::inst::{Direction, Order};
use super::lane_type::{LaneType, NarrowFloat, for_lane, for_width, round_to_odd_f32, round_to_odd_f64};
use super::loops::{LoopKernel, map1, map2, map3};
use super::scalar_ops::{IntegerOps, ScalarOps};
use super::vector_loops;
use warpforge_tensor::elementwise::Function;

/// Evaluates an expression with `T` as the Rust type of an integer lane, `None` for others.
macro_rules! for_integer {
    ($lane:expr, $T:ident => $body:expr) => {
        $crate::dispatch::with_type!($lane, $T => $body; {
            LaneType::I8 => i8,
            LaneType::I16 => i16,
            LaneType::I32 => i32,
            LaneType::I64 => i64,
            LaneType::U8 => u8,
            LaneType::U16 => u16,
            LaneType::U32 => u32,
            LaneType::U64 => u64,
        } else LaneType::Bool | LaneType::F32 | LaneType::F64 => None)
    };
}

/// The loop of a function of one value, where there is one for the type.
pub(super) fn unary(isa: Isa, op: Function, lane: LaneType) -> Option<LoopKernel> {
    match lane {
        LaneType::Bool => (op == Function::Not).then(|| map1(isa, |x: u8| x ^ 1)),
        LaneType::F32 => vector_loops::unary(isa, op).or_else(|| unary_f32(isa, op)),
        LaneType::F64 => signs::<f64>(isa, op).or_else(|| unary_f64(isa, op)),
        _ => for_integer!(lane, T => signs::<T>(isa, op).or_else(|| bits::<T>(isa, op))),
    }
}

fn signs<T: ScalarOps>(isa: Isa, op: Function) -> Option<LoopKernel> {
    Some(match op {
        Function::Abs => map1(isa, T::magnitude),
        Function::Negate => map1(isa, T::negate),
        Function::Sign => map1(isa, T::sign),
        _ => return None,
    })
}

fn bits<T: IntegerOps>(isa: Isa, op: Function) -> Option<LoopKernel> {
    Some(match op {
        Function::Not => map1(isa, T::not),
        Function::Popcnt => map1(isa, T::ones),
        Function::CountLeadingZeros => map1(isa, T::leading_zeros),
        _ => return None,
    })
}

fn unary_f32(isa: Isa, op: Function) -> Option<LoopKernel> {
    Some(match op {
        Function::Sign => map1(isa, f32::sign),
        Function::IsFinite => map1(isa, |x: f32| u8::from(x.is_finite())),
        _ => {
            let function = real_function(op)?;
            map1(isa, move |x: f32| function(f64::from(x)) as f32)
        }
    })
}

fn unary_f64(isa: Isa, op: Function) -> Option<LoopKernel> {
    Some(match op {
        Function::IsFinite => map1(isa, |x: f64| u8::from(x.is_finite())),
        Function::Ceil => map1(isa, f64::ceil),
        Function::Floor => map1(isa, f64::floor),
        Function::RoundNearestAfz => map1(isa, f64::round),
        Function::RoundNearestEven => map1(isa, f64::round_ties_even),
        Function::Sqrt => map1(isa, f64::sqrt),
        Function::Rsqrt => map1(isa, scalar::rsqrt),
        _ => map1(isa, real_function(op)?),
    })
}

/// The f64 function of an operation.
pub(super) fn real_function(op: Function) -> Option<fn(f64) -> f64> {
    Some(match op {
        Function::Rsqrt => scalar::rsqrt,
        Function::Cbrt => scalar::cbrt,
        Function::Exponential => scalar::exp,
        Function::ExponentialMinusOne => scalar::expm1,
        Function::Log => scalar::log,
        Function::LogPlusOne => scalar::log1p,
        Function::Logistic => scalar::logistic,
        Function::Tanh => scalar::tanh,
        Function::Sine => scalar::sin,
        Function::Cosine => scalar::cos,
        Function::Tan => scalar::tan,
        Function::Erf => scalar::erf,
        Function::Erfc => scalar::erfc,
        Function::Gelu => scalar::gelu,
        _ => return None,
    })
}

/// The loop of a function of two values, where there is one for the type.
pub(super) fn binary(isa: Isa, op: Function, lane: LaneType) -> Option<LoopKernel> {
    match lane {
        LaneType::Bool => truths(isa, op),
        LaneType::F32 if op == Function::Atan2 => {
            Some(map2(isa, |y: f32, x: f32| scalar::atan2(f64::from(y), f64::from(x)) as f32))
        }
        LaneType::F64 if op == Function::Atan2 => Some(map2(isa, scalar::atan2)),
        LaneType::F32 => vector_loops::binary(isa, op).or_else(|| arithmetic::<f32>(isa, op)),
        LaneType::F64 => arithmetic::<f64>(isa, op),
        _ => for_integer!(lane, T => arithmetic::<T>(isa, op).or_else(|| logical::<T>(isa, op))),
    }
}

fn truths(isa: Isa, op: Function) -> Option<LoopKernel> {
    Some(match op {
        Function::And | Function::Multiply | Function::Minimum | Function::Divide => {
            map2(isa, |a: u8, b: u8| a & b)
        }
        Function::Or | Function::Add | Function::Maximum => map2(isa, |a: u8, b: u8| a | b),
        Function::Xor | Function::Subtract => map2(isa, |a: u8, b: u8| a ^ b),
        Function::Remainder => map2(isa, |a: u8, _: u8| a),
        Function::Power => map2(isa, |a: u8, b: u8| a | (b ^ 1)),
        _ => return None,
    })
}

fn arithmetic<T: ScalarOps>(isa: Isa, op: Function) -> Option<LoopKernel> {
    Some(match op {
        Function::Add => map2(isa, T::add),
        Function::Subtract => map2(isa, T::subtract),
        Function::Multiply => map2(isa, T::multiply),
        Function::Divide => map2(isa, T::divide),
        Function::Remainder => map2(isa, T::remainder),
        Function::Maximum => map2(isa, T::larger),
        Function::Minimum => map2(isa, T::smaller),
        Function::Power => map2(isa, T::power),
        _ => return None,
    })
}

fn logical<T: IntegerOps>(isa: Isa, op: Function) -> Option<LoopKernel> {
    Some(match op {
        Function::And => map2(isa, T::and),
        Function::Or => map2(isa, T::or),
        Function::Xor => map2(isa, T::xor),
        Function::ShiftLeft => map2(isa, T::shift_left),
        Function::ShiftRightLogical => map2(isa, T::shift_right_logical),
        Function::ShiftRightArithmetic => map2(isa, T::shift_right_arithmetic),
        _ => return None,
    })
}

/// The loop of a comparison.
pub(super) fn compare(isa: Isa, direction: Direction, order: Order, lane: LaneType) -> LoopKernel {
    match (lane, order) {
        (LaneType::F32 | LaneType::F64, Order::Total) => {
            for_lane!(lane, T => totally::<T>(isa, direction))
        }
        _ => for_lane!(lane, T => partially::<T>(isa, direction)),
    }
}

fn partially<T: ScalarOps>(isa: Isa, direction: Direction) -> LoopKernel {
    match direction {
        Direction::Eq => map2(isa, |a: T, b: T| u8::from(a == b)),
        Direction::Ne => map2(isa, |a: T, b: T| u8::from(a != b)),
        Direction::Ge => map2(isa, |a: T, b: T| u8::from(a >= b)),
        Direction::Gt => map2(isa, |a: T, b: T| u8::from(a > b)),
        Direction::Le => map2(isa, |a: T, b: T| u8::from(a <= b)),
        Direction::Lt => map2(isa, |a: T, b: T| u8::from(a < b)),
    }
}

fn totally<T: ScalarOps>(isa: Isa, direction: Direction) -> LoopKernel {
    map2(isa, move |a: T, b: T| {
        let order = a.total_order(&b);
        u8::from(match direction {
            Direction::Eq => order.is_eq(),
            Direction::Ne => order.is_ne(),
            Direction::Ge => order.is_ge(),
            Direction::Gt => order.is_gt(),
            Direction::Le => order.is_le(),
            Direction::Lt => order.is_lt(),
        })
    })
}

/// The loop of a selection between elements of some width.
pub(super) fn select(isa: Isa, width: usize) -> LoopKernel {
    for_width!(width, T => map3(isa, |which: u8, yes: T, no: T| if which != 0 { yes } else { no }))
}

/// The loop of a conversion from one lane to another.
pub(super) fn convert(isa: Isa, from: LaneType, to: LaneType) -> LoopKernel {
    /// Rust conversions have the required semantics: floats truncate and saturate, integers wrap, NaN becomes zero.
    macro_rules! to_all {
        ($T:ident) => {
            match to {
                LaneType::Bool => map1(isa, |x: $T| u8::from(x != 0 as $T)),
                LaneType::I8 => map1(isa, |x: $T| x as i8),
                LaneType::I16 => map1(isa, |x: $T| x as i16),
                LaneType::I32 => map1(isa, |x: $T| x as i32),
                LaneType::I64 => map1(isa, |x: $T| x as i64),
                LaneType::U8 => map1(isa, |x: $T| x as u8),
                LaneType::U16 => map1(isa, |x: $T| x as u16),
                LaneType::U32 => map1(isa, |x: $T| x as u32),
                LaneType::U64 => map1(isa, |x: $T| x as u64),
                LaneType::F32 => map1(isa, |x: $T| x as f32),
                LaneType::F64 => map1(isa, |x: $T| x as f64),
            }
        };
    }
    for_lane!(from, T => to_all!(T))
}

/// A conversion to f32 that is rounded to a narrower type next: rounded to odd, so that double rounding is exact.
pub(super) fn convert_to_odd(isa: Isa, from: LaneType) -> LoopKernel {
    match from {
        LaneType::F64 => map1(isa, round_to_odd_f32),
        LaneType::I32 => map1(isa, |x: i32| round_to_odd_f32(f64::from(x))),
        LaneType::U32 => map1(isa, |x: u32| round_to_odd_f32(f64::from(x))),
        LaneType::I64 => {
            map1(isa, |x: i64| round_to_odd_f32(round_to_odd_f64(x.unsigned_abs()).copysign(x as f64)))
        }
        LaneType::U64 => map1(isa, |x: u64| round_to_odd_f32(round_to_odd_f64(x))),
        exact => convert(isa, exact, LaneType::F32),
    }
}

/// The loop that rounds f32 to a narrower type and widens it again.
pub(super) fn rounding(isa: Isa, narrow: NarrowFloat) -> LoopKernel {
    match narrow {
        NarrowFloat::Bf16 => map1(isa, |x| NarrowFloat::Bf16.round(x)),
        NarrowFloat::F16 => map1(isa, |x| NarrowFloat::F16.round(x)),
    }
}

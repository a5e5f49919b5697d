//! Element-wise operations on whole slices.

use warpforge_ir::attr::{ComparisonDirection, ComparisonType};
use warpforge_ir::{OpKind, OpRef};
use warpforge_tensor::{ElementType, Native, Tensor};

use super::number::{Integer, Number, Real};
use super::{Threads, convert, for_floats, for_ints, for_numbers};
use crate::error::Result;
use crate::scalar::real_function;

/// What a call of a function costs, compared to an addition.
const CALL: usize = 20;

/// The result of an element-wise operation, or `None` where the general path is needed. The inputs have one shape, scalars
/// among them.
pub(crate) fn elementwise(
    threads: Threads,
    op: OpRef<'_>,
    inputs: &[Tensor],
    output: ElementType,
) -> Result<Option<Tensor>> {
    let Some(kind) = op.kind() else { return Ok(None) };
    match (kind, inputs) {
        (OpKind::Select | OpKind::ChloBroadcastSelect, [which, yes, no]) => select(threads, which, yes, no),
        (OpKind::Clamp, [low, value, high]) => clamp(threads, low, value, high),
        (OpKind::Convert, [value]) => convert::convert(threads, value, output),
        (OpKind::Compare | OpKind::ChloBroadcastCompare, [a, b]) if a.shape() == b.shape() => {
            let direction = op.attr_enum("comparison_direction");
            let total = op.attr_enum("compare_type") == Some(ComparisonType::TotalOrder);
            match direction {
                Some(direction) => compare(threads, direction, total, a, b),
                None => Ok(None),
            }
        }
        (_, [value]) => unary(threads, kind, value, output),
        (_, [a, b]) if a.shape() == b.shape() && a.element_type() == b.element_type() => {
            binary(threads, kind, a, b)
        }
        _ => Ok(None),
    }
}

/// A tensor like `model` of another type, filled by `fill` piece by piece.
fn filled<R: Native>(
    threads: Threads,
    model: &Tensor,
    cost: usize,
    fill: &(dyn Fn(usize, &mut [R]) + Sync),
) -> Result<Option<Tensor>> {
    let mut result = Tensor::zeros(R::ELEMENT, model.shape().clone())?;
    threads.pieces(result.as_slice_mut()?, 1, cost, fill);
    Ok(Some(result))
}

/// The same for truth values, which are bytes.
fn filled_truths(
    threads: Threads,
    model: &Tensor,
    fill: &(dyn Fn(usize, &mut [u8]) + Sync),
) -> Result<Option<Tensor>> {
    let mut result = Tensor::zeros(ElementType::Bool, model.shape().clone())?;
    threads.pieces(result.bytes_mut(), 1, 1, fill);
    Ok(Some(result))
}

fn map<T: Native, R: Native>(
    threads: Threads,
    value: &Tensor,
    cost: usize,
    f: impl Fn(T) -> R + Sync,
) -> Result<Option<Tensor>> {
    let slice = value.as_slice::<T>()?;
    filled(threads, value, cost, &|start, piece: &mut [R]| {
        for (place, &x) in piece.iter_mut().zip(&slice[start..]) {
            *place = f(x);
        }
    })
}

fn zip<T: Native>(
    threads: Threads,
    (a, b): (&Tensor, &Tensor),
    cost: usize,
    f: impl Fn(T, T) -> T + Sync,
) -> Result<Option<Tensor>> {
    let (left, right) = (a.as_slice::<T>()?, b.as_slice::<T>()?);
    filled(threads, a, cost, &|start, piece: &mut [T]| {
        for ((place, &x), &y) in piece.iter_mut().zip(&left[start..]).zip(&right[start..]) {
            *place = f(x, y);
        }
    })
}

fn unary(threads: Threads, kind: OpKind, value: &Tensor, output: ElementType) -> Result<Option<Tensor>> {
    let element = value.element_type();
    if element == ElementType::Bool && kind == OpKind::Not {
        let bytes = value.bytes();
        return filled_truths(threads, value, &|start, piece| {
            piece.iter_mut().zip(&bytes[start..]).for_each(|(place, &x)| *place = u8::from(x == 0));
        });
    }
    if kind == OpKind::IsFinite {
        return for_floats!(element, T => tests(threads, value, |x: T| x.to_f64().is_finite()), else Ok(None));
    }
    if output != element {
        return Ok(None);
    }
    let signs = for_numbers!(element, T => signs::<T>(threads, kind, value)?, else None);
    if signs.is_some() {
        return Ok(signs);
    }
    for_ints!(element, T => return match kind {
        OpKind::Not => map(threads, value, 1, T::not),
        _ => Ok(None),
    }, else {});
    for_floats!(element, T => function::<T>(threads, kind, value), else Ok(None))
}

fn tests<T: Native>(
    threads: Threads,
    value: &Tensor,
    f: impl Fn(T) -> bool + Sync,
) -> Result<Option<Tensor>> {
    let slice = value.as_slice::<T>()?;
    filled_truths(threads, value, &|start, piece| {
        piece.iter_mut().zip(&slice[start..]).for_each(|(place, &x)| *place = u8::from(f(x)));
    })
}

fn signs<T: Number>(threads: Threads, kind: OpKind, value: &Tensor) -> Result<Option<Tensor>> {
    match kind {
        OpKind::Abs => map(threads, value, 1, T::abs),
        OpKind::Negate => map(threads, value, 1, T::negate),
        OpKind::Sign => map(threads, value, 1, T::sign),
        OpKind::ChloSquare => map(threads, value, 1, |x: T| x.multiply(x)),
        _ => Ok(None),
    }
}

fn function<T: Real>(threads: Threads, kind: OpKind, value: &Tensor) -> Result<Option<Tensor>> {
    let mapped = |f: fn(f64) -> f64, cost| map(threads, value, cost, move |x: T| T::from_f64(f(x.to_f64())));
    match kind {
        // The compiler sees into these, so they are loops of their own.
        OpKind::Sqrt => map(threads, value, 4, |x: T| T::from_f64(x.to_f64().sqrt())),
        OpKind::Rsqrt => map(threads, value, 4, |x: T| T::from_f64(1.0 / x.to_f64().sqrt())),
        OpKind::Ceil => mapped(f64::ceil, CALL),
        OpKind::Floor => mapped(f64::floor, CALL),
        OpKind::RoundNearestAfz => mapped(f64::round, CALL),
        OpKind::RoundNearestEven => mapped(f64::round_ties_even, CALL),
        _ => real_function(kind).map_or(Ok(None), |f| mapped(f, CALL)),
    }
}

fn binary(threads: Threads, kind: OpKind, a: &Tensor, b: &Tensor) -> Result<Option<Tensor>> {
    let element = a.element_type();
    if element == ElementType::Bool {
        return truths(threads, kind, a, b);
    }
    let arithmetic = for_numbers!(element, T => arithmetic::<T>(threads, kind, (a, b))?, else None);
    if arithmetic.is_some() {
        return Ok(arithmetic);
    }
    for_ints!(element, T => logical::<T>(threads, kind, (a, b)), else Ok(None))
}

fn arithmetic<T: Number>(threads: Threads, kind: OpKind, pair: (&Tensor, &Tensor)) -> Result<Option<Tensor>> {
    match kind {
        OpKind::Add | OpKind::ChloBroadcastAdd => zip(threads, pair, 1, T::add),
        OpKind::Subtract | OpKind::ChloBroadcastSubtract => zip(threads, pair, 1, T::subtract),
        OpKind::Multiply | OpKind::ChloBroadcastMultiply => zip(threads, pair, 1, T::multiply),
        OpKind::Divide | OpKind::ChloBroadcastDivide => zip(threads, pair, 4, T::divide),
        OpKind::Remainder | OpKind::ChloBroadcastRemainder => zip(threads, pair, CALL, T::remainder),
        OpKind::Power | OpKind::ChloBroadcastPower => zip(threads, pair, CALL, T::power),
        OpKind::Maximum | OpKind::ChloBroadcastMaximum => zip(threads, pair, 1, T::larger),
        OpKind::Minimum | OpKind::ChloBroadcastMinimum => zip(threads, pair, 1, T::smaller),
        _ => Ok(None),
    }
}

fn logical<T: Integer>(threads: Threads, kind: OpKind, pair: (&Tensor, &Tensor)) -> Result<Option<Tensor>> {
    match kind {
        OpKind::And | OpKind::ChloBroadcastAnd => zip(threads, pair, 1, T::and),
        OpKind::Or | OpKind::ChloBroadcastOr => zip(threads, pair, 1, T::or),
        OpKind::Xor | OpKind::ChloBroadcastXor => zip(threads, pair, 1, T::xor),
        OpKind::ShiftLeft | OpKind::ChloBroadcastShiftLeft => zip(threads, pair, 1, T::shift_left),
        OpKind::ShiftRightLogical | OpKind::ChloBroadcastShiftRightLogical => {
            zip(threads, pair, 1, T::shift_right_logical)
        }
        OpKind::ShiftRightArithmetic | OpKind::ChloBroadcastShiftRightArithmetic => {
            zip(threads, pair, 1, T::shift_right_arithmetic)
        }
        _ => Ok(None),
    }
}

/// Operations on truth values: bytes, where anything but zero is true.
fn truths(threads: Threads, kind: OpKind, a: &Tensor, b: &Tensor) -> Result<Option<Tensor>> {
    let (left, right) = (a.bytes(), b.bytes());
    let with = |f: fn(bool, bool) -> bool| {
        filled_truths(threads, a, &|start, piece| {
            for ((place, &x), &y) in piece.iter_mut().zip(&left[start..]).zip(&right[start..]) {
                *place = u8::from(f(x != 0, y != 0));
            }
        })
    };
    match kind {
        OpKind::And | OpKind::Multiply | OpKind::Minimum => with(|x, y| x & y),
        OpKind::Or | OpKind::Add | OpKind::Maximum => with(|x, y| x | y),
        OpKind::Xor => with(|x, y| x ^ y),
        _ => Ok(None),
    }
}

fn compare(
    threads: Threads,
    direction: ComparisonDirection,
    total: bool,
    a: &Tensor,
    b: &Tensor,
) -> Result<Option<Tensor>> {
    if a.element_type() != b.element_type() {
        return Ok(None);
    }
    for_numbers!(a.element_type(), T => compare_typed::<T>(threads, direction, total, a, b), else Ok(None))
}

fn compare_typed<T: Number>(
    threads: Threads,
    direction: ComparisonDirection,
    total: bool,
    a: &Tensor,
    b: &Tensor,
) -> Result<Option<Tensor>> {
    use ComparisonDirection::{Eq, Ge, Gt, Le, Lt, Ne};
    let (left, right) = (a.as_slice::<T>()?, b.as_slice::<T>()?);
    /// A loop for a test that the compiler sees into.
    macro_rules! test {
        ($test:expr) => {
            filled_truths(threads, a, &|start, piece| {
                for ((place, x), y) in piece.iter_mut().zip(&left[start..]).zip(&right[start..]) {
                    *place = u8::from($test(x, y));
                }
            })
        };
    }
    match (direction, total) {
        (Eq, false) => test!(T::eq),
        (Ne, false) => test!(T::ne),
        (Ge, false) => test!(T::ge),
        (Gt, false) => test!(T::gt),
        (Le, false) => test!(T::le),
        (Lt, false) => test!(T::lt),
        (direction, true) => test!(|x: &T, y: &T| {
            let order = x.total_order(y);
            match direction {
                Eq => order.is_eq(),
                Ne => order.is_ne(),
                Ge => order.is_ge(),
                Gt => order.is_gt(),
                Le => order.is_le(),
                Lt => order.is_lt(),
            }
        }),
    }
}

fn select(threads: Threads, which: &Tensor, yes: &Tensor, no: &Tensor) -> Result<Option<Tensor>> {
    if which.element_type() != ElementType::Bool
        || yes.element_type() != no.element_type()
        || yes.shape() != no.shape()
    {
        return Ok(None);
    }
    if which.shape() != yes.shape() {
        let chosen = match which.bytes() {
            [which] => Some(if *which != 0 { yes.clone() } else { no.clone() }),
            _ => None,
        };
        return Ok(chosen);
    }
    match yes.element_type().byte_width() {
        1 => select_sized::<1>(threads, which, yes, no),
        2 => select_sized::<2>(threads, which, yes, no),
        4 => select_sized::<4>(threads, which, yes, no),
        8 => select_sized::<8>(threads, which, yes, no),
        _ => Ok(None),
    }
}

/// Selects between elements of some width, whatever they are.
fn select_sized<const WIDTH: usize>(
    threads: Threads,
    which: &Tensor,
    yes: &Tensor,
    no: &Tensor,
) -> Result<Option<Tensor>> {
    let mut result = Tensor::zeros(yes.element_type(), yes.shape().clone())?;
    let (which, yes, no) =
        (which.bytes(), yes.bytes().as_chunks::<WIDTH>().0, no.bytes().as_chunks::<WIDTH>().0);
    threads.pieces(result.bytes_mut().as_chunks_mut::<WIDTH>().0, 1, 1, &|start, piece| {
        let sources = which[start..].iter().zip(&yes[start..]).zip(&no[start..]);
        for (place, ((&which, yes), no)) in piece.iter_mut().zip(sources) {
            *place = if which != 0 { *yes } else { *no };
        }
    });
    Ok(Some(result))
}

fn clamp(threads: Threads, low: &Tensor, value: &Tensor, high: &Tensor) -> Result<Option<Tensor>> {
    let same = |bound: &Tensor| bound.element_type() == value.element_type();
    if !same(low) || !same(high) {
        return Ok(None);
    }
    for_numbers!(value.element_type(), T => clamp_typed::<T>(threads, low, value, high), else Ok(None))
}

fn clamp_typed<T: Number>(
    threads: Threads,
    low: &Tensor,
    value: &Tensor,
    high: &Tensor,
) -> Result<Option<Tensor>> {
    let (lows, highs) = (low.as_slice::<T>()?, high.as_slice::<T>()?);
    if let (&[low], &[high]) = (lows, highs) {
        return map(threads, value, 1, |x: T| x.larger(low).smaller(high));
    }
    if low.shape() != value.shape() || high.shape() != value.shape() {
        return Ok(None);
    }
    let slice = value.as_slice::<T>()?;
    filled(threads, value, 1, &|start, piece: &mut [T]| {
        let bounds = lows[start..].iter().zip(&highs[start..]);
        for ((place, &x), (&low, &high)) in piece.iter_mut().zip(&slice[start..]).zip(bounds) {
            *place = x.larger(low).smaller(high);
        }
    })
}

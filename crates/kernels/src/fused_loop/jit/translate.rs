//! Translation of instructions to traced operations.

use warpforge_tensor::ElementType;

use crate::math::Lanes;

use super::super::inst::{Direction, Inst, Order};
use super::super::vector_loops;
use super::emit::SAFE_MIN_BITS;
use super::error::JitError;
use super::op::{Divisor, Format, Logic, Op, Predicate, Unary};
use super::trace::{Traced, TracedMask, op, push, push_mask};
use warpforge_tensor::elementwise::Function;

/// A traced value of an instruction.
#[derive(Debug, Clone, Copy)]
pub(super) enum TracedValue {
    Vector(Traced),
    Mask(TracedMask),
}

type Result<T> = std::result::Result<T, JitError>;

impl TracedValue {
    pub(super) fn vector(self) -> Result<Traced> {
        match self {
            Self::Vector(vector) => Ok(vector),
            Self::Mask(_) => Err(JitError::Unsupported),
        }
    }

    pub(super) fn mask(self) -> Result<TracedMask> {
        match self {
            Self::Mask(mask) => Ok(mask),
            Self::Vector(_) => Err(JitError::Unsupported),
        }
    }

    /// The number of the value.
    pub(super) fn value(self) -> u32 {
        match self {
            Self::Vector(vector) => vector.0,
            Self::Mask(mask) => mask.0,
        }
    }
}

/// The memory format of an element type, if supported.
pub(super) fn format(element: ElementType) -> Result<Format> {
    match element {
        ElementType::F32 => Ok(Format::F32),
        ElementType::F16 => Ok(Format::F16),
        ElementType::BF16 => Ok(Format::Bf16),
        ElementType::Bool => Ok(Format::Bool),
        ElementType::I8 => Ok(Format::I8),
        ElementType::U8 => Ok(Format::U8),
        ElementType::I32 => Ok(Format::I32),
        _ => Err(JitError::Unsupported),
    }
}

/// Traces an instruction. Operands have its element type, except for comparisons, selects and conversions; `from` is the type of the first one.
/// `divisor` describes the second operand of a division that does not vary with columns.
pub(super) fn translate(
    inst: &Inst,
    element: ElementType,
    from: ElementType,
    operands: &[TracedValue],
    divisor: Option<Divisor>,
) -> Result<TracedValue> {
    let operand = |at: usize| operands.get(at).copied().ok_or(JitError::Unsupported);
    let [format_of, format_from] = [format(element)?, format(from)?];
    if let Inst::Convert(..) = inst {
        match (format_from, format_of) {
            (Format::I32, Format::F32) => {
                let number = Op::Unary(Unary::IntToFloat, operand(0)?.vector()?.0);
                return Ok(TracedValue::Vector(push(number)));
            }
            // Integers keep their lower bits, where floats saturate.
            (Format::I32, _) | (_, Format::I32) | (Format::I8, Format::U8) | (Format::U8, Format::I8) => {
                return Err(JitError::Unsupported);
            }
            _ => {}
        }
    } else if [format_of, format_from].contains(&Format::I32) {
        return Err(JitError::Unsupported);
    }
    Ok(match inst {
        Inst::Unary(Function::Not, _) => TracedValue::Mask(operand(0)?.mask()?.not()),
        Inst::Unary(Function::IsFinite, _) => {
            TracedValue::Mask(operand(0)?.vector()?.abs().less(Traced::splat(f32::INFINITY)))
        }
        // Bytes are converted, not computed with.
        Inst::Unary(..) | Inst::Binary(..) if matches!(format_of, Format::I8 | Format::U8) => {
            return Err(JitError::Unsupported);
        }
        Inst::Unary(op, _) => {
            let x = operand(0)?.vector()?;
            TracedValue::Vector(rounded(vector_loops::apply1(*op, x).ok_or(JitError::Unsupported)?, element)?)
        }
        Inst::Binary(op, ..) => match (operand(0)?, operand(1)?) {
            (TracedValue::Mask(a), TracedValue::Mask(b)) => TracedValue::Mask(match op {
                Function::And | Function::Multiply | Function::Minimum => a.logic(Logic::And, b),
                Function::Or | Function::Add | Function::Maximum => a.logic(Logic::Or, b),
                Function::Xor | Function::Subtract => a.logic(Logic::Xor, b),
                _ => return Err(JitError::Unsupported),
            }),
            (a, b) => TracedValue::Vector(rounded(binary(*op, a.vector()?, b.vector()?, divisor)?, element)?),
        },
        Inst::Compare(direction, Order::Partial, ..) => {
            let predicate = match direction {
                Direction::Eq => Predicate::Equal,
                Direction::Ne => Predicate::Differs,
                Direction::Ge => Predicate::GreaterOrEqual,
                Direction::Gt => Predicate::Greater,
                Direction::Le => Predicate::LessOrEqual,
                Direction::Lt => Predicate::Less,
            };
            let (a, b) = (operand(0)?.vector()?, operand(1)?.vector()?);
            TracedValue::Mask(push_mask(Op::Compare(predicate, a.0, b.0)))
        }
        Inst::Select(..) => {
            let mask = operand(0)?.mask()?;
            TracedValue::Vector(Traced::select(mask, operand(1)?.vector()?, operand(2)?.vector()?))
        }
        Inst::Convert(..) => match operand(0)? {
            TracedValue::Vector(x) => TracedValue::Vector(rounded(x, element)?),
            TracedValue::Mask(mask) if format_of != Format::Bool => {
                TracedValue::Vector(Traced::select(mask, Traced::splat(1.0), Traced::splat(0.0)))
            }
            TracedValue::Mask(mask) => TracedValue::Mask(mask),
        },
        _ => return Err(JitError::Unsupported),
    })
}

fn binary(op: Function, a: Traced, b: Traced, divisor: Option<Divisor>) -> Result<Traced> {
    match op {
        Function::Divide => Ok(match (number(b), divisor) {
            // The reciprocal of a power of two is exact.
            (Some(by), _) if power_of_two(by) => a.mul(Traced::splat(1.0 / by)),
            (_, Some(divisor)) => push(Op::Quotient(a.0, divisor)),
            (_, None) => a.div(b),
        }),
        Function::Power if number(b) == Some(2.0) => Ok(a.mul(a)),
        Function::Maximum | Function::Minimum => {
            let larger = op == Function::Maximum;
            Ok(match (number(a), number(b)) {
                (Some(number), _) => vector_loops::extreme(larger, number, b),
                (_, Some(number)) => vector_loops::extreme(larger, number, a),
                _ => vector_loops::apply2(op, a, b).ok_or(JitError::Unsupported)?,
            })
        }
        _ => vector_loops::apply2(op, a, b).ok_or(JitError::Unsupported),
    }
}

/// The constant of a value, if known.
fn number(value: Traced) -> Option<f32> {
    match op(value) {
        Op::Constant(bits) => Some(f32::from_bits(bits)),
        _ => None,
    }
}

fn power_of_two(number: f32) -> bool {
    let (magnitude, least) = (number.abs(), f32::MIN_POSITIVE);
    (2.0 * least..1.0 / (2.0 * least)).contains(&magnitude) && number.to_bits() & 0x007f_ffff == 0
}

/// The constants of a division by a value: see [`Divisor`].
pub(super) fn divisor(number: Traced) -> Divisor {
    let (none, all) = (Traced::splat_bits(0), Traced::splat_bits(u32::MAX));
    let magnitude = number.abs();
    let (least, largest) = (f32::from_bits(SAFE_MIN_BITS), f32::from_bits(SAFE_MAX_BITS));
    let (above, below) = (Traced::splat(least).less(magnitude), magnitude.less(Traced::splat(largest)));
    let choose = |yes, no| Traced::select(above, Traced::select(below, yes, no), no);
    Divisor {
        number: number.0,
        reciprocal: Traced::splat(1.0).div(number).0,
        // An empty range: zeros are divided too.
        range: choose(Traced::splat_bits(SAFE_MAX_BITS - SAFE_MIN_BITS), none).0,
        zero: choose(none, all).0,
    }
}

/// The exclusive upper bound of the safe range, as bits.
const SAFE_MAX_BITS: u32 = 0x5d80_0000;

/// A value rounded to a type and widened again.
fn rounded(x: Traced, element: ElementType) -> Result<Traced> {
    Ok(match format(element)? {
        Format::F32 => x,
        Format::F16 => push(Op::Unary(Unary::ThroughF16, x.0)),
        Format::Bf16 => push(Op::ThroughBf16(x.0)),
        Format::I8 => saturated(x, -128.0, 127.0),
        Format::U8 => saturated(x, 0.0, 255.0),
        Format::I32 | Format::Bool => return Err(JitError::Unsupported),
    })
}

/// The integer of a float, between bounds; that of NaN is zero.
fn saturated(x: Traced, least: f32, most: f32) -> Traced {
    let whole = matches!(op(x), Op::Unary(Unary::Round(_), _));
    let number = push_mask(Op::Compare(Predicate::Equal, x.0, x.0));
    let x = Traced::select(number, x, Traced::splat(0.0));
    let integer = if whole { x } else { x.trunc() };
    integer.max(Traced::splat(least)).min(Traced::splat(most))
}

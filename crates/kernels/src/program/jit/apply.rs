//! The operations that a step of a program is.

use warpforge_tensor::ElementType;

use crate::math::Lanes;

use super::super::step::{BinaryOp, Direction, Order, Step, UnaryOp};
use super::super::vector;
use super::JitError;
use super::emit::LEAST_MODERATE;
use super::op::{Divisor, Format, Logic, Op, Predicate, Unary};
use super::trace::{Traced, TracedMask, op, push, push_mask};

/// A value of a step.
#[derive(Debug, Clone, Copy)]
pub(super) enum Typed {
    Vector(Traced),
    Mask(TracedMask),
}

type Result<T> = std::result::Result<T, JitError>;

impl Typed {
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

/// How elements of a type lie in memory, for the types that there is code for.
pub(super) fn format(element: ElementType) -> Result<Format> {
    match element {
        ElementType::F32 => Ok(Format::F32),
        ElementType::F16 => Ok(Format::F16),
        ElementType::BF16 => Ok(Format::Bf16),
        ElementType::Bool => Ok(Format::Bool),
        _ => Err(JitError::Unsupported),
    }
}

/// What a step gives, of operands that are of the step's own element type but for comparisons, selections and conversions.
/// `divisor` gives what it takes to divide by the second operand, where that is the same for all columns.
pub(super) fn apply(
    step: &Step,
    element: ElementType,
    operands: &[Typed],
    divisor: Option<Divisor>,
) -> Result<Typed> {
    let operand = |at: usize| operands.get(at).copied().ok_or(JitError::Unsupported);
    Ok(match step {
        Step::Unary(UnaryOp::Not, _) => Typed::Mask(operand(0)?.mask()?.not()),
        Step::Unary(UnaryOp::IsFinite, _) => {
            Typed::Mask(operand(0)?.vector()?.abs().less(Traced::splat(f32::INFINITY)))
        }
        Step::Unary(op, _) => {
            let x = operand(0)?.vector()?;
            Typed::Vector(rounded(vector::apply1(*op, x).ok_or(JitError::Unsupported)?, element)?)
        }
        Step::Binary(op, ..) => match (operand(0)?, operand(1)?) {
            (Typed::Mask(a), Typed::Mask(b)) => Typed::Mask(match op {
                BinaryOp::And | BinaryOp::Multiply | BinaryOp::Minimum => a.logic(Logic::And, b),
                BinaryOp::Or | BinaryOp::Add | BinaryOp::Maximum => a.logic(Logic::Or, b),
                BinaryOp::Xor | BinaryOp::Subtract => a.logic(Logic::Xor, b),
                _ => return Err(JitError::Unsupported),
            }),
            (a, b) => Typed::Vector(rounded(binary(*op, a.vector()?, b.vector()?, divisor)?, element)?),
        },
        Step::Compare(direction, Order::Partial, ..) => {
            let predicate = match direction {
                Direction::Eq => Predicate::Equal,
                Direction::Ne => Predicate::Differs,
                Direction::Ge => Predicate::GreaterOrEqual,
                Direction::Gt => Predicate::Greater,
                Direction::Le => Predicate::LessOrEqual,
                Direction::Lt => Predicate::Less,
            };
            let (a, b) = (operand(0)?.vector()?, operand(1)?.vector()?);
            Typed::Mask(push_mask(Op::Compare(predicate, a.0, b.0)))
        }
        Step::Select(..) => {
            let mask = operand(0)?.mask()?;
            Typed::Vector(Traced::select(mask, operand(1)?.vector()?, operand(2)?.vector()?))
        }
        Step::Convert(..) => match operand(0)? {
            Typed::Vector(x) => Typed::Vector(rounded(x, element)?),
            Typed::Mask(mask) if format(element)? != Format::Bool => {
                Typed::Vector(Traced::select(mask, Traced::splat(1.0), Traced::splat(0.0)))
            }
            Typed::Mask(mask) => Typed::Mask(mask),
        },
        _ => return Err(JitError::Unsupported),
    })
}

fn binary(op: BinaryOp, a: Traced, b: Traced, divisor: Option<Divisor>) -> Result<Traced> {
    match op {
        BinaryOp::Divide => Ok(match (number(b), divisor) {
            // One over a power of two is exact.
            (Some(by), _) if power_of_two(by) => a.mul(Traced::splat(1.0 / by)),
            (_, Some(divisor)) => push(Op::Quotient(a.0, divisor)),
            (_, None) => a.div(b),
        }),
        BinaryOp::Power if number(b) == Some(2.0) => Ok(a.mul(a)),
        BinaryOp::Maximum | BinaryOp::Minimum => {
            let larger = op == BinaryOp::Maximum;
            Ok(match (number(a), number(b)) {
                (Some(number), _) => vector::extreme(larger, number, b),
                (_, Some(number)) => vector::extreme(larger, number, a),
                _ => vector::apply2(op, a, b).ok_or(JitError::Unsupported)?,
            })
        }
        _ => vector::apply2(op, a, b).ok_or(JitError::Unsupported),
    }
}

/// The number that a value is in all lanes, if that is known.
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

/// What it takes to divide by a number: see [`Divisor`].
pub(super) fn divisor(number: Traced) -> Divisor {
    let (none, all) = (Traced::splat_bits(0), Traced::splat_bits(u32::MAX));
    let magnitude = number.abs();
    let (least, largest) = (f32::from_bits(LEAST_MODERATE), f32::from_bits(LARGEST_MODERATE));
    let (above, below) = (Traced::splat(least).less(magnitude), magnitude.less(Traced::splat(largest)));
    let choose = |yes, no| Traced::select(above, Traced::select(below, yes, no), no);
    Divisor {
        number: number.0,
        reciprocal: Traced::splat(1.0).div(number).0,
        // No magnitude is within a range of none; then zeros are to be divided too.
        range: choose(Traced::splat_bits(LARGEST_MODERATE - LEAST_MODERATE), none).0,
        zero: choose(none, all).0,
    }
}

/// The bits of the magnitude from which on numbers are not moderate.
const LARGEST_MODERATE: u32 = 0x5d80_0000;

/// A number rounded to a type and widened again.
fn rounded(x: Traced, element: ElementType) -> Result<Traced> {
    Ok(match format(element)? {
        Format::F32 => x,
        Format::F16 => push(Op::Unary(Unary::ThroughF16, x.0)),
        Format::Bf16 => push(Op::ThroughBf16(x.0)),
        Format::Bool => return Err(JitError::Unsupported),
    })
}

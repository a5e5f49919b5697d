//! The operations of compiled loops, on vectors of 32-bit lanes and masks, in SSA form with common subexpressions
//! shared.

use std::collections::HashMap;

use super::abi::LANES;

/// The index of an operation and of its value.
pub(super) type Value = u32;

/// The memory format of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Format {
    F32,
    F16,
    Bf16,
    /// Bytes, 0 or 1; the value is a mask.
    Bool,
    /// Bytes; the value is the number as f32.
    I8,
    U8,
    /// Integers as they are: they are converted to f32, and nothing else is done to them.
    I32,
}

impl Format {
    /// Whether the value of elements are floats, which the functions of their type compute with.
    pub(super) fn is_float(self) -> bool {
        matches!(self, Self::F32 | Self::F16 | Self::Bf16)
    }

    /// Bytes of an element.
    pub(super) fn bytes(self) -> usize {
        match self {
            Self::F32 | Self::I32 => 4,
            Self::F16 | Self::Bf16 => 2,
            Self::Bool | Self::I8 | Self::U8 => 1,
        }
    }
}

/// A function of one vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Unary {
    Sqrt,
    /// Rounding to an integer, with the immediate of the instruction.
    Round(u8),
    Reciprocal,
    ShiftUp(u8),
    /// Copies of the top bit move in.
    ShiftDown(u8),
    FloatToInt,
    IntToFloat,
    /// Rounded to f16 and widened again.
    ThroughF16,
}

/// A function of two vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Binary {
    Add,
    Sub,
    Mul,
    Div,
    Max,
    Min,
    And,
    Or,
    Xor,
    AddBits,
    SubBits,
    Scale,
}

impl Binary {
    /// Whether the operation is commutative.
    pub(super) fn commutes(self) -> bool {
        matches!(self, Self::Add | Self::Mul | Self::And | Self::Or | Self::Xor | Self::AddBits)
    }
}

/// A function of two masks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Logic {
    And,
    Or,
    Xor,
}

/// How two vectors of floats are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Predicate {
    Equal,
    Less,
    /// True of NaN.
    NotLess,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    /// True of NaN.
    Differs,
    Unordered,
}

/// An operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Op {
    /// The same bits in all lanes.
    Constant(u32),
    /// A scalar of the frame in all lanes.
    Scalar(usize),
    /// The first element of a stream of f32 in all lanes.
    First(usize),
    /// The elements of a stream at the columns that are computed.
    Load(usize, Format),
    Unary(Unary, Value),
    Binary(Binary, Value, Value),
    /// The product of the first two added to the third, rounded once.
    MulAdd(Value, Value, Value),
    /// The product of the first two taken off the third, rounded once.
    NegMulAdd(Value, Value, Value),
    /// The bits of the first, and those that are set in both others.
    OrMasked(Value, Value, Value),
    /// Rounded to bf16 and widened again.
    ThroughBf16(Value),
    /// The bits at the positions in a table that the lowest bits of the lanes are.
    Lookup([u32; LANES], Value),
    /// A mask.
    Compare(Predicate, Value, Value),
    /// A mask made of two.
    Logic(Logic, Value, Value),
    /// A negated mask.
    Not(Value),
    /// The second where the mask is set, else the third.
    Select(Value, Value, Value),
    /// The second times two to the power of the third where the mask is set, else zero.
    ScaleWhere(Value, Value, Value),
    /// The first divided by a uniform value, given with the constants of a fast division.
    Quotient(Value, Divisor),
}

/// A divisor and the constants of a fast division.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Divisor {
    pub(super) number: Value,
    pub(super) reciprocal: Value,
    /// The size of the safe range of dividends, as bits above its lower bound.
    pub(super) range: Value,
    /// Magnitudes, as bits, above this are corrected; zeros are not.
    pub(super) zero: Value,
}

impl Op {
    /// The values that the operation reads.
    pub(super) fn operands(&self) -> impl Iterator<Item = Value> + use<> {
        let (count, operands) = match *self {
            Op::Constant(_) | Op::Scalar(_) | Op::First(_) | Op::Load(..) => (0, [0; 5]),
            Op::Unary(_, a) | Op::ThroughBf16(a) | Op::Lookup(_, a) | Op::Not(a) => (1, [a, 0, 0, 0, 0]),
            Op::Binary(_, a, b) | Op::Compare(_, a, b) | Op::Logic(_, a, b) => (2, [a, b, 0, 0, 0]),
            Op::MulAdd(a, b, c)
            | Op::NegMulAdd(a, b, c)
            | Op::Select(a, b, c)
            | Op::ScaleWhere(a, b, c)
            | Op::OrMasked(a, b, c) => (3, [a, b, c, 0, 0]),
            Op::Quotient(a, Divisor { number, reciprocal, range, zero }) => {
                (5, [a, number, reciprocal, range, zero])
            }
        };
        operands.into_iter().take(count)
    }

    /// Whether instructions can read the value in memory, the same for all lanes.
    pub(super) fn is_uniform(&self) -> bool {
        matches!(self, Op::Constant(_) | Op::Scalar(_) | Op::First(_))
    }

    /// Whether the value is a mask.
    pub(super) fn is_mask(&self) -> bool {
        matches!(self, Op::Compare(..) | Op::Logic(..) | Op::Not(_) | Op::Load(_, Format::Bool))
    }
}

/// A side effect on a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    /// A store of the current columns; a value that a later phase reads is `kept` in the caches.
    Store { stream: usize, format: Format, value: Value, kept: bool },
    /// Its first lane written to the frame.
    StoreScalar { slot: usize, value: Value },
    /// Its first lane written to where a stream begins.
    StoreFirst { stream: usize, value: Value },
    /// Reduced into accumulators.
    Reduce { reduction: usize, value: Value },
}

impl Effect {
    /// The value that it is done with.
    pub(super) fn value(&self) -> Value {
        match *self {
            Effect::Store { value, .. }
            | Effect::StoreScalar { value, .. }
            | Effect::StoreFirst { value, .. }
            | Effect::Reduce { value, .. } => value,
        }
    }
}

/// Operations in order, and side effects.
#[derive(Debug, Default)]
pub(super) struct Body {
    pub(super) ops: Vec<Op>,
    pub(super) effects: Vec<Effect>,
    known: HashMap<Op, Value>,
}

impl Body {
    /// The value of an operation, shared with an equal one.
    pub(super) fn push(&mut self, op: Op) -> Value {
        *self.known.entry(op).or_insert_with(|| {
            self.ops.push(op);
            (self.ops.len() - 1) as Value
        })
    }

    /// The operation of a value.
    pub(super) fn op(&self, value: Value) -> &Op {
        &self.ops[value as usize]
    }

    /// Which operations the effects need.
    pub(super) fn needed(&self) -> Vec<bool> {
        let mut needed = vec![false; self.ops.len()];
        self.effects.iter().for_each(|effect| needed[effect.value() as usize] = true);
        for at in (0..self.ops.len()).rev() {
            if needed[at] {
                self.ops[at].operands().for_each(|operand| needed[operand as usize] = true);
            }
        }
        needed
    }
}

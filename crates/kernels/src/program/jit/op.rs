//! What machine code is made of: operations on vectors of 32-bit lanes and on masks of them, each value computed once.

use std::collections::HashMap;

use super::emit::LANES;

/// The number of an operation, and of its value.
pub(super) type Value = u32;

/// How the elements of a stream lie in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Format {
    F32,
    F16,
    Bf16,
    /// Bytes, 0 or 1; the value is a mask.
    Bool,
}

impl Format {
    /// Bytes of an element.
    pub(super) fn bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F16 | Self::Bf16 => 2,
            Self::Bool => 1,
        }
    }
}

/// A function of one vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Unary {
    Sqrt,
    /// Rounding to an integer, the way given as the instruction takes it.
    Round(u8),
    Reciprocal,
    ShiftUp(u8),
    /// Copies of the top bit move in.
    ShiftDown(u8),
    FloatToInt,
    IntToFloat,
    /// Rounded to binary16 and widened again.
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
    /// Whether the operands may change places.
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
    /// A number of the frame in all lanes.
    Scalar(usize),
    /// The first element of a stream of binary32 in all lanes.
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
    /// Rounded to bfloat16 and widened again.
    ThroughBf16(Value),
    /// The bits at the positions in a table that the lowest bits of the lanes are.
    Lookup([u32; LANES], Value),
    /// A mask.
    Compare(Predicate, Value, Value),
    /// A mask made of two.
    Logic(Logic, Value, Value),
    /// A mask turned round.
    Not(Value),
    /// The second where the mask is set, else the third.
    Select(Value, Value, Value),
    /// The second times two to the power of the third where the mask is set, else zero.
    ScaleWhere(Value, Value, Value),
    /// The first divided by a number, the same for all columns, that is given with what it takes to divide quickly.
    Quotient(Value, Divisor),
}

/// A divisor and what quotients by it are made with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Divisor {
    pub(super) number: Value,
    pub(super) reciprocal: Value,
    /// How far above the least moderate magnitude, as bits, the numbers are that may be divided quickly.
    pub(super) range: Value,
    /// Magnitudes, as bits, from here on are divided; those below are zeros and are multiplied.
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

/// What is done with a value once it is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    /// Written to a stream at the columns that are computed; what a later phase reads is `kept` in the caches.
    Store { stream: usize, format: Format, value: Value, kept: bool },
    /// Its first lane written to the frame.
    Keep { slot: usize, value: Value },
    /// Its first lane written to where a stream begins.
    StoreFirst { stream: usize, value: Value },
    /// Folded into the accumulators of the fold of this number.
    Fold { fold: usize, value: Value },
}

impl Effect {
    /// The value that it is done with.
    pub(super) fn value(&self) -> Value {
        match *self {
            Effect::Store { value, .. }
            | Effect::Keep { value, .. }
            | Effect::StoreFirst { value, .. }
            | Effect::Fold { value, .. } => value,
        }
    }
}

/// Operations in order, and what is done with some of their values.
#[derive(Debug, Default)]
pub(super) struct Body {
    pub(super) ops: Vec<Op>,
    pub(super) effects: Vec<Effect>,
    known: HashMap<Op, Value>,
}

impl Body {
    /// The value of an operation, which is that of an equal one if there is one.
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

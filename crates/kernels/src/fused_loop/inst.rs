//! Instructions of fused loops.

use warpforge_tensor::{ElementType, Scalar};

use crate::reduce::ReduceOp;

/// A register: the index of the instruction that defines it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Register(pub usize);

/// An instruction. It defines the [`Register`] of its index.
#[derive(Debug, Clone, PartialEq)]
pub enum Inst {
    /// The elements of an input, by its number.
    Load(usize),
    /// A constant, rounded to the type.
    Constant(ElementType, Scalar),
    /// `offset` plus the position in each dimension times its factor, wrapped or rounded to the type.
    Iota {
        /// Type of the elements.
        element: ElementType,
        /// The value at the first position.
        offset: i64,
        /// Factors of the row dimensions.
        rows: Vec<i64>,
        /// Factors of the column dimensions.
        columns: Vec<i64>,
    },
    /// A function of one value.
    Unary(UnaryOp, Register),
    /// A function of two values of one type.
    Binary(BinaryOp, Register, Register),
    /// A comparison of two values of one type.
    Compare(Direction, Order, Register, Register),
    /// The second where the first is true, else the third.
    Select(Register, Register, Register),
    /// Conversion: floats truncate and saturate, integers wrap, NaN becomes zero.
    Convert(Register, ElementType),
    /// The reduction of all columns of a row to one value per row.
    Reduce(ReduceOp, Register),
}

impl Inst {
    /// The registers that the instruction reads.
    pub(crate) fn operands(&self) -> impl Iterator<Item = Register> {
        let operands = match *self {
            Inst::Load(_) | Inst::Constant(..) | Inst::Iota { .. } => [None; 3],
            Inst::Unary(_, a) | Inst::Convert(a, _) | Inst::Reduce(_, a) => [Some(a), None, None],
            Inst::Binary(_, a, b) | Inst::Compare(_, _, a, b) => [Some(a), Some(b), None],
            Inst::Select(a, b, c) => [Some(a), Some(b), Some(c)],
        };
        operands.into_iter().flatten()
    }

    /// The registers that the instruction reads, mutably.
    pub(crate) fn operands_mut(&mut self) -> impl Iterator<Item = &mut Register> {
        let operands = match self {
            Inst::Load(_) | Inst::Constant(..) | Inst::Iota { .. } => [None, None, None],
            Inst::Unary(_, a) | Inst::Convert(a, _) | Inst::Reduce(_, a) => [Some(a), None, None],
            Inst::Binary(_, a, b) | Inst::Compare(_, _, a, b) => [Some(a), Some(b), None],
            Inst::Select(a, b, c) => [Some(a), Some(b), Some(c)],
        };
        operands.into_iter().flatten()
    }
}

/// A function of one value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum UnaryOp {
    /// The magnitude; of the least integer, itself.
    Abs,
    /// Negation; integers wrap.
    Negate,
    /// -1, 0 or 1; a zero keeps its sign and NaN stays.
    Sign,
    /// Bitwise or logical not.
    Not,
    /// The number of set bits.
    Popcnt,
    /// The number of leading zero bits.
    CountLeadingZeros,
    /// Whether the value is finite.
    IsFinite,
    /// The next integer above.
    Ceil,
    /// The next integer below.
    Floor,
    /// The nearest integer, halves away from zero.
    RoundNearestAfz,
    /// The nearest integer, halves to the even one.
    RoundNearestEven,
    /// The square root.
    Sqrt,
    /// One divided by the square root.
    Rsqrt,
    /// The cube root.
    Cbrt,
    /// e to the power of the number.
    Exp,
    /// e to the power of the number, less one.
    Expm1,
    /// The natural logarithm.
    Log,
    /// The natural logarithm of the number plus one.
    Log1p,
    /// `1 / (1 + e^-x)`.
    Logistic,
    /// The hyperbolic tangent.
    Tanh,
    /// The sine.
    Sin,
    /// The cosine.
    Cos,
    /// The tangent.
    Tan,
    /// The error function.
    Erf,
    /// One less the error function.
    Erfc,
    /// The Gaussian error linear unit, `x / 2 (1 + erf(x / √2))`.
    Gelu,
}

impl UnaryOp {
    /// Every function of one value.
    pub const ALL: [Self; 26] = [
        Self::Abs,
        Self::Negate,
        Self::Sign,
        Self::Not,
        Self::Popcnt,
        Self::CountLeadingZeros,
        Self::IsFinite,
        Self::Ceil,
        Self::Floor,
        Self::RoundNearestAfz,
        Self::RoundNearestEven,
        Self::Sqrt,
        Self::Rsqrt,
        Self::Cbrt,
        Self::Exp,
        Self::Expm1,
        Self::Log,
        Self::Log1p,
        Self::Logistic,
        Self::Tanh,
        Self::Sin,
        Self::Cos,
        Self::Tan,
        Self::Erf,
        Self::Erfc,
        Self::Gelu,
    ];
}

/// A function of two values of one type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BinaryOp {
    /// The sum; integers wrap; of booleans, either.
    Add,
    /// The difference; integers wrap; of booleans, whether they differ.
    Subtract,
    /// The product; integers wrap; of booleans, both.
    Multiply,
    /// The quotient; of integers, cut towards zero, all bits set where the divisor is zero.
    Divide,
    /// The remainder with the sign of the dividend; of integers by zero, the dividend.
    Remainder,
    /// The larger; NaN wins and zeros are ordered by sign.
    Maximum,
    /// The smaller; NaN wins and zeros are ordered by sign.
    Minimum,
    /// The first to the power of the second; integers wrap.
    Power,
    /// The angle of the point with the second as abscissa and the first as ordinate.
    Atan2,
    /// Bits, or booleans, set in both.
    And,
    /// Bits, or booleans, set in either.
    Or,
    /// Bits, or booleans, set in one.
    Xor,
    /// The first shifted to the left by the second; zero from the width on.
    ShiftLeft,
    /// The first shifted to the right, zeros moving in.
    ShiftRightLogical,
    /// The first shifted to the right, copies of the top bit moving in.
    ShiftRightArithmetic,
}

impl BinaryOp {
    /// Every function of two values.
    pub const ALL: [Self; 15] = [
        Self::Add,
        Self::Subtract,
        Self::Multiply,
        Self::Divide,
        Self::Remainder,
        Self::Maximum,
        Self::Minimum,
        Self::Power,
        Self::Atan2,
        Self::And,
        Self::Or,
        Self::Xor,
        Self::ShiftLeft,
        Self::ShiftRightLogical,
        Self::ShiftRightArithmetic,
    ];
}

/// How two values are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Equal.
    Eq,
    /// Not equal.
    Ne,
    /// The first is the larger, or they are equal.
    Ge,
    /// The first is the larger.
    Gt,
    /// The first is the smaller, or they are equal.
    Le,
    /// The first is the smaller.
    Lt,
}

impl Direction {
    /// Every direction.
    pub const ALL: [Self; 6] = [Self::Eq, Self::Ne, Self::Ge, Self::Gt, Self::Le, Self::Lt];
}

/// The order of floats that a comparison goes by. Integers have one order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Order {
    /// NaN is unordered and zeros are equal.
    Partial,
    /// IEEE 754's totalOrder.
    Total,
}

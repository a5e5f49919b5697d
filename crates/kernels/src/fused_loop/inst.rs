//! Instructions of fused loops.

use warpforge_tensor::elementwise::Function;
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
    Unary(Function, Register),
    /// A function of two values of one type.
    Binary(Function, Register, Register),
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

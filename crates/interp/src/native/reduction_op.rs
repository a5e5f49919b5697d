//! Computations of regions that are a single operation, recognised.

use warpforge_ir::attr::{ComparisonDirection, ComparisonType};
use warpforge_ir::table::OpDef;
use warpforge_ir::{BlockId, Module, OpKind, OpRef, ValueId};

/// What a region of two scalars computes of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReductionOp {
    Add,
    Multiply,
    Maximum,
    Minimum,
    And,
    Or,
    /// The second argument.
    Second,
}

/// The arguments and the one operation before the return, if the block has just that.
fn single(module: &Module, block: BlockId) -> Option<(&[ValueId], Option<OpRef<'_>>, ValueId)> {
    let arguments = module.arguments(block);
    let mut ops = module.ops_in(block);
    let first = ops.next()?;
    let (op, end) = match first.def().is_some_and(OpDef::is_terminator) {
        true => (None, first),
        false => (Some(first), ops.next()?),
    };
    let &[returned] = end.operands() else { return None };
    let ends = end.def().is_some_and(OpDef::is_terminator) && ops.next().is_none();
    ends.then_some((arguments, op, returned))
}

impl ReductionOp {
    /// The computation of a block, if it is one of these.
    pub(crate) fn of(module: &Module, block: BlockId) -> Option<Self> {
        let (arguments, op, returned) = single(module, block)?;
        let &[first, second] = arguments else { return None };
        let Some(op) = op else { return (returned == second).then_some(Self::Second) };
        let &[a, b] = op.operands() else { return None };
        let both = (a, b) == (first, second) || (a, b) == (second, first);
        if !both || op.result(0) != Some(returned) {
            return None;
        }
        Some(match op.kind()? {
            OpKind::Add => Self::Add,
            OpKind::Multiply => Self::Multiply,
            OpKind::Maximum => Self::Maximum,
            OpKind::Minimum => Self::Minimum,
            OpKind::And => Self::And,
            OpKind::Or => Self::Or,
            _ => return None,
        })
    }
}

/// A region that compares two of its arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Comparison {
    /// Which arguments.
    pub(crate) arguments: (usize, usize),
    pub(crate) direction: ComparisonDirection,
    pub(crate) total: bool,
}

impl Comparison {
    /// The computation of a block, if it is a comparison.
    pub(crate) fn of(module: &Module, block: BlockId) -> Option<Self> {
        let (arguments, op, returned) = single(module, block)?;
        let op = op.filter(|op| op.is(OpKind::Compare) && op.result(0) == Some(returned))?;
        let place = |operand: usize| {
            let value = op.operand(operand)?;
            arguments.iter().position(|&argument| argument == value)
        };
        Some(Self {
            arguments: (place(0)?, place(1)?),
            direction: op.attr_enum("comparison_direction")?,
            total: op.attr_enum("compare_type") == Some(ComparisonType::TotalOrder),
        })
    }

    /// Whether two numbers compare so.
    #[inline(always)]
    pub(crate) fn holds<T: super::number::Number>(&self, a: T, b: T) -> bool {
        use ComparisonDirection::{Eq, Ge, Gt, Le, Lt, Ne};
        match (self.direction, self.total) {
            (Eq, false) => a == b,
            (Ne, false) => a != b,
            (Ge, false) => a >= b,
            (Gt, false) => a > b,
            (Le, false) => a <= b,
            (Lt, false) => a < b,
            (Eq, true) => a.total_order(&b).is_eq(),
            (Ne, true) => a.total_order(&b).is_ne(),
            (Ge, true) => a.total_order(&b).is_ge(),
            (Gt, true) => a.total_order(&b).is_gt(),
            (Le, true) => a.total_order(&b).is_le(),
            (Lt, true) => a.total_order(&b).is_lt(),
        }
    }
}

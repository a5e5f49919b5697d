//! Losses: how far a result is from what it should be.

mod classes;
mod distance;
mod elementwise;

use super::prelude::*;
use super::reduction::mean_of;

pub(super) use self::classes::Chosen;

pub(super) const TABLES: &[&[Op]] = &[classes::TABLE, distance::TABLE, elementwise::TABLE];

/// What becomes of the losses of single elements.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Reduction {
    /// They stay as they are.
    None,
    Mean,
    Sum,
}

impl Reduction {
    pub(super) fn read(args: &Args<'_>) -> Lowered<Self> {
        match args.int_or("reduction", 1)? {
            0 => Ok(Self::None),
            1 => Ok(Self::Mean),
            2 => Ok(Self::Sum),
            other => refuse(format!("the reduction {other} of a loss")),
        }
    }

    /// Reduces the losses of single elements to a result of a type.
    fn apply(self, cx: &mut Cx<'_>, losses: &Tensor, dtype: ElementType) -> Lowered<Tensor> {
        let axes: Vec<usize> = (0..losses.rank()).collect();
        let reduced = match self {
            Self::None => losses.clone(),
            Self::Mean => mean_of(cx, losses, &axes)?,
            Self::Sum => cx.sum(losses, &axes)?,
        };
        cx.convert(&reduced, dtype)
    }
}

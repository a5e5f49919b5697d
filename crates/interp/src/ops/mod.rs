//! The evaluators, one file for each family of operations.

mod chlo;
pub(crate) mod collective;
mod contraction;
mod control;
mod elementwise;
mod indexing;
mod linalg;
mod quantized;
mod random;
mod reduction;
mod shape;
mod testing;

use std::sync::LazyLock;

use warpforge_ir::{OpKind, OpRef};

use crate::cx::Cx;
use crate::error::Result;
use crate::{Options, Value, custom_calls};

pub(crate) use shape::constant_tensor;
pub(crate) use testing::check_call;

/// Computes the results of an operation.
pub(crate) type Evaluator = for<'a, 'b, 'm, 's> fn(&'a mut Cx<'b, 'm, 's>) -> Result<Vec<Value>>;

/// The evaluator of an operation of a family; `None` for operations of others.
type FamilyLookup = fn(OpKind) -> Option<Evaluator>;

const FAMILIES: &[FamilyLookup] = &[
    chlo::evaluator,
    collective::evaluator,
    contraction::evaluator,
    control::evaluator,
    elementwise::evaluator,
    indexing::evaluator,
    linalg::evaluator,
    quantized::evaluator,
    random::evaluator,
    reduction::evaluator,
    shape::evaluator,
    testing::evaluator,
];

static TABLE: LazyLock<Vec<Option<Evaluator>>> = LazyLock::new(|| {
    let of_kind = |&kind: &OpKind| FAMILIES.iter().find_map(|family| family(kind));
    OpKind::ALL.iter().map(of_kind).collect()
});

/// The evaluator of an operation.
pub(crate) fn evaluator(kind: OpKind) -> Option<Evaluator> {
    TABLE.get(kind as usize).copied().flatten()
}

/// Whether there is an evaluator for an operation.
#[must_use]
pub fn is_evaluated(kind: OpKind) -> bool {
    evaluator(kind).is_some()
}

/// Why an operation cannot be evaluated, whatever its operands; `None` when it can.
///
/// Looks at the operation itself, not into its regions.
#[must_use]
pub fn why_unsupported(op: OpRef<'_>, options: &Options) -> Option<String> {
    let Some(kind) = op.kind() else { return Some("the operation is not known".to_owned()) };
    if evaluator(kind).is_none() && !RUN_BY_THE_MACHINE.contains(&kind) {
        return Some("there is no evaluator for it".to_owned());
    }
    custom_calls::why_unknown(op, options)
}

/// Modules, functions and returns: the machine itself runs them.
const RUN_BY_THE_MACHINE: &[OpKind] = &[OpKind::Module, OpKind::Func, OpKind::FuncReturn, OpKind::Return];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_has_one_evaluator() {
        for &kind in OpKind::ALL {
            let expected = usize::from(!RUN_BY_THE_MACHINE.contains(&kind));
            let families = FAMILIES.iter().filter(|family| family(kind).is_some()).count();
            assert_eq!(families, expected, "families that evaluate {}", kind.name());
            assert_eq!(evaluator(kind).is_some(), expected == 1, "{}", kind.name());
        }
    }
}

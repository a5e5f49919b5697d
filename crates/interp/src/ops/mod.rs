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

/// Every family's list.
const FAMILIES: &[&[(OpKind, Evaluator)]] = &[
    chlo::OPS,
    collective::OPS,
    contraction::OPS,
    control::OPS,
    elementwise::OPS,
    indexing::OPS,
    linalg::OPS,
    quantized::OPS,
    random::OPS,
    reduction::OPS,
    shape::OPS,
    testing::OPS,
];

static TABLE: LazyLock<Vec<Option<Evaluator>>> = LazyLock::new(|| {
    let mut table = vec![None; OpKind::ALL.len()];
    for (kind, evaluator) in FAMILIES.iter().copied().flatten() {
        if let Some(entry) = table.get_mut(*kind as usize) {
            *entry = Some(*evaluator);
        }
    }
    table
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
    use std::collections::HashSet;

    #[test]
    fn every_operation_has_one_evaluator() {
        let mut seen = HashSet::new();
        for (kind, _) in FAMILIES.iter().copied().flatten() {
            assert!(seen.insert(*kind), "{} is listed twice", kind.name());
        }
        for &kind in OpKind::ALL {
            let expected = !RUN_BY_THE_MACHINE.contains(&kind);
            assert_eq!(evaluator(kind).is_some(), expected, "{}", kind.name());
        }
    }
}

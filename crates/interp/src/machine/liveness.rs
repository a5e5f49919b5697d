//! When the values of a block end.
//!
//! A value is given away with its last use, so that an evaluator that changes it need not copy it, and dropped as soon as
//! nothing needs it. Only the block that a value belongs to ends it: a region may run many times.

use std::collections::HashSet;

use warpforge_ir::{BlockId, Module, OpRef, ValueId};

/// What happens to the values of a block.
pub(super) struct BlockLiveness {
    /// For each argument whether anything uses it.
    pub(super) used: Vec<bool>,
    /// For each operation in order.
    pub(super) steps: Vec<OpLiveness>,
}

/// What happens to values at an operation.
pub(super) struct OpLiveness {
    /// For each operand whether this is the last use of its value.
    pub(super) last: Vec<bool>,
    /// Values to drop afterwards: those that its regions use last, and results that nothing uses.
    pub(super) ended: Vec<ValueId>,
}

impl BlockLiveness {
    pub(super) fn new(module: &Module, block: BlockId) -> Self {
        let arguments = module.arguments(block);
        let mut own: HashSet<ValueId> = arguments.iter().copied().collect();
        own.extend(module.ops_in(block).flat_map(OpRef::results));
        let mut needed: HashSet<ValueId> = HashSet::new();
        let mut steps: Vec<OpLiveness> =
            module.ops_in(block).rev().map(|op| OpLiveness::new(op, &own, &mut needed)).collect();
        steps.reverse();
        Self { used: arguments.iter().map(|argument| needed.contains(argument)).collect(), steps }
    }
}

impl OpLiveness {
    /// The liveness at an operation; `needed` has the values that later ones use.
    fn new(op: OpRef<'_>, own: &HashSet<ValueId>, needed: &mut HashSet<ValueId>) -> Self {
        let mut ended: Vec<ValueId> = op.results().filter(|result| !needed.contains(result)).collect();
        let inside = captured(op);
        for &value in inside.iter().filter(|value| own.contains(value)) {
            if needed.insert(value) {
                ended.push(value);
            }
        }
        // Of several uses by one operation, the last operand is the last use.
        let mut last: Vec<bool> = op
            .operands()
            .iter()
            .rev()
            .map(|operand| own.contains(operand) && needed.insert(*operand))
            .collect();
        last.reverse();
        Self { last, ended }
    }
}

/// The values that the regions of an operation use.
fn captured(op: OpRef<'_>) -> HashSet<ValueId> {
    let mut found = HashSet::new();
    let mut pending: Vec<OpRef<'_>> = Vec::new();
    let mut current = Some(op);
    while let Some(op) = current {
        for &region in op.regions() {
            for &block in op.module().blocks(region) {
                pending.extend(op.module().ops_in(block));
            }
        }
        current = pending.pop();
        if let Some(next) = current {
            found.extend(next.operands().iter().copied());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpforge_diag::Source;
    use warpforge_snakeburger::text;

    #[test]
    fn values_end_with_their_last_use() {
        let source = Source::new(
            "a.mlir",
            "func.func @main(%a: tensor<i1>, %b: tensor<f32>, %c: tensor<f32>) -> tensor<f32> {
               %0 = stablehlo.add %b, %b : tensor<f32>
               %1 = \"stablehlo.if\"(%a) ({
                 %2 = stablehlo.add %0, %b : tensor<f32>
                 stablehlo.return %2 : tensor<f32>
               }, {
                 stablehlo.return %0 : tensor<f32>
               }) : (tensor<i1>) -> tensor<f32>
               %3 = stablehlo.negate %1 : tensor<f32>
               func.return %1 : tensor<f32>
             }",
        );
        let module = text::parse(&source, &text::Options::default()).expect("a valid module");
        let body = module.function("main").and_then(warpforge_ir::Func::body).expect("a body");
        let liveness = BlockLiveness::new(&module, body);
        assert_eq!(liveness.used, [true, true, false]);
        let last: Vec<&[bool]> = liveness.steps.iter().map(|op| &*op.last).collect();
        assert_eq!(last, [&[false, false][..], &[true], &[false], &[true]]);
        let ended: Vec<usize> = liveness.steps.iter().map(|op| op.ended.len()).collect();
        // The branch takes the sum and the second argument along; nothing uses the negated value.
        assert_eq!(ended, [0, 2, 1, 0]);
    }
}

//! Operations that the graph evaluates as a whole, and that backends may have kernels for.

use warpforge_ir::attr::{ComparisonDirection, ComparisonType};
use warpforge_ir::{Module, OpKind, OpRef, ValueId};

use super::reduce::reduce_kind;
use crate::graph::op::{Form, Order, Update};

/// The form of an operation, where it has one.
pub(super) fn form(op: OpRef<'_>) -> Option<Form> {
    Some(match op.kind()? {
        OpKind::Scatter if op.operands().len() == 3 => {
            let update = if gives_the_update(op) { Update::Set } else { Update::Reduce(reduce_kind(op)?) };
            Form::Scatter(op.scatter_dims()?.clone(), update)
        }
        OpKind::DynamicSlice => Form::DynamicSlice,
        OpKind::DynamicUpdateSlice => Form::DynamicUpdate,
        OpKind::Sort => {
            let (key, order) = order(op)?;
            Form::Sort { axis: usize::try_from(op.attr_i64("dimension")?).ok()?, key, order }
        }
        _ => return None,
    })
}

/// Whether the region of a scatter gives its second argument.
fn gives_the_update(op: OpRef<'_>) -> bool {
    let module = op.module();
    let Some(block) = op.region_block(0) else { return false };
    let &[_, update] = module.arguments(block) else { return false };
    let mut ops = module.ops_in(block);
    ops.next().is_some_and(|end| end.operands() == [update]) && ops.next().is_none()
}

/// By which operand a sort orders, and how: one comparison, or one for which NaN is the largest of all.
fn order(op: OpRef<'_>) -> Option<(usize, Order)> {
    let module: &Module = op.module();
    let block = op.region_block(0)?;
    let arguments = module.arguments(block);
    let ops: Vec<OpRef<'_>> = module.ops_in(block).collect();
    let (end, body) = ops.split_last()?;
    let found = end.operands().first()?;
    let made = |value: &ValueId| body.iter().find(|op| op.result(0) == Some(*value));
    let last = made(found)?;
    let compare = |op: &OpRef<'_>| -> Option<(ComparisonDirection, ValueId, ValueId)> {
        let &[a, b] = op.operands() else { return None };
        op.is(OpKind::Compare).then_some(())?;
        Some((op.attr_enum("comparison_direction")?, a, b))
    };
    let strict = |op: &OpRef<'_>| -> Option<(usize, bool)> {
        let (direction, a, b) = compare(op)?;
        let place = |value| arguments.iter().position(|argument| *argument == value);
        let (a, b) = (place(a)?, place(b)?);
        let descending = match direction {
            ComparisonDirection::Lt => b < a,
            ComparisonDirection::Gt => a < b,
            _ => return None,
        };
        (a / 2 == b / 2 && a != b).then_some((a / 2, descending))
    };
    if body.len() == 1 {
        let (key, descending) = strict(last)?;
        let total = last.attr_enum("compare_type") == Some(ComparisonType::TotalOrder);
        return Some((key, Order { descending, total, nan_is_largest: false }));
    }
    // Before, or not a number where the other is one.
    let &[before, only] = last.operands() else { return None };
    let (key, descending) = strict(made(&before)?)?;
    let and = made(&only)?;
    let &[unknown, known] = and.operands() else { return None };
    let itself = |value: &ValueId, wanted: ComparisonDirection| {
        let (direction, a, b) = compare(made(value)?)?;
        (direction == wanted && a == b).then_some(a)
    };
    let large = itself(&unknown, ComparisonDirection::Ne)?;
    let small = itself(&known, ComparisonDirection::Eq)?;
    let &[left, right] = arguments.get(2 * key..2 * key + 2)? else { return None };
    let expected = if descending { (left, right) } else { (right, left) };
    let fits = last.is(OpKind::Or) && and.is(OpKind::And) && body.len() == 5;
    (fits && (large, small) == expected)
        .then_some((key, Order { descending, total: false, nan_is_largest: true }))
}

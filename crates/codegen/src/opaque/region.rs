//! Scalar regions as source lines.

use std::collections::HashMap;

use warpforge_ir::attr::{ComparisonType, ElementData};
use warpforge_ir::{BlockId, Module, OpKind, OpRef, Type, ValueId};
use warpforge_tensor::elementwise::Function;
use warpforge_tensor::{ElementType, Shape, Tensor};

use crate::kernel::Unsupported;
use crate::steps::{call, comparison};
use crate::text::Text;
use crate::types::{compute_type, literal, rounded};

/// Emits a region applied to these argument expressions; returns the result expressions. `prefix` starts the names of
/// temporaries.
pub(super) fn emit(
    text: &mut Text,
    module: &Module,
    block: BlockId,
    arguments: &[String],
    prefix: &str,
) -> Result<Vec<String>, Unsupported> {
    let mut known: HashMap<ValueId, String> =
        module.arguments(block).iter().copied().zip(arguments.iter().cloned()).collect();
    for op in module.ops_in(block) {
        let unsupported = || Unsupported::new(format!("{} in a region", op.name()));
        let operands: Option<Vec<String>> =
            op.operands().iter().map(|value| known.get(value).cloned()).collect();
        let operands = operands.ok_or_else(unsupported)?;
        if op.is(OpKind::Return) {
            return Ok(operands);
        }
        let (value, result) = (scalar(op, &operands)?, op.result(0).ok_or_else(unsupported)?);
        let element = element(module.value_type(result)).ok_or_else(unsupported)?;
        let name = format!("{prefix}{}", known.len());
        text.line(format!("const {} {name} = {value};", compute_type(element)?));
        known.insert(result, name);
    }
    Err(Unsupported::new("a region that does not return"))
}

fn element(ty: &Type) -> Option<ElementType> {
    let tensor = ty.as_tensor()?;
    tensor.element().plain().filter(|_| tensor.shape_usize().is_some_and(|dims: Vec<usize>| dims.is_empty()))
}

/// The expression of a scalar operation.
fn scalar(op: OpRef<'_>, operands: &[String]) -> Result<String, Unsupported> {
    let unsupported = || Unsupported::new(format!("{} in a region", op.name()));
    let (kind, result) =
        (op.kind().ok_or_else(unsupported)?, op.result_type(0).and_then(element).ok_or_else(unsupported)?);
    let value = match (kind, operands) {
        (OpKind::Constant, _) => {
            let elements = op.attr_elements("value").ok_or_else(unsupported)?;
            let (ElementData::Splat(bytes) | ElementData::Raw(bytes)) = elements.data() else {
                return Err(unsupported());
            };
            let tensor = Tensor::from_bytes(result, Shape::scalar(), bytes).map_err(|_| unsupported())?;
            return literal(result, tensor.get(0));
        }
        (OpKind::Compare, [a, b]) => {
            let of = op.operand_type(0).and_then(element).ok_or_else(unsupported)?;
            let direction = op.attr_enum("comparison_direction").ok_or_else(unsupported)?;
            let order = op.attr_enum("compare_type").unwrap_or(ComparisonType::Float);
            return Ok(comparison(direction, order, of, a, b));
        }
        (OpKind::Select, [condition, yes, no]) => return Ok(format!("({condition} ? {yes} : {no})")),
        (OpKind::Convert, [value]) if result == ElementType::Bool => format!("({value} != 0)"),
        (OpKind::Convert, [value]) => format!("wf_convert<{}>({value})", compute_type(result)?),
        (kind, operands) => call(Function::of_op(kind.name()).ok_or_else(unsupported)?, operands)?,
    };
    rounded(result, value)
}

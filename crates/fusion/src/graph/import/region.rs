//! Regions of operations as functions of scalars.

use std::collections::HashMap;

use warpforge_ir::attr::ElementData;
use warpforge_ir::{OpKind, OpRef, Type, ValueId};
use warpforge_tensor::elementwise::Function;
use warpforge_tensor::{ElementType, Shape, Tensor};

use super::element::{fast, storage};
use crate::graph::scalar::{ScalarFunction, ScalarOp, ScalarStep, comparison_type};

/// What a region computes, when it takes scalars and nothing from outside, and all its operations are elementwise.
pub(super) fn scalar_function(op: OpRef<'_>, region: usize) -> Option<ScalarFunction> {
    let module = op.module();
    let block = op.region_block(region)?;
    let arguments = module.arguments(block);
    let mut numbers: HashMap<ValueId, usize> = arguments.iter().copied().zip(0..).collect();
    let elements = arguments.iter().map(|&argument| scalar(module.value_type(argument)));
    let mut function = ScalarFunction {
        arguments: elements.collect::<Option<_>>()?,
        steps: Vec::new(),
        results: Vec::new(),
    };
    for inner in module.ops_in(block) {
        let inputs: Vec<usize> =
            inner.operands().iter().map(|value| numbers.get(value).copied()).collect::<Option<_>>()?;
        if inner.is(OpKind::Return) {
            function.results = inputs;
            return Some(function);
        }
        let element = scalar(inner.result_type(0)?)?;
        let kind = inner.kind()?;
        let op = match kind {
            OpKind::Constant => ScalarOp::Constant(constant(inner, element)?),
            OpKind::Compare => {
                let order = inner.attr_enum("compare_type");
                let of = function.element(*inputs.first()?)?;
                let order = order.unwrap_or_else(|| comparison_type(of));
                ScalarOp::Compare(inner.attr_enum("comparison_direction")?, order)
            }
            _ => ScalarOp::Elementwise(Function::of_op(kind.name())?),
        };
        numbers.insert(inner.result(0)?, numbers.len());
        function.steps.push(ScalarStep { op, inputs, element });
    }
    None
}

fn scalar(ty: &Type) -> Option<ElementType> {
    let (_, dims) = storage(ty)?;
    fast(ty).filter(|_| dims.is_empty())
}

fn constant(op: OpRef<'_>, element: ElementType) -> Option<Tensor> {
    match op.attr_elements("value")?.data() {
        ElementData::Splat(bytes) | ElementData::Raw(bytes) => {
            Tensor::from_bytes(element, Shape::scalar(), bytes).ok()
        }
        ElementData::Resource(_) => None,
    }
}

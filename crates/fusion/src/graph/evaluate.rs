//! Nodes evaluated while compiling, by the reference.

use warpforge_diag::Span;
use warpforge_interp::{Interpreter, Options, Value};
use warpforge_ir::attr::Attribute;
use warpforge_ir::{Dict, FunctionType, Module, OpKind, TensorType, Type};
use warpforge_tensor::{ElementType, Shape, Tensor};

use super::op::Op;
use crate::view::View;

/// What an operation gives for these operands; nothing where it has no such form or fails.
pub(crate) fn evaluate(op: &Op, inputs: &[Tensor], element: ElementType, dims: &[usize]) -> Option<Tensor> {
    let shape = Shape::new(dims).ok()?;
    match op {
        Op::Layout(step) => {
            let [input] = inputs else { return None };
            let view = View::dense(input.dims()).after(step)?;
            if view.is_dense() && view.len() == input.len() {
                return input.reshaped(shape).ok();
            }
            input.strided(shape, usize::try_from(view.offset).ok()?, &view.strides).ok()
        }
        Op::Iota(dimension) => {
            let mut attrs = Dict::new();
            attrs.set("iota_dimension", Attribute::i64(*dimension as i64));
            single(OpKind::Iota, attrs, inputs, element, dims)
        }
        Op::Elementwise(function) => {
            single(OpKind::from_name(function.op_name()?)?, Dict::new(), inputs, element, dims)
        }
        Op::Compare(direction, order) => {
            let mut attrs = Dict::new();
            attrs.set("comparison_direction", Attribute::enumeration(*direction));
            attrs.set("compare_type", Attribute::enumeration(*order));
            single(OpKind::Compare, attrs, inputs, element, dims)
        }
        Op::Concat(dimension) => {
            let mut attrs = Dict::new();
            attrs.set("dimension", Attribute::i64(*dimension as i64));
            single(OpKind::Concatenate, attrs, inputs, element, dims)
        }
        Op::Pad { low, high, interior } => {
            let mut attrs = Dict::new();
            let edge =
                |sizes: &[isize]| Attribute::i64s(sizes.iter().map(|&size| size as i64).collect::<Vec<_>>());
            attrs.set("edge_padding_low", edge(low));
            attrs.set("edge_padding_high", edge(high));
            attrs.set("interior_padding", sizes(interior));
            single(OpKind::Pad, attrs, inputs, element, dims)
        }
        Op::Gather(numbers, slice) => {
            let mut attrs = Dict::new();
            attrs.set("dimension_numbers", Attribute::Gather(numbers.clone().into()));
            attrs.set("slice_sizes", sizes(slice));
            single(OpKind::Gather, attrs, inputs, element, dims)
        }
        _ => None,
    }
}

fn sizes(sizes: &[usize]) -> Attribute {
    Attribute::i64s(sizes.iter().map(|&size| size as i64).collect::<Vec<_>>())
}

fn single(
    kind: OpKind,
    attrs: Dict,
    inputs: &[Tensor],
    element: ElementType,
    dims: &[usize],
) -> Option<Tensor> {
    let ty = |element: ElementType, dims: &[usize]| {
        let dims: Vec<u64> = dims.iter().map(|&dim| dim as u64).collect();
        Type::from(TensorType::fixed(&dims, element))
    };
    let types: Vec<Type> = inputs.iter().map(|input| ty(input.element_type(), input.dims())).collect();
    let result = ty(element, dims);
    let mut module = Module::new();
    let mut signature = Dict::new();
    signature.set("sym_name", Attribute::string("main"));
    let function = FunctionType { inputs: types.clone(), results: vec![result.clone()] };
    signature.set("function_type", Attribute::Type(Type::Function(function.into())));
    let func = module.create_op(OpKind::Func, vec![], vec![], signature, Span::NONE);
    module.append_op(module.body(), func);
    let region = module.add_region(func);
    let block = module.add_block(region);
    let arguments = types.into_iter().map(|ty| module.add_argument(block, ty)).collect();
    let op = module.create_op(kind, arguments, vec![result], attrs, Span::NONE);
    module.append_op(block, op);
    let results = module.op(op).results().collect();
    let end = module.create_op(OpKind::FuncReturn, results, vec![], Dict::new(), Span::NONE);
    module.append_op(block, end);
    let values = inputs.iter().cloned().map(Value::Tensor).collect();
    let given = Interpreter::new(&module, Options::default()).run("main", values).ok()?;
    given.first()?.as_tensor().ok().cloned()
}

#[cfg(test)]
mod tests {
    use crate::testing::graph;

    /// What export makes of positions and of a mask of packed sequences: a running sum by pads and sums, rows picked.
    #[test]
    fn what_depends_on_no_input_is_known_when_compiling() {
        let module = "func.func @main() -> tensor<2xi64> {
            %0 = stablehlo.iota dim = 0 : tensor<4xi64>
            %1 = stablehlo.slice %0 [0:3] : (tensor<4xi64>) -> tensor<3xi64>
            %zero = stablehlo.constant dense<0> : tensor<i64>
            %2 = stablehlo.pad %1, %zero, low = [1], high = [0], interior = [0] : (tensor<3xi64>, tensor<i64>) -> tensor<4xi64>
            %3 = stablehlo.add %0, %2 : tensor<4xi64>
            %rows = stablehlo.constant dense<[[3], [1]]> : tensor<2x1xi64>
            %4 = \"stablehlo.gather\"(%3, %rows) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0],
                start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1>}>
                : (tensor<4xi64>, tensor<2x1xi64>) -> tensor<2xi64>
            return %4 : tensor<2xi64>
        }";
        let graph = graph(module);
        let known = graph.constant(graph.outputs[0]).unwrap();
        assert_eq!(known.as_slice::<i64>().unwrap(), [5, 1]);
    }
}

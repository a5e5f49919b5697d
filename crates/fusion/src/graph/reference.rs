//! Operations of the graph as StableHLO, for the reference: when compiling, and where a device has no kernel.

use std::sync::Arc;

use warpforge_diag::Span;
use warpforge_ir::attr::{Attribute, DenseElements, DotDims};
use warpforge_ir::slice::Slice;
use warpforge_ir::{BlockId, Dict, FunctionType, Module, OpId, OpKind, TensorType, Type, ValueId};
use warpforge_tensor::{ElementType, Tensor};

use super::op::{Op, OpaqueOp, Window};
use super::scalar::{Combiner, ScalarFunction, ScalarOp};
use super::{Graph, NodeId};

/// The name of the function of such a module.
pub(super) const FUNCTION: &str = "main";

/// The type of a tensor.
pub(super) type TensorOf = (ElementType, Vec<usize>);

impl Graph {
    /// A node as a module of its own, whose function takes the node's inputs; none where the reference has no such operation.
    #[must_use]
    pub fn reference(&self, id: NodeId) -> Option<Arc<OpaqueOp>> {
        let node = self.node(id);
        if let Op::Opaque(op) = &node.op {
            return Some(Arc::clone(op));
        }
        let of = |id: &NodeId| (self.node(*id).element, self.node(*id).dims.clone());
        let inputs: Vec<TensorOf> = node.inputs.iter().map(of).collect();
        let results = match &node.op {
            Op::Sort { .. } => inputs.clone(),
            Op::VariadicReduce(_, axes) => {
                let (operands, initial) = inputs.split_at(inputs.len() / 2);
                let dims = &operands.first()?.1;
                let kept: Vec<usize> =
                    (0..dims.len()).filter(|at| !axes.contains(at)).map(|at| dims[at]).collect();
                initial.iter().map(|(element, _)| (*element, kept.clone())).collect()
            }
            _ => vec![of(&id)],
        };
        let (kind, module) = module(&node.op, &inputs, &results)?;
        let slice = Slice { module, inputs: Vec::new(), ops: Vec::new() };
        let operands = (0..inputs.len()).collect();
        let (name, function) = (kind.name().to_owned(), FUNCTION.to_owned());
        Some(Arc::new(OpaqueOp { name, slice, function, operands }))
    }
}

/// A module whose function computes an operation of operands and results of these types.
pub(super) fn module(op: &Op, inputs: &[TensorOf], results: &[TensorOf]) -> Option<(OpKind, Module)> {
    let mut module = Module::new();
    let types = |of: &[TensorOf]| of.iter().map(|(element, dims)| ty(*element, dims)).collect::<Vec<Type>>();
    let mut signature = Dict::new();
    signature.set("sym_name", Attribute::string(FUNCTION));
    let function = FunctionType { inputs: types(inputs), results: types(results) };
    signature.set("function_type", Attribute::Type(Type::Function(function.into())));
    let func = module.create_op(OpKind::Func, vec![], vec![], signature, Span::NONE);
    module.append_op(module.body(), func);
    let region = module.add_region(func);
    let block = module.add_block(region);
    let mut operands: Vec<ValueId> =
        types(inputs).into_iter().map(|ty| module.add_argument(block, ty)).collect();
    if let Op::ReduceWindow(_, _, init) = op {
        operands.push(constant(&mut module, block, init)?);
    }
    let (kind, attrs) = attributes(op, results)?;
    let made = module.create_op(kind, operands, types(results), attrs, Span::NONE);
    module.append_op(block, made);
    let (of, given) = (inputs.first().map(|(element, _)| *element), results.first()?.0);
    match op {
        Op::Scatter(_, combiner) => add_region(&mut module, made, &combiner.function(given))?,
        Op::SelectAndScatter { select, scatter, .. } => {
            add_region(&mut module, made, select)?;
            add_region(&mut module, made, &scatter.function(given))?;
        }
        Op::Sort { comparator, .. } => {
            let elements: Vec<ElementType> = inputs.iter().map(|(element, _)| *element).collect();
            add_region(&mut module, made, &comparator.function(&elements))?;
        }
        Op::VariadicReduce(function, _) => add_region(&mut module, made, function)?,
        Op::ReduceWindow(kind, ..) => {
            add_region(&mut module, made, &Combiner::Reduce(*kind).function(of?))?;
        }
        _ => {}
    }
    let given = module.op(made).results().collect();
    let end = module.create_op(OpKind::FuncReturn, given, vec![], Dict::new(), Span::NONE);
    module.append_op(block, end);
    Some((kind, module))
}

/// The operation and its attributes.
fn attributes(op: &Op, results: &[TensorOf]) -> Option<(OpKind, Dict)> {
    let mut attrs = Dict::new();
    let kind = match op {
        Op::Iota(dimension) => {
            attrs.set("iota_dimension", Attribute::i64(*dimension as i64));
            OpKind::Iota
        }
        Op::Elementwise(function) => OpKind::from_name(function.op_name()?)?,
        Op::Compare(direction, order) => {
            attrs.set("comparison_direction", Attribute::enumeration(*direction));
            attrs.set("compare_type", Attribute::enumeration(*order));
            OpKind::Compare
        }
        Op::Concat(dimension) => {
            attrs.set("dimension", Attribute::i64(*dimension as i64));
            OpKind::Concatenate
        }
        Op::Pad { low, high, interior } => {
            let edge = |sizes: &[isize]| {
                Attribute::i64s(sizes.iter().map(|&size| size as i64).collect::<Vec<i64>>())
            };
            attrs.set("edge_padding_low", edge(low));
            attrs.set("edge_padding_high", edge(high));
            attrs.set("interior_padding", sizes(interior));
            OpKind::Pad
        }
        Op::Dot(dot) => {
            let dims = |dims: &[usize]| dims.iter().map(|&dim| dim as i64).collect::<Vec<i64>>();
            let dims = DotDims {
                lhs_batching: dims(&dot.lhs_batch),
                rhs_batching: dims(&dot.rhs_batch),
                lhs_contracting: dims(&dot.lhs_contract),
                rhs_contracting: dims(&dot.rhs_contract),
            };
            attrs.set("dot_dimension_numbers", Attribute::Dot(dims.into()));
            OpKind::DotGeneral
        }
        Op::Gather(numbers, slice) => {
            attrs.set("dimension_numbers", Attribute::Gather(numbers.clone().into()));
            attrs.set("slice_sizes", sizes(slice));
            OpKind::Gather
        }
        Op::Scatter(numbers, _) => {
            attrs.set("scatter_dimension_numbers", Attribute::Scatter(numbers.clone().into()));
            OpKind::Scatter
        }
        Op::DynamicSlice => {
            attrs.set("slice_sizes", sizes(&results.first()?.1));
            OpKind::DynamicSlice
        }
        Op::DynamicUpdateSlice => OpKind::DynamicUpdateSlice,
        Op::ReduceWindow(_, window, _) => {
            windows(&mut attrs, window)?;
            attrs.set("base_dilations", sizes(&window.base_dilation));
            attrs.set("window_dilations", sizes(&window.window_dilation));
            OpKind::ReduceWindow
        }
        Op::SelectAndScatter { window, .. } => {
            windows(&mut attrs, window)?;
            OpKind::SelectAndScatter
        }
        Op::Sort { axis, .. } => {
            attrs.set("dimension", Attribute::i64(*axis as i64));
            OpKind::Sort
        }
        Op::VariadicReduce(_, axes) => {
            attrs.set("dimensions", sizes(axes));
            OpKind::Reduce
        }
        Op::Call(call) => {
            for (name, value) in call.attributes() {
                attrs.set(name, value);
            }
            OpKind::CustomCall
        }
        Op::Argument(_)
        | Op::Constant(_)
        | Op::Resample(_)
        | Op::Layout(_)
        | Op::Reduce(..)
        | Op::Conv(_)
        | Op::Opaque(_)
        | Op::Result(_)
        | Op::Complex => return None,
    };
    Some((kind, attrs))
}

fn windows(attrs: &mut Dict, window: &Window) -> Option<()> {
    attrs.set("window_dimensions", sizes(&window.dims));
    attrs.set("window_strides", sizes(&window.strides));
    let padding: Vec<i64> =
        window.padding.iter().flat_map(|&(low, high)| [low as i64, high as i64]).collect();
    let rows = DenseElements::i64s(&[window.padding.len() as u64, 2], &padding).ok()?;
    attrs.set("padding", Attribute::Elements(rows.into()));
    Some(())
}

/// A region that applies a function to scalars.
fn add_region(module: &mut Module, op: OpId, function: &ScalarFunction) -> Option<()> {
    let region = module.add_region(op);
    let block = module.add_block(region);
    let mut values: Vec<ValueId> =
        function.arguments.iter().map(|&element| module.add_argument(block, ty(element, &[]))).collect();
    for step in &function.steps {
        let inputs: Vec<ValueId> =
            step.inputs.iter().map(|&input| values.get(input).copied()).collect::<Option<_>>()?;
        let alike = match &step.op {
            ScalarOp::Constant(tensor) => {
                values.push(constant(module, block, tensor)?);
                continue;
            }
            ScalarOp::Elementwise(function) => Op::Elementwise(*function),
            ScalarOp::Compare(direction, order) => Op::Compare(*direction, *order),
        };
        let (kind, attrs) = attributes(&alike, &[])?;
        let made = module.create_op(kind, inputs, vec![ty(step.element, &[])], attrs, Span::NONE);
        module.append_op(block, made);
        values.push(module.op(made).result(0)?);
    }
    let results: Vec<ValueId> =
        function.results.iter().map(|&result| values.get(result).copied()).collect::<Option<_>>()?;
    let end = module.create_op(OpKind::Return, results, vec![], Dict::new(), Span::NONE);
    module.append_op(block, end);
    Some(())
}

/// A scalar as an operation.
fn constant(module: &mut Module, block: BlockId, scalar: &Tensor) -> Option<ValueId> {
    let tensor = TensorType::fixed(&[], scalar.element_type());
    let elements = DenseElements::splat(tensor.clone(), scalar.bytes().to_vec()).ok()?;
    let mut attrs = Dict::new();
    attrs.set("value", Attribute::Elements(elements.into()));
    let made = module.create_op(OpKind::Constant, vec![], vec![tensor.into()], attrs, Span::NONE);
    module.append_op(block, made);
    module.op(made).result(0)
}

fn ty(element: ElementType, dims: &[usize]) -> Type {
    let dims: Vec<u64> = dims.iter().map(|&dim| dim as u64).collect();
    TensorType::fixed(&dims, element).into()
}

fn sizes(sizes: &[usize]) -> Attribute {
    Attribute::i64s(sizes.iter().map(|&size| size as i64).collect::<Vec<i64>>())
}

#[cfg(test)]
mod tests {
    use warpforge_diag::Source;
    use warpforge_interp::{Interpreter, Options, Value};
    use warpforge_snakeburger::text;
    use warpforge_tensor::{Scalar, Shape, Tensor};

    use crate::graph::{Op, import};

    const REGION: &str = "^bb0(%a: tensor<f32>, %b: tensor<f32>):";
    const SCATTER: &str = "scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>";

    /// Small numbers in no order, as every type holds them.
    fn tensor(ty: &warpforge_ir::TensorType, seed: usize) -> Tensor {
        let (element, dims) = (ty.element().plain().unwrap(), ty.shape_usize().unwrap());
        let count = dims.iter().product::<usize>();
        let number = |at: usize| ((at * 7 + seed * 5 + at * at) % 11) as i128;
        let value = |at| match element {
            warpforge_tensor::ElementType::Float(_) => Scalar::Float(number(at) as f64 - 5.0),
            _ => Scalar::Int(number(at) - 2),
        };
        Tensor::from_scalars(element, Shape::new(dims).unwrap(), (0..count).map(value)).unwrap()
    }

    /// The one operation of a function on its arguments gives the same by the module of its node.
    #[track_caller]
    fn same(arguments: &str, results: &str, op: &str) {
        let count = results.split(", ").count();
        let (name, given) = if count == 1 {
            ("%r".to_owned(), "%r".to_owned())
        } else {
            (format!("%r:{count}"), (0..count).map(|at| format!("%r#{at}")).collect::<Vec<_>>().join(", "))
        };
        let text = format!(
            "func.func @main({arguments}) -> ({results}) {{\n{name} = {op}\nreturn {given} : {results}\n}}"
        );
        let module = text::parse(&Source::new("m", &text), &text::Options::default()).unwrap();
        let main = module.function("main").unwrap();
        let values: Vec<Value> = main
            .arguments()
            .iter()
            .enumerate()
            .map(|(at, &value)| Value::Tensor(tensor(module.value_type(value).as_tensor().unwrap(), at)))
            .collect();
        let expected = Interpreter::new(&module, Options::default()).run("main", values.clone()).unwrap();
        let graph = import(main, &|_| None).unwrap();
        let is_op =
            |id: &crate::graph::NodeId| !matches!(graph.node(*id).op, Op::Argument(_) | Op::Result(_));
        let node = graph.ids().find(is_op).unwrap();
        assert!(!matches!(graph.node(node).op, Op::Opaque(_)), "{} is opaque", graph.node(node).op.name());
        let reference = graph.reference(node).unwrap();
        let inputs = graph.node(node).inputs.iter().map(|input| values[input.index()].clone()).collect();
        let run = Interpreter::new(&reference.slice.module, Options::default());
        let given = run.run(&reference.function, inputs).unwrap();
        assert_eq!(given.len(), expected.len());
        for (ours, theirs) in given.iter().zip(&expected) {
            assert!(ours.as_tensor().unwrap().identical(theirs.as_tensor().unwrap()), "{ours:?} {theirs:?}");
        }
    }

    #[test]
    fn slices_and_scatters() {
        let x = "tensor<6x5xf32>";
        same(
            &format!("%x: {x}, %i: tensor<i32>, %j: tensor<i32>"),
            "tensor<2x3xf32>",
            &format!(
                "stablehlo.dynamic_slice %x, %i, %j, sizes = [2, 3] : ({x}, tensor<i32>, tensor<i32>) -> tensor<2x3xf32>"
            ),
        );
        same(
            &format!("%x: {x}, %u: tensor<2x3xf32>, %i: tensor<i64>, %j: tensor<i64>"),
            x,
            &format!(
                "stablehlo.dynamic_update_slice %x, %u, %i, %j : ({x}, tensor<2x3xf32>, tensor<i64>, tensor<i64>) -> {x}"
            ),
        );
        for body in [
            "stablehlo.return %b : tensor<f32>",
            "%s = stablehlo.maximum %b, %a : tensor<f32>\nstablehlo.return %s : tensor<f32>",
            "%h = stablehlo.constant dense<0.5> : tensor<f32>\n%s = stablehlo.multiply %a, %h : tensor<f32>\n%t = stablehlo.subtract %s, %b : tensor<f32>\nstablehlo.return %t : tensor<f32>",
        ] {
            same(
                &format!("%x: {x}, %i: tensor<4x1xi64>, %u: tensor<4x5xf32>"),
                x,
                &format!(
                    "\"stablehlo.scatter\"(%x, %i, %u) <{{{SCATTER}}}> ({{\n{REGION}\n{body}\n}}) : ({x}, tensor<4x1xi64>, tensor<4x5xf32>) -> {x}"
                ),
            );
        }
    }

    #[test]
    fn sorts_and_reductions() {
        let (x, y) = ("tensor<4x9xf32>", "tensor<4x9xi32>");
        for body in [
            "%p = stablehlo.compare GT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>\nstablehlo.return %p : tensor<i1>",
            "%p = stablehlo.compare LE, %c, %d : (tensor<i32>, tensor<i32>) -> tensor<i1>\nstablehlo.return %p : tensor<i1>",
        ] {
            same(
                &format!("%x: {x}, %y: {y}"),
                &format!("{x}, {y}"),
                &format!(
                    "\"stablehlo.sort\"(%x, %y) <{{dimension = -1 : i64}}> ({{\n^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<i32>, %d: tensor<i32>):\n{body}\n}}) : ({x}, {y}) -> ({x}, {y})"
                ),
            );
        }
        same(
            &format!("%x: {x}, %y: {y}, %v: tensor<f32>, %w: tensor<i32>"),
            "tensor<4xf32>, tensor<4xi32>",
            &format!(
                "stablehlo.reduce(%x init: %v), (%y init: %w) across dimensions = [1] : ({x}, {y}, tensor<f32>, tensor<i32>) -> (tensor<4xf32>, tensor<4xi32>)
     reducer(%a: tensor<f32>, %c: tensor<f32>) (%b: tensor<i32>, %d: tensor<i32>) {{
      %p = stablehlo.compare GE, %a, %c : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %s = stablehlo.select %p, %a, %c : tensor<i1>, tensor<f32>
      %t = stablehlo.select %p, %b, %d : tensor<i1>, tensor<i32>
      stablehlo.return %s, %t : tensor<f32>, tensor<i32>
    }}"
            ),
        );
    }

    #[test]
    fn windows_and_products_of_integers() {
        let (x, s) = ("tensor<1x6x6x2xf32>", "tensor<1x3x3x2xf32>");
        same(
            &format!("%x: {x}, %s: {s}, %z: tensor<f32>"),
            x,
            &format!(
                "\"stablehlo.select_and_scatter\"(%x, %s, %z) <{{window_dimensions = array<i64: 1, 3, 3, 1>, window_strides = array<i64: 1, 2, 2, 1>, padding = dense<[[0, 0], [1, 0], [0, 1], [0, 0]]> : tensor<4x2xi64>}}> ({{
    {REGION}
      %p = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    }}, {{
    {REGION}
      %t = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %t : tensor<f32>
    }}) : ({x}, {s}, tensor<f32>) -> {x}"
            ),
        );
        same(
            "%x: tensor<3x4x5xi8>, %y: tensor<5x3x2xi8>",
            "tensor<3x4x2xi32>",
            "stablehlo.dot_general %x, %y, batching_dims = [0] x [1], contracting_dims = [2] x [0] : (tensor<3x4x5xi8>, tensor<5x3x2xi8>) -> tensor<3x4x2xi32>",
        );
    }
}

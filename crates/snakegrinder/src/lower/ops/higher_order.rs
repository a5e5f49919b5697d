//! Operators that call other graphs.

use warpforge_ir::attr::{Attribute, ComparisonDirection};
use warpforge_ir::{ElementType, OpKind, RegionId, Type, ValueId};
use warpforge_tensor::Scalar;

use super::Outcome;
use crate::graph::schema::{Argument, Graph};
use crate::graph::size::Size;
use crate::lower::args::Args;
use crate::lower::cx::Cx;
use crate::lower::graph::{Walk, declared};
use crate::lower::refusal::{Lowered, Refusal, refuse};
use crate::lower::report::Report;
use crate::lower::value::{Number, Tensor, Value, value_type};

/// A call of a higher-order operator.
pub(crate) struct Call<'c, 'a> {
    /// The arguments; they have positions only.
    pub(crate) args: &'c Args<'a>,
    /// Where nodes of the inner graph that cannot be lowered go.
    pub(crate) report: &'c mut Report,
    /// How deep the inner graph is.
    pub(crate) depth: usize,
}

type Lower = fn(&mut Cx<'_>, &mut Call<'_, '_>) -> Lowered<Outcome>;

/// A higher-order operator.
pub(super) struct HigherOrder {
    /// Its name.
    pub(super) name: &'static str,
    lower: Lower,
}

const fn op(name: &'static str, lower: Lower) -> HigherOrder {
    HigherOrder { name, lower }
}

/// The higher-order operators that there are lowerings of.
pub(super) const TABLE: &[HigherOrder] = &[
    op("higher_order.cond", cond),
    op("higher_order.scan", scan),
    op("higher_order.while_loop", while_loop),
    op("higher_order.wrap_with_autocast", autocast),
    op("higher_order.wrap_with_set_grad_enabled", set_grad_enabled),
];

/// Finds the lowering of a higher-order operator.
pub(crate) fn lookup(target: &str) -> Option<Lower> {
    TABLE.iter().find(|op| op.name == target).map(|op| op.lower)
}

/// `(enabled, graph, *args)`: gradients are explicit in the graph, so the mode changes nothing.
fn set_grad_enabled(cx: &mut Cx<'_>, call: &mut Call<'_, '_>) -> Lowered<Outcome> {
    inline(cx, call, 1)
}

/// `(device, dtype, enabled, cache_enabled, graph, *args)`.
fn autocast(cx: &mut Cx<'_>, call: &mut Call<'_, '_>) -> Lowered<Outcome> {
    match call.args.at(2) {
        Some(Value::Number(Number::Bool(false))) => inline(cx, call, 4),
        _ => refuse("autocast changes the types of the operations inside; export with `run_decompositions`"),
    }
}

/// Lowers the graph at a position with the arguments after it, in place.
fn inline(cx: &mut Cx<'_>, call: &mut Call<'_, '_>, position: usize) -> Lowered<Outcome> {
    let graph = graph_at(call.args, position)?;
    let given = (position + 1..call.args.len()).filter_map(|at| call.args.at(at).cloned()).collect();
    walked(cx, call, graph, given)
}

/// `(predicate, graph, graph, operands)`: an `if`; a predicate that is known chooses its graph now.
fn cond(cx: &mut Cx<'_>, call: &mut Call<'_, '_>) -> Lowered<Outcome> {
    let operands: Vec<Value> = tensors_at(call.args, 3)?.into_iter().map(Value::Tensor).collect();
    let predicate = match call.args.at(0) {
        Some(Value::Number(Number::Bool(taken))) => {
            let graph = graph_at(call.args, if *taken { 1 } else { 2 })?;
            return walked(cx, call, graph, operands);
        }
        Some(Value::Tensor(tensor) | Value::Number(Number::Computed(tensor))) => tensor.clone(),
        Some(other) => return refuse(format!("the predicate is {}", other.kind())),
        None => return refuse("the predicate is missing"),
    };
    let predicate = truth(cx, &predicate)?;
    let mut kinds: Option<Vec<Tensor>> = None;
    let mut regions = Vec::new();
    for position in [1, 2] {
        let graph = graph_at(call.args, position)?;
        regions.push(region(cx, &[], |cx, _| {
            let given = call_graph(cx, call, graph, operands.clone())?;
            let ids = given.iter().map(|tensor| tensor.id).collect();
            kinds.get_or_insert(given);
            Ok(ids)
        })?);
    }
    let kinds = kinds.unwrap_or_default();
    let types: Vec<Type> = kinds.iter().map(|kind| value_type(kind.dtype, &kind.dims)).collect();
    let op = cx.b.create(OpKind::If, &[predicate.id], [], regions, Some(&types))?;
    Ok(results(cx, op, &kinds).into_iter().map(Value::Tensor).collect())
}

/// `(condition, body, carried, additional)`: a `while`; the additional tensors do not change.
fn while_loop(cx: &mut Cx<'_>, call: &mut Call<'_, '_>) -> Lowered<Outcome> {
    let (condition, body) = (graph_at(call.args, 0)?, graph_at(call.args, 1)?);
    let (carried, additional) = (tensors_at(call.args, 2)?, tensors_at(call.args, 3)?);
    let given = |values: Vec<Tensor>| -> Vec<Value> {
        values.into_iter().chain(additional.iter().cloned()).map(Value::Tensor).collect()
    };
    let types: Vec<Type> = carried.iter().map(|tensor| value_type(tensor.dtype, &tensor.dims)).collect();
    let condition = region(cx, &types, |cx, values| {
        let values = named(&carried, values);
        let holds = call_graph(cx, call, condition, given(values))?;
        match holds.as_slice() {
            [holds] => Ok(vec![truth(cx, holds)?.id]),
            _ => refuse("the condition of the loop gives more than one value"),
        }
    })?;
    let body = region(cx, &types, |cx, values| {
        let values = named(&carried, values);
        let next = call_graph(cx, call, body, given(values))?;
        carried_on(&carried, &next)
    })?;
    let ids: Vec<ValueId> = carried.iter().map(|tensor| tensor.id).collect();
    let op = cx.b.create(OpKind::While, &ids, [], vec![condition, body], Some(&types))?;
    Ok(results(cx, op, &carried).into_iter().map(Value::Tensor).collect())
}

/// `(graph, carried, inputs, additional)`: a `while` that counts along the first dimension of the inputs. The graph takes what is
/// carried, a slice of each input and the additional tensors; it gives what is carried on and a slice of each output.
fn scan(cx: &mut Cx<'_>, call: &mut Call<'_, '_>) -> Lowered<Outcome> {
    let graph = graph_at(call.args, 0)?;
    let (carried, inputs) = (tensors_at(call.args, 1)?, tensors_at(call.args, 2)?);
    let additional = tensors_at(call.args, 3)?;
    let Some(length) = inputs.first().and_then(|input| input.dims.first().cloned()) else {
        return refuse("it scans along nothing");
    };
    let mut state = vec![cx.splat(ElementType::I64, &[], Scalar::Int(0))?];
    state.extend(carried.iter().cloned());
    for output in graph.outputs.iter().skip(carried.len()) {
        let Argument::AsTensor(name) = output else { return refuse("a slice of an output is no tensor") };
        let meta = graph.tensor_values.get(&name.name);
        let meta = meta.ok_or_else(|| Refusal(format!("nothing is recorded about `{}`", name.name)))?;
        let (dtype, dims) = declared(cx, meta)?;
        let whole: Vec<Size> = std::iter::once(length.clone()).chain(dims).collect();
        state.push(cx.splat(dtype, &whole, Scalar::zero(dtype))?);
    }
    let types: Vec<Type> = state.iter().map(|tensor| value_type(tensor.dtype, &tensor.dims)).collect();
    let condition = region(cx, &types, |cx, values| {
        let at = named(&state, values).swap_remove(0);
        let end = cx.size_value(&length)?;
        Ok(vec![cx.compare(ComparisonDirection::Lt, &at, &end)?.id])
    })?;
    let body = region(cx, &types, |cx, values| {
        let now = named(&state, values);
        let (at, rest) = (&now[0], &now[1..]);
        let (carried, outputs) = rest.split_at(carried.len());
        let mut given: Vec<Value> = carried.iter().cloned().map(Value::Tensor).collect();
        for input in &inputs {
            given.push(Value::Tensor(slice_at(cx, input, at)?));
        }
        given.extend(additional.iter().cloned().map(Value::Tensor));
        let made = call_graph(cx, call, graph, given)?;
        if made.len() != rest.len() {
            return refuse("the graph it calls gives another number of values");
        }
        let (next, slices) = made.split_at(carried.len());
        let one = cx.splat(ElementType::I64, &[], Scalar::Int(1))?;
        let mut ids = vec![cx.add(at, &one)?.id];
        ids.extend(carried_on(carried, next)?);
        for (whole, slice) in outputs.iter().zip(slices) {
            ids.push(put_at(cx, whole, slice, at)?);
        }
        Ok(ids)
    })?;
    let ids: Vec<ValueId> = state.iter().map(|tensor| tensor.id).collect();
    let op = cx.b.create(OpKind::While, &ids, [], vec![condition, body], Some(&types))?;
    Ok(results(cx, op, &state).into_iter().skip(1).map(Value::Tensor).collect())
}

/// A slice of the first dimension, without that dimension.
fn slice_at(cx: &mut Cx<'_>, whole: &Tensor, at: &Tensor) -> Lowered<Tensor> {
    let dims = whole.dims.get(1..).unwrap_or_default().to_vec();
    let mut sizes = cx.known(&dims)?;
    sizes.insert(0, 1);
    let mut operands = vec![whole.id];
    operands.extend(starts(cx, at, dims.len())?);
    let id = cx.b.op(OpKind::DynamicSlice, &operands, [("slice_sizes", Attribute::i64s(sizes))])?;
    let one: Vec<Size> = std::iter::once(Size::Int(1)).chain(dims.iter().cloned()).collect();
    let slice = cx.tensor(id, whole.dtype, one);
    cx.reshape(&slice, &dims)
}

/// A tensor with a slice of its first dimension replaced.
fn put_at(cx: &mut Cx<'_>, whole: &Tensor, slice: &Tensor, at: &Tensor) -> Lowered<ValueId> {
    let row = cx.unsqueeze(slice, 0)?;
    let mut operands = vec![whole.id, row.id];
    operands.extend(starts(cx, at, slice.rank())?);
    let ty = value_type(whole.dtype, &whole.dims);
    Ok(cx.b.op_as(OpKind::DynamicUpdateSlice, &operands, [], ty)?)
}

/// The start of a slice of the first dimension: an index, and zero for each other dimension.
fn starts(cx: &mut Cx<'_>, at: &Tensor, others: usize) -> Lowered<Vec<ValueId>> {
    let zero = cx.splat(ElementType::I64, &[], Scalar::Int(0))?;
    Ok(std::iter::once(at.id).chain(std::iter::repeat_n(zero.id, others)).collect())
}

/// A region whose block has arguments of these types, and what `body` builds in it.
fn region<'m>(
    cx: &mut Cx<'m>,
    types: &[Type],
    body: impl FnOnce(&mut Cx<'m>, &[ValueId]) -> Lowered<Vec<ValueId>>,
) -> Lowered<RegionId> {
    let module = cx.b.module_mut();
    let region = module.create_region();
    let block = module.add_block(region);
    let values: Vec<ValueId> = types.iter().map(|ty| module.add_argument(block, ty.clone())).collect();
    let outer = cx.b.set_block(block);
    let built = body(cx, &values).and_then(|ids| Ok(cx.b.create(OpKind::Return, &ids, [], vec![], None)?));
    cx.b.set_block(outer);
    built.map(|_| region)
}

/// Lowers a graph whose arguments stay as they are, for its tensors.
fn call_graph(
    cx: &mut Cx<'_>,
    call: &mut Call<'_, '_>,
    graph: &Graph,
    given: Vec<Value>,
) -> Lowered<Vec<Tensor>> {
    let mut variables = Vec::new();
    let mut copies = Vec::new();
    for value in given {
        let Value::Tensor(tensor) = value else { return refuse("it hands on something that is no tensor") };
        let copy = cx.variables.own(&tensor.fresh());
        variables.extend(copy.var);
        copies.push(Value::Tensor(copy));
    }
    let given = walked(cx, call, graph, copies)?;
    if variables.iter().any(|&var| cx.variables.is_written(var)) {
        return refuse("the graph it calls writes to its arguments");
    }
    let tensors = given.into_iter().map(|value| match value {
        Value::Tensor(tensor) => Ok(tensor.fresh()),
        other => refuse(format!("the graph it calls gives {}", other.kind())),
    });
    tensors.collect()
}

/// Lowers a graph here, with its inputs bound to values, for its outputs.
fn walked(cx: &mut Cx<'_>, call: &mut Call<'_, '_>, graph: &Graph, given: Vec<Value>) -> Lowered<Outcome> {
    let mut walk = Walk::new(graph);
    if graph.inputs.len() != given.len() {
        return refuse("the graph it calls takes another number of arguments");
    }
    for (input, value) in graph.inputs.iter().zip(given) {
        match input {
            Argument::AsTensor(name) => walk.bind(&name.name, value),
            Argument::AsSymInt(crate::graph::schema::SymIntArgument::AsName(name)) => walk.bind(name, value),
            _ => {}
        }
    }
    walk.run(cx, call.report, call.depth);
    graph.outputs.iter().map(|output| walk.value(cx, output)).collect()
}

/// What a loop carries on, each value of the type that it had.
fn carried_on(before: &[Tensor], after: &[Tensor]) -> Lowered<Vec<ValueId>> {
    let same = |(old, new): (&Tensor, &Tensor)| old.dtype == new.dtype && old.dims == new.dims;
    if before.len() != after.len() || !before.iter().zip(after).all(same) {
        return refuse("a value that the loop carries changes its type or its sizes");
    }
    Ok(after.iter().map(|tensor| tensor.id).collect())
}

/// Values as tensors of the kinds of others.
fn named(kinds: &[Tensor], values: &[ValueId]) -> Vec<Tensor> {
    kinds.iter().zip(values).map(|(kind, &id)| Tensor { id, ..kind.fresh() }).collect()
}

/// The results of an operation as tensors of the kinds of others.
fn results(cx: &Cx<'_>, op: warpforge_ir::OpId, kinds: &[Tensor]) -> Vec<Tensor> {
    named(kinds, &cx.b.results(op))
}

/// One truth value as a tensor of no dimensions.
fn truth(cx: &mut Cx<'_>, tensor: &Tensor) -> Lowered<Tensor> {
    let tensor = cx.convert(tensor, ElementType::Bool)?;
    if tensor.rank() == 0 { Ok(tensor) } else { cx.reshape(&tensor, &[]) }
}

fn tensors_at(args: &Args<'_>, position: usize) -> Lowered<Vec<Tensor>> {
    let tensors = match args.at(position) {
        None | Some(Value::None) => Some(Vec::new()),
        Some(Value::Tensors(tensors)) => tensors.iter().cloned().collect(),
        Some(_) => None,
    };
    tensors.ok_or_else(|| Refusal(format!("argument {position} is no list of tensors")))
}

fn graph_at<'a>(args: &Args<'a>, position: usize) -> Lowered<&'a Graph> {
    args.at(position);
    match args.node.inputs.get(position).map(|input| &input.arg) {
        Some(Argument::AsGraph(argument)) => Ok(&argument.graph),
        _ => refuse("the graph it calls is missing"),
    }
}

//! A function of a module as a graph.

mod complex;
mod contraction;
mod element;
mod fourier;
mod indexing;
mod op_by_op;
mod reduce;
mod region;
mod sizes;

use std::collections::HashMap;
use std::sync::Arc;

use contraction::{convolution, dot_of, reduce_window, window};
use element::{fast, multiplied, storage};
pub use op_by_op::OpSpan;
pub(crate) use op_by_op::{OpByOp, import_op_by_op};
pub use reduce::reduce_kind;
use reduce::with_initial;
use sizes::{signed, sizes};
use thiserror::Error;
use warpforge_ir::attr::ElementData;
use warpforge_ir::calls::KnownCall;
use warpforge_ir::slice::slice;
use warpforge_ir::table::OpDef;
use warpforge_ir::{Func, OpKind, OpRef, ValueId};
use warpforge_tensor::elementwise::Function;
use warpforge_tensor::{ElementType, Shape, Tensor};

use super::build::Builder;
use super::op::{Dot, Op, OpaqueOp};
use super::scalar::comparison_type;
use super::{Graph, NodeId, ValueSource};
use crate::view::LayoutOp;

/// Deepest nesting of calls.
const DEEPEST_CALLS: usize = 64;

/// Most operations of a function after its calls are inlined. They can be exponentially many in those of the module.
const MOST_INLINED_OPS: u64 = 1 << 20;

/// Why a function has no graph.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ImportError {
    /// It is no graph of tensors, or has something that a device cannot run: what stands in the way. The reference runs it as a whole.
    #[error("{0}")]
    Unsupported(String),
    /// It is too large for anything to run it.
    #[error("the calls in it add up to more than {most} operations")]
    TooManyOps {
        /// The function.
        function: String,
        /// The most that it may have.
        most: u64,
    },
}

fn not(reason: impl Into<String>) -> ImportError {
    ImportError::Unsupported(reason.into())
}

/// Refuses a function whose calls add up to too much, before anything is inlined.
fn check_size(func: Func<'_>) -> Result<()> {
    let (function, most) = (func.name().to_owned(), MOST_INLINED_OPS);
    match func.op().module().inlined_op_count(&function) > most {
        true => Err(ImportError::TooManyOps { function, most }),
        false => Ok(()),
    }
}

type Result<T> = std::result::Result<T, ImportError>;

/// The graph of a function. `weights` are the arguments that are known while compiling.
///
/// # Errors
///
/// When the function has values that are no tensors of known sizes, or calls that add up to too many operations.
pub(crate) fn import(func: Func<'_>, weights: &dyn Fn(usize) -> Option<Tensor>) -> Result<Graph> {
    check_size(func)?;
    let graph = import_with(func, weights, ComplexNumbers::AsPairs)?;
    // A complex number that something takes as a whole, such as a result of the function.
    if graph.nodes.iter().any(|node| matches!(node.op, Op::Complex)) {
        return import_with(func, weights, ComplexNumbers::Opaque);
    }
    Ok(graph)
}

/// What becomes of complex numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ComplexNumbers {
    /// Their parts are nodes.
    AsPairs,
    /// The reference computes with them.
    Opaque,
}

fn import_with(
    func: Func<'_>,
    weights: &dyn Fn(usize) -> Option<Tensor>,
    complex: ComplexNumbers,
) -> Result<Graph> {
    let mut import = Import { complex, ..Import::new(Builder::default()) };
    let module = func.op().module();
    let mut values = HashMap::new();
    let mut given = 0;
    for (at, &argument) in func.arguments().iter().enumerate() {
        let id = match weights(at) {
            Some(weight) => import.builder.constant(weight),
            None => {
                let (element, dims) = storage(module.value_type(argument))
                    .ok_or_else(|| not(format!("argument {at} is no tensor of known sizes")))?;
                given += 1;
                import.builder.raw(Op::Argument(given - 1), vec![], element, dims)
            }
        };
        values.insert(argument, id);
    }
    let outputs = import.body(func, values, 0)?;
    import.builder.set_values(import.values);
    Ok(import.builder.finish(outputs, import.effects))
}

struct Import {
    builder: Builder,
    complex: ComplexNumbers,
    effects: Vec<NodeId>,
    /// The values of the entry function so far.
    values: Vec<ValueSource>,
}

type Values = HashMap<ValueId, NodeId>;

/// The operations of a function that is called at some depth.
fn ops_of(func: Func<'_>, depth: usize) -> Result<impl Iterator<Item = OpRef<'_>>> {
    let block = func.body().ok_or_else(|| not(format!("@{} has no body", func.name())))?;
    if depth > DEEPEST_CALLS {
        return Err(not("calls are nested too deeply"));
    }
    Ok(func.op().module().ops_in(block))
}

impl Import {
    fn new(builder: Builder) -> Self {
        Self { builder, complex: ComplexNumbers::Opaque, effects: Vec::new(), values: Vec::new() }
    }

    fn body(&mut self, func: Func<'_>, mut values: Values, depth: usize) -> Result<Vec<NodeId>> {
        for op in ops_of(func, depth)? {
            if op.def().is_some_and(OpDef::is_terminator) {
                return inputs(op, &values);
            }
            self.builder.origin = Some(op.id());
            let results = self.op(func, op, &values, depth)?;
            if depth == 0 {
                let held = op.results().zip(&results).map(|(value, &node)| ValueSource::new(value, node));
                self.values.extend(held);
            }
            values.extend(op.results().zip(results));
        }
        Err(not(format!("@{} does not return", func.name())))
    }

    fn op(&mut self, func: Func<'_>, op: OpRef<'_>, values: &Values, depth: usize) -> Result<Vec<NodeId>> {
        if let Some(callee) = op.callee() {
            let given = inputs(op, values)?;
            return self.body(callee, callee.arguments().iter().copied().zip(given).collect(), depth + 1);
        }
        if op.is(OpKind::OptimizationBarrier) {
            return inputs(op, values);
        }
        for ty in op.operand_types().chain(op.result_types()) {
            if storage(ty).is_none() {
                return Err(not(format!("{} has a value of type {ty}", op.name())));
            }
        }
        if self.complex == ComplexNumbers::AsPairs
            && let Some(id) = complex::of_parts(&mut self.builder, op, &inputs(op, values)?)
        {
            return Ok(vec![id]);
        }
        let takes = if op.is(OpKind::DotGeneral) || op.is(OpKind::Dot) { multiplied } else { fast };
        if op.operand_types().chain(op.result_types()).all(|ty| takes(ty).is_some()) {
            if let Some(id) = self.known(op, values) {
                return Ok(vec![id]);
            }
            if let Some(ids) = indexing::tuple(&mut self.builder, op, inputs(op, values)?) {
                return Ok(ids);
            }
        }
        self.reference(func, op, values)
    }

    /// An operation that the graph has a form for.
    fn known(&mut self, op: OpRef<'_>, values: &Values) -> Option<NodeId> {
        if op.result_count() != 1 {
            return None;
        }
        let (element, dims) = storage(op.result_type(0)?)?;
        lowered(&mut self.builder, op, inputs(op, values).ok()?, element, dims)
    }

    fn reference(&mut self, func: Func<'_>, op: OpRef<'_>, values: &Values) -> Result<Vec<NodeId>> {
        let wanted: Vec<ValueId> = op.results().collect();
        let name = op.name().to_owned();
        if wanted.is_empty() {
            return Err(not(format!("{name} is run for what it does")));
        }
        let cut = slice(func, &wanted, &|_| true).ok_or_else(|| not(format!("{name} cannot be cut out")))?;
        let given: Option<Vec<NodeId>> = cut.inputs.iter().map(|value| values.get(value).copied()).collect();
        let given = given.ok_or_else(|| not(format!("{name} uses a value that is no tensor")))?;
        let place = |value: &ValueId| cut.inputs.iter().position(|input| input == value);
        let operands: Option<Vec<usize>> = op.operands().iter().map(place).collect();
        let operands = operands.unwrap_or_default();
        let part = OpaqueOp { name, slice: cut, function: func.name().to_owned(), operands };
        let node = self.builder.raw(Op::Opaque(Arc::new(part)), given, ElementType::Bool, vec![0]);
        if op.is(OpKind::CustomCall) && op.attr_bool("has_side_effect") == Some(true) {
            self.effects.push(node);
        }
        indexing::results(&mut self.builder, op, node).ok_or_else(|| not("a result is no tensor"))
    }
}

/// An operation with one result, of nodes that need not be of the types that the module says, in the graph's form for it.
fn lowered(
    b: &mut Builder,
    op: OpRef<'_>,
    given: Vec<NodeId>,
    element: ElementType,
    dims: Vec<usize>,
) -> Option<NodeId> {
    let kind = op.kind()?;
    Some(match kind {
        OpKind::Constant => constant(b, op, dims)?,
        OpKind::Iota => {
            b.add(Op::Iota(usize::try_from(op.attr_i64("iota_dimension")?).ok()?), vec![], element, dims)
        }
        OpKind::Compare => {
            let (a, c) = (*given.first()?, *given.get(1)?);
            let order = op.attr_enum("compare_type");
            let order = order.unwrap_or_else(|| comparison_type(b.node(a).element));
            b.compare(op.attr_enum("comparison_direction")?, order, a, c)
        }
        OpKind::Clamp => {
            let [low, value, high] = given[..] else { return None };
            let [low, high] = [low, high].map(|bound| spread(b, bound, &dims));
            let raised = b.map(Function::Maximum, vec![value, low]);
            b.map(Function::Minimum, vec![raised, high])
        }
        OpKind::Select => {
            let [condition, yes, no] = given[..] else { return None };
            let condition = spread(b, condition, &dims);
            b.add(Op::Elementwise(Function::Select), vec![condition, yes, no], element, dims)
        }
        OpKind::Reshape => b.reshape(*given.first()?, dims),
        OpKind::Transpose => b.transpose(*given.first()?, sizes(op.attr_i64s("permutation")?)?),
        OpKind::BroadcastInDim => {
            b.broadcast(*given.first()?, dims, &sizes(op.attr_i64s("broadcast_dimensions")?)?)
        }
        OpKind::Slice => {
            let steps = sizes(op.attr_i64s("strides")?)?;
            let starts = sizes(op.attr_i64s("start_indices")?)?;
            let step = LayoutOp::Slice { starts, steps, dims: dims.clone() };
            b.add(Op::Layout(step), given, element, dims)
        }
        OpKind::Reverse => {
            let step = LayoutOp::Reverse(sizes(op.attr_i64s("dimensions")?)?);
            b.add(Op::Layout(step), given, element, dims)
        }
        OpKind::Concatenate => {
            let given: Vec<NodeId> = given.into_iter().filter(|&id| !b.node(id).is_empty()).collect();
            match given[..] {
                [one] => one,
                [] => return None,
                _ => {
                    let axis = usize::try_from(op.attr_i64("dimension")?).ok()?;
                    b.add(Op::Concat(axis), given, element, dims)
                }
            }
        }
        OpKind::Pad => {
            let low = signed(op.attr_i64s("edge_padding_low")?);
            let high = signed(op.attr_i64s("edge_padding_high")?);
            let interior = sizes(op.attr_i64s("interior_padding")?)?;
            b.add(Op::Pad { low, high, interior }, given, element, dims)
        }
        OpKind::Reduce => {
            let kind = reduce_kind(op)?;
            let [input, init] = given[..] else { return None };
            let axes = sizes(op.attr_i64s("dimensions")?)?;
            if b.node(input).is_empty() {
                return Some(b.broadcast(init, dims, &[]));
            }
            let reduced = b.add(Op::Reduce(kind, axes), vec![input], element, dims.clone());
            with_initial(b, kind, reduced, init, dims)?
        }
        OpKind::ReduceWindow => {
            let kind = reduce_kind(op)?;
            let [input, init] = given[..] else { return None };
            let Op::Constant(init) = b.node(init).op.clone() else { return None };
            let window = window(op)?;
            reduce_window(b, (kind, init), window, input, element, dims)
        }
        OpKind::DotGeneral => {
            let numbers = op.dot_dims()?;
            let dot = Dot {
                lhs_batch: sizes(&numbers.lhs_batching)?,
                rhs_batch: sizes(&numbers.rhs_batching)?,
                lhs_contract: sizes(&numbers.lhs_contracting)?,
                rhs_contract: sizes(&numbers.rhs_contracting)?,
                ..Dot::default()
            };
            dot_of(b, dot, &given, element, dims)?
        }
        OpKind::Dot => {
            let rank = b.node(*given.first()?).dims.len();
            let contract = rank.checked_sub(1)?;
            let dot = Dot { lhs_contract: vec![contract], rhs_contract: vec![0], ..Dot::default() };
            dot_of(b, dot, &given, element, dims)?
        }
        OpKind::Convolution => convolution(b, op, &given, element, &dims)?,
        OpKind::Gather => {
            let gather = Op::Gather(op.gather_dims()?.clone(), sizes(op.attr_i64s("slice_sizes")?)?);
            b.add(gather, given, element, dims)
        }
        OpKind::Scatter => indexing::scatter(b, op, given, element, dims)?,
        OpKind::DynamicSlice => indexing::dynamic_slice(b, given, element, dims)?,
        OpKind::DynamicUpdateSlice => indexing::dynamic_update_slice(b, given, element, dims)?,
        OpKind::SelectAndScatter => indexing::select_and_scatter(b, op, given, element, dims)?,
        OpKind::CustomCall => b.add(Op::Call(KnownCall::of(op)?), given, element, dims),
        _ => b.add(Op::Elementwise(Function::of_op(kind.name())?), given, element, dims),
    })
}

fn inputs(op: OpRef<'_>, values: &Values) -> Result<Vec<NodeId>> {
    let known = |value: &ValueId| {
        values.get(value).copied().ok_or_else(|| not(format!("{} uses an unknown value", op.name())))
    };
    op.operands().iter().map(known).collect()
}

/// A constant; a splat is a scalar that repeats.
fn constant(b: &mut Builder, op: OpRef<'_>, dims: Vec<usize>) -> Option<NodeId> {
    let elements = op.attr_elements("value")?;
    let element = elements.ty().element().plain()?;
    match elements.data() {
        ElementData::Splat(bytes) => {
            let one = b.constant(Tensor::from_bytes(element, Shape::scalar(), bytes).ok()?);
            Some(b.broadcast(one, dims, &[]))
        }
        ElementData::Raw(bytes) => {
            Some(b.constant(Tensor::from_blob(element, Shape::new(dims).ok()?, bytes.clone()).ok()?))
        }
        ElementData::Resource(_) => None,
    }
}

/// A scalar in these dimensions; anything else as it is.
fn spread(b: &mut Builder, id: NodeId, dims: &[usize]) -> NodeId {
    if b.node(id).dims.is_empty() && !dims.is_empty() { b.broadcast(id, dims.to_vec(), &[]) } else { id }
}

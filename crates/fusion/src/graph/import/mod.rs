//! A function of a module as a graph.

mod complex;
mod contraction;
mod element;
mod fourier;
mod indexing;
mod lowered;
mod op_by_op;
mod pair;
mod quantized;
mod reduce;
mod region;
mod sizes;

use std::collections::HashMap;
use std::sync::Arc;

use element::{fast, fast_or_float8, multiplied, storage};
use lowered::lowered;
pub use op_by_op::OpSpan;
pub(crate) use op_by_op::{OpByOp, import_op_by_op};
pub use reduce::reduce_kind;
use thiserror::Error;
use warpforge_ir::slice::slice;
use warpforge_ir::table::OpDef;
use warpforge_ir::{Func, OpKind, OpRef, ValueId};
use warpforge_tensor::{ElementType, Tensor};

use super::build::Builder;
use super::op::{Op, OpaqueOp};
use super::{Graph, NodeId, ValueSource};

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

/// The graph of a function, for a device without kernels for floats of 8 bits.
#[cfg(test)]
pub(crate) fn import(func: Func<'_>, weights: &dyn Fn(usize) -> Option<Tensor>) -> Result<Graph> {
    import_for(func, weights, false)
}

/// The graph of a function. `weights` are the arguments that are known while compiling. Where a device has no kernels for floats of 8 bits,
/// the reference computes with them.
///
/// # Errors
///
/// When the function has values that are no tensors of known sizes, or calls that add up to too many operations.
pub(crate) fn import_for(
    func: Func<'_>,
    weights: &dyn Fn(usize) -> Option<Tensor>,
    float8: bool,
) -> Result<Graph> {
    check_size(func)?;
    let graph = import_with(func, weights, ComplexNumbers::AsPairs, float8)?;
    // A complex number that something takes as a whole, such as a result of the function.
    if graph.nodes.iter().any(|node| matches!(node.op, Op::Complex)) {
        return import_with(func, weights, ComplexNumbers::Opaque, float8);
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
    float8: bool,
) -> Result<Graph> {
    let mut import = Import { complex, float8, ..Import::new(Builder::default()) };
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
    /// Whether the graph's operations take floats of 8 bits.
    float8: bool,
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
        let (effects, values) = (Vec::new(), Vec::new());
        Self { builder, complex: ComplexNumbers::Opaque, float8: false, effects, values }
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
        if quantized::is_quantized(op) {
            return match quantized::of_quantized(&mut self.builder, op, inputs(op, values)?) {
                Some(id) => Ok(vec![id]),
                None => self.reference(func, op, values),
            };
        }
        let takes = match op.is(OpKind::DotGeneral) || op.is(OpKind::Dot) {
            true => multiplied,
            false if self.float8 => fast_or_float8,
            false => fast,
        };
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

fn inputs(op: OpRef<'_>, values: &Values) -> Result<Vec<NodeId>> {
    let known = |value: &ValueId| {
        values.get(value).copied().ok_or_else(|| not(format!("{} uses an unknown value", op.name())))
    };
    op.operands().iter().map(known).collect()
}

//! Walking the nodes of a graph.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;

use super::args::Args;
use super::cx::Cx;
use super::ops::{self, Found, Outcome};
use super::refusal::{Lowered, Refusal, refuse};
use super::report::Report;
use super::value::{Number, Tensor, Value};
use crate::graph::schema::{
    Argument, Graph, Node, OptionalTensor, SymBoolArgument, SymFloatArgument, SymIntArgument, TensorMeta,
};
use crate::graph::size::Size;
use crate::graph::{Source, element_type};

/// The values of a graph by name, and what could not be lowered.
pub(crate) struct Walk<'a> {
    graph: &'a Graph,
    uses: Rc<HashSet<&'a str>>,
    scope: HashMap<&'a str, Value>,
}

/// The names that nodes of a graph and its outputs use. Inner graphs name their own values.
fn uses(graph: &Graph) -> HashSet<&str> {
    let inputs = graph.nodes.iter().flat_map(|node| node.inputs.iter().map(|input| &input.arg));
    inputs.chain(&graph.outputs).flat_map(names).collect()
}

/// The names that an argument uses.
pub(crate) fn names(argument: &Argument) -> Vec<&str> {
    match argument {
        Argument::AsTensor(name) | Argument::AsOptionalTensor(OptionalTensor::AsTensor(name)) => {
            vec![&name.name]
        }
        Argument::AsTensors(all) => all.iter().map(|name| name.name.as_str()).collect(),
        Argument::AsOptionalTensors(all) => all
            .iter()
            .filter_map(|one| match one {
                OptionalTensor::AsTensor(name) => Some(name.name.as_str()),
                OptionalTensor::AsNone(_) => None,
            })
            .collect(),
        Argument::AsSymInt(SymIntArgument::AsName(name)) => vec![name],
        Argument::AsSymInts(all) => all
            .iter()
            .filter_map(|one| match one {
                SymIntArgument::AsName(name) => Some(name.as_str()),
                SymIntArgument::AsInt(_) => None,
            })
            .collect(),
        _ => Vec::new(),
    }
}

/// Whether PyTorch's decompositions make operations of an operation that all have lowerings. `xtask/aten/decomposed.py` makes the list.
fn decomposes(target: &str) -> bool {
    static LIST: &str = include_str!("decomposed.txt");
    LIST.lines().any(|line| line == target)
}

/// Graphs of higher-order operators may hold others; real ones are a few deep.
const MAX_DEPTH: usize = 32;

impl<'a> Walk<'a> {
    pub(super) fn new(graph: &'a Graph) -> Self {
        Self { graph, uses: Rc::new(uses(graph)), scope: HashMap::new() }
    }

    pub(super) fn bind(&mut self, name: &'a str, value: Value) {
        self.scope.insert(name, value);
    }

    /// Lowers all nodes.
    pub(super) fn run(&mut self, cx: &mut Cx<'_>, report: &mut Report, depth: usize) {
        for node in &self.graph.nodes {
            let name = node_name(node);
            let source = Source::of(&node.metadata);
            let outer = cx.b.set_location(Some(location(name, source.as_ref())));
            if let Err(Refusal(why)) = self.node(cx, report, node, depth) {
                report.add(&node.target, &why, name, source);
                self.replace(cx, node);
            }
            cx.b.set_location(outer);
        }
    }

    fn node(&mut self, cx: &mut Cx<'_>, report: &mut Report, node: &'a Node, depth: usize) -> Lowered<()> {
        for meta in output_names(node).filter_map(|name| self.graph.tensor_values.get(name)) {
            declared(cx, meta)?;
        }
        let target = node.target.strip_prefix("torch.ops.").unwrap_or(&node.target);
        let outcome = if let Some(body) = ops::higher_order::lookup(target) {
            if depth >= MAX_DEPTH {
                return refuse("graphs are nested too deeply");
            }
            let args = self.args(cx, node)?;
            let mut call = ops::higher_order::Call { args: &args, report, depth: depth + 1 };
            body(cx, &mut call)?
        } else {
            self.plain(cx, node, target)?
        };
        self.give(cx, node, outcome)
    }

    fn plain(&mut self, cx: &mut Cx<'_>, node: &'a Node, target: &str) -> Lowered<Outcome> {
        let found = match ops::lookup(target) {
            Some(found) => found,
            None if decomposes(target) => {
                return refuse(
                    "there is no lowering for this operation; PyTorch takes it apart into operations that have one: \
                     export with `python -m warpforge.trace --decompose`, or call `run_decompositions()`",
                );
            }
            None => return refuse("there is no lowering for this operation"),
        };
        let args = self.args(cx, node)?;
        let outcome = match found {
            Found::Value(op) => {
                let outcome = (op.lower)(cx, &args)?;
                if op.aliases { outcome } else { outcome.into_iter().map(fresh).collect() }
            }
            Found::InPlace(op) => {
                let target = args.at(0).cloned();
                let outcome = (op.lower)(cx, &args)?;
                written(cx, target.as_ref(), outcome)?
            }
            Found::Out(op) => {
                let target = args.get("out").cloned();
                let outcome = (op.lower)(cx, &args)?;
                written(cx, target.as_ref(), outcome)?
            }
        };
        match args.unused().as_slice() {
            [] => Ok(outcome),
            unused => refuse(format!("argument(s) `{}` are not understood", unused.join("`, `"))),
        }
    }

    fn args(&mut self, cx: &mut Cx<'_>, node: &'a Node) -> Lowered<Args<'a>> {
        let values = node.inputs.iter().map(|input| Ok((input.name.as_str(), self.value(cx, &input.arg)?)));
        Ok(Args::new(self.graph, self.uses.clone(), node, values.collect::<Lowered<_>>()?))
    }

    /// The value that an argument stands for.
    pub(super) fn value(&self, cx: &mut Cx<'_>, argument: &Argument) -> Lowered<Value> {
        Ok(match argument {
            Argument::AsNone(_) => Value::None,
            Argument::AsTensor(tensor) => Value::Tensor(self.tensor(cx, &tensor.name)?),
            Argument::AsTensors(tensors) => Value::Tensors(
                tensors
                    .iter()
                    .map(|tensor| self.tensor(cx, &tensor.name).map(Some))
                    .collect::<Lowered<_>>()?,
            ),
            Argument::AsOptionalTensor(tensor) => match self.optional(cx, tensor)? {
                Some(tensor) => Value::Tensor(tensor),
                None => Value::None,
            },
            Argument::AsOptionalTensors(tensors) => Value::Tensors(
                tensors.iter().map(|tensor| self.optional(cx, tensor)).collect::<Lowered<_>>()?,
            ),
            Argument::AsInt(value) => Value::Number(Number::Int(Size::Int(*value))),
            Argument::AsInts(values) => numbers(values, |value| Number::Int(Size::Int(*value))),
            Argument::AsFloat(value) => Value::Number(Number::Float(value.0)),
            Argument::AsFloats(values) => numbers(values, |value| Number::Float(value.0)),
            Argument::AsBool(value) => Value::Number(Number::Bool(*value)),
            Argument::AsBools(values) => numbers(values, |value| Number::Bool(*value)),
            Argument::AsComplex(value) => Value::Number(Number::Complex(value.real.0, value.imag.0)),
            Argument::AsSymInt(value) => Value::Number(self.sym_int(value)?),
            Argument::AsSymInts(values) => {
                Value::Numbers(values.iter().map(|value| self.sym_int(value)).collect::<Lowered<_>>()?)
            }
            Argument::AsSymFloat(value) => Value::Number(self.sym_float(value)?),
            Argument::AsSymFloats(values) => {
                Value::Numbers(values.iter().map(|value| self.sym_float(value)).collect::<Lowered<_>>()?)
            }
            Argument::AsSymBool(value) => self.sym_bool(value)?,
            Argument::AsSymBools(values) => {
                let known = values.iter().map(|value| match self.sym_bool(value)? {
                    Value::Number(number) => Ok(number),
                    other => refuse(format!("a truth value is {}", other.kind())),
                });
                Value::Numbers(known.collect::<Lowered<_>>()?)
            }
            Argument::AsString(text) => Value::Str(text.clone()),
            Argument::AsScalarType(code) => Value::Dtype(element_type(*code).map_err(Refusal)?),
            Argument::AsMemoryFormat(code) => Value::MemoryFormat(*code),
            Argument::AsDevice(device) => Value::Device(device.kind.clone()),
            Argument::AsLayout(layout) => Value::Layout(match layout {
                crate::graph::schema::Layout::Strided => None,
                crate::graph::schema::Layout::Other(code) => Some(format!("code {code}")),
            }),
            Argument::AsGraph(_) => Value::Other("a graph"),
            Argument::AsOperator(_) => Value::Other("an operator"),
            Argument::AsStrings(_) => Value::Other("a list of strings"),
            Argument::AsCustomObj(_) => Value::Other("a custom object"),
            Argument::AsNestedTensors(_) => Value::Other("a list of lists of tensors"),
            Argument::AsIntLists(_) | Argument::AsFloatLists(_) => Value::Other("a list of lists"),
            Argument::AsStringToArgument(_) => Value::Other("a dictionary"),
        })
    }

    fn named(&self, name: &str) -> Lowered<&Value> {
        self.scope
            .get(name)
            .ok_or_else(|| Refusal(format!("it uses `{name}`, which nothing before it gives")))
    }

    fn tensor(&self, cx: &mut Cx<'_>, name: &str) -> Lowered<Tensor> {
        match self.named(name)? {
            Value::Tensor(Tensor { var: Some(var), .. }) => cx.read(*var),
            Value::Tensor(tensor) => Ok(tensor.clone()),
            other => refuse(format!("`{name}` is {} where a tensor is expected", other.kind())),
        }
    }

    fn optional(&self, cx: &mut Cx<'_>, tensor: &OptionalTensor) -> Lowered<Option<Tensor>> {
        match tensor {
            OptionalTensor::AsTensor(tensor) => self.tensor(cx, &tensor.name).map(Some),
            OptionalTensor::AsNone(_) => Ok(None),
        }
    }

    fn number(&self, name: &str) -> Lowered<Number> {
        match self.named(name)? {
            Value::Number(number) => Ok(number.clone()),
            other => refuse(format!("`{name}` is {} where a number is expected", other.kind())),
        }
    }

    fn sym_int(&self, value: &SymIntArgument) -> Lowered<Number> {
        match value {
            SymIntArgument::AsName(name) => self.number(name),
            SymIntArgument::AsInt(value) => Ok(Number::Int(Size::Int(*value))),
        }
    }

    fn sym_float(&self, value: &SymFloatArgument) -> Lowered<Number> {
        match value {
            SymFloatArgument::AsName(name) => self.number(name),
            SymFloatArgument::AsFloat(value) => Ok(Number::Float(value.0)),
        }
    }

    fn sym_bool(&self, value: &SymBoolArgument) -> Lowered<Value> {
        match value {
            SymBoolArgument::AsName(name) => self.named(name).cloned(),
            SymBoolArgument::AsBool(value) => Ok(Value::Number(Number::Bool(*value))),
        }
    }

    /// Binds what a node gives to the names of its outputs.
    fn give(&mut self, cx: &mut Cx<'_>, node: &'a Node, outcome: Outcome) -> Lowered<()> {
        // Operators that give nothing, and those whose only result is None, are written in both ways.
        if outcome.is_empty() && node.outputs.iter().all(|output| matches!(output, Argument::AsNone(_))) {
            return Ok(());
        }
        if outcome.len() != node.outputs.len() {
            return refuse(format!(
                "the lowering gives {} values, the archive has {}",
                outcome.len(),
                node.outputs.len()
            ));
        }
        for (output, value) in node.outputs.iter().zip(&outcome) {
            self.check(cx, output, value)?;
        }
        let outcome = cx.finish(node, &self.uses, outcome)?;
        for (output, value) in node.outputs.iter().zip(outcome) {
            match (output, value) {
                (Argument::AsNone(_), _) => {}
                // A lowering may leave out what nothing uses.
                (Argument::AsTensor(name), Value::None) if !self.uses.contains(name.name.as_str()) => {}
                (Argument::AsSymInt(SymIntArgument::AsName(name)), Value::None)
                    if !self.uses.contains(name.as_str()) => {}
                (Argument::AsTensor(name), Value::Tensor(tensor)) => {
                    self.give_tensor(cx, &name.name, &tensor);
                }
                (Argument::AsTensors(names), Value::Tensors(tensors)) => {
                    for (name, tensor) in names.iter().zip(tensors.iter().flatten()) {
                        self.give_tensor(cx, &name.name, tensor);
                    }
                }
                (Argument::AsSymInt(SymIntArgument::AsName(name)), value @ Value::Number(_))
                | (Argument::AsSymFloat(SymFloatArgument::AsName(name)), value @ Value::Number(_))
                | (
                    Argument::AsSymBool(SymBoolArgument::AsName(name)),
                    value @ (Value::Number(_) | Value::Other(_)),
                ) => {
                    self.bind(name, value);
                }
                (_, Value::Number(_)) => {}
                (_, value) => return refuse(format!("the lowering gives {} for an output", value.kind())),
            }
        }
        Ok(())
    }

    fn give_tensor(&mut self, cx: &mut Cx<'_>, name: &'a str, tensor: &Tensor) {
        let tensor = if tensor.var.is_some() { tensor.clone() } else { cx.variables.own(tensor) };
        self.bind(name, Value::Tensor(tensor));
    }

    /// Holds a value against the type and shape that PyTorch recorded. What nothing uses may differ: some releases record a dimension too
    /// many for the last states of an LSTM.
    fn check(&self, cx: &Cx<'_>, output: &Argument, value: &Value) -> Lowered<()> {
        match (output, value) {
            (Argument::AsTensor(name), Value::Tensor(_)) if !self.uses.contains(name.name.as_str()) => Ok(()),
            (Argument::AsTensor(name), Value::Tensor(tensor)) => self.check_tensor(cx, &name.name, tensor),
            (Argument::AsTensors(names), Value::Tensors(tensors)) if names.len() == tensors.len() => {
                let mut pairs = names.iter().zip(tensors.iter().flatten());
                pairs.try_for_each(|(name, tensor)| self.check_tensor(cx, &name.name, tensor))
            }
            (Argument::AsTensors(names), Value::Tensors(tensors)) => refuse(format!(
                "the lowering gives {} tensors, the archive has {}",
                tensors.len(),
                names.len()
            )),
            _ => Ok(()),
        }
    }

    fn check_tensor(&self, cx: &Cx<'_>, name: &str, tensor: &Tensor) -> Lowered<()> {
        let Some(meta) = self.graph.tensor_values.get(name) else { return Ok(()) };
        let (dtype, dims) = declared(cx, meta)?;
        // Dynamic sizes can be written in several ways that are equal only under the model's guards.
        let same = |(own, recorded): (&Size, &Size)| {
            own == recorded || own.as_int().is_none() || recorded.as_int().is_none()
        };
        if tensor.dtype == dtype && tensor.rank() == dims.len() && tensor.dims.iter().zip(&dims).all(same) {
            return Ok(());
        }
        refuse(format!(
            "the lowering gives {}{:?} for `{name}`, PyTorch recorded {dtype}{dims:?}",
            tensor.dtype, tensor.dims
        ))
    }

    /// Binds placeholders to the outputs of a node that could not be lowered.
    fn replace(&mut self, cx: &mut Cx<'_>, node: &'a Node) {
        for name in output_names(node) {
            let meta = self.graph.tensor_values.get(name);
            let placeholder = meta.and_then(|meta| {
                let (dtype, dims) = declared(cx, meta).ok()?;
                cx.splat(dtype, &dims, warpforge_tensor::Scalar::zero(dtype)).ok()
            });
            if let Some(tensor) = placeholder {
                self.give_tensor(cx, name, &tensor);
            }
        }
        for output in &node.outputs {
            if let Argument::AsSymInt(SymIntArgument::AsName(name)) = output
                && let Some(size) =
                    self.graph.sym_int_values.get(name).and_then(|size| cx.symbols.size(size).ok())
            {
                self.bind(name, Value::Number(Number::Int(size)));
            }
        }
    }
}

/// Writes the first result to a tensor, which is the result then.
fn written(cx: &mut Cx<'_>, target: Option<&Value>, mut outcome: Outcome) -> Lowered<Outcome> {
    let Some(Value::Tensor(Tensor { var: Some(var), .. })) = target else {
        return refuse("it writes to something that is not a tensor");
    };
    let Some(Value::Tensor(result)) = outcome.first().cloned() else {
        return refuse("it writes something that is not a tensor");
    };
    cx.write(*var, &result)?;
    outcome[0] = Value::Tensor(cx.read(*var)?);
    Ok(outcome)
}

/// The element type and sizes that the archive records for a tensor.
pub(super) fn declared(cx: &Cx<'_>, meta: &TensorMeta) -> Lowered<(warpforge_ir::ElementType, Vec<Size>)> {
    let dtype = element_type(meta.dtype).map_err(Refusal)?;
    let dims = meta.sizes.iter().map(|size| cx.symbols.size(size).map_err(Refusal));
    let dims = dims.collect::<Lowered<Vec<Size>>>()?;
    check_sizes(&dims).map_err(Refusal)?;
    Ok((dtype, dims))
}

/// Refuses sizes that no tensor has: negative ones, and more elements than any memory holds. Lowerings rely on it when
/// they multiply sizes.
pub(super) fn check_sizes(dims: &[Size]) -> Result<(), String> {
    const MOST: i64 = 1 << 40;
    let known = dims.iter().filter_map(Size::as_int);
    let elements = known.clone().try_fold(1i64, |product, size| product.checked_mul(size.max(1)));
    if known.clone().all(|size| size >= 0) && elements.is_some_and(|elements| elements <= MOST) {
        return Ok(());
    }
    Err(format!("no tensor has the sizes {dims:?}"))
}

fn fresh(value: Value) -> Value {
    match value {
        Value::Tensor(tensor) => Value::Tensor(tensor.fresh()),
        Value::Tensors(tensors) => {
            Value::Tensors(tensors.into_iter().map(|tensor| tensor.map(|tensor| tensor.fresh())).collect())
        }
        other => other,
    }
}

fn numbers<T>(values: &[T], number: impl Fn(&T) -> Number) -> Value {
    Value::Numbers(values.iter().map(number).collect())
}

/// The names of the tensors that a node gives.
pub(crate) fn output_names(node: &Node) -> impl Iterator<Item = &str> {
    node.outputs
        .iter()
        .flat_map(|output| match output {
            Argument::AsTensor(name) => std::slice::from_ref(name),
            Argument::AsTensors(names) => names.as_slice(),
            _ => &[],
        })
        .map(|name| name.name.as_str())
}

/// The node's name; archives of some versions leave it out where it is the output's name.
pub(crate) fn node_name(node: &Node) -> &str {
    let output = node.outputs.first().and_then(|output| match output {
        Argument::AsTensor(name) => Some(name.name.as_str()),
        _ => None,
    });
    node.name.as_deref().or(output).unwrap_or(&node.target)
}

/// `loc("NODE"("FILE":LINE:0))`.
pub(super) fn location(name: &str, source: Option<&Source>) -> Arc<str> {
    match source {
        Some(source) => format!("loc({}({}:{}:0))", quoted(name), quoted(&source.file), source.line).into(),
        None => format!("loc({})", quoted(name)).into(),
    }
}

/// A string as MLIR writes it.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => out.extend(['\\', char::from(byte)]),
            0x20..=0x7e => out.push(char::from(byte)),
            other => out.push_str(&format!("\\{other:02X}")),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_decomposition_would_make_work_has_no_lowering_yet() {
        assert!(decomposes("aten.special_erf.default") && decomposes("aten.gru_cell.default"));
        // What it is taken apart into has no lowering either.
        assert!(!decomposes("aten.linalg_eigvalsh.default"));
        let listed = include_str!("decomposed.txt").lines();
        let stale: Vec<&str> = listed.filter(|target| crate::lower::has_lowering(target)).collect();
        assert!(stale.is_empty(), "{stale:?} have lowerings: run xtask/aten/decomposed.py");
    }
}

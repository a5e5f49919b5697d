//! The arguments of a node, by the names of PyTorch's operator schema.
//!
//! The archive leaves out arguments that have their default value, so a lowering asks with the default
//! (`args.int_or("dim", -1)`). An argument that is there and that nobody asks for is refused after the lowering: it
//! would change the result.

use std::cell::Cell;
use std::collections::HashSet;
use std::rc::Rc;

use warpforge_ir::ElementType;

use super::graph::names;
use super::refusal::{Lowered, Refusal, refuse};
use super::value::{Number, Operand, Tensor, Value};
use crate::graph::schema::{Argument, Graph, Node, SymIntArgument, TensorMeta};
use crate::graph::size::Size;

/// The name of the tensor that an argument of a node is.
fn tensor_name<'n>(node: &'n Node, argument: &str) -> Option<&'n str> {
    let input = node.inputs.iter().find(|input| input.name == argument)?;
    match &input.arg {
        Argument::AsTensor(tensor) => Some(&tensor.name),
        _ => None,
    }
}

/// The arguments of a node.
#[derive(Debug)]
pub(crate) struct Args<'a> {
    /// The node, for what is not an argument by name.
    pub(crate) node: &'a Node,
    graph: &'a Graph,
    /// The names that later nodes and the graph's outputs use.
    uses: Rc<HashSet<&'a str>>,
    list: Vec<Arg<'a>>,
}

#[derive(Debug)]
struct Arg<'a> {
    name: &'a str,
    value: Value,
    used: Cell<bool>,
}

impl<'a> Args<'a> {
    pub(super) fn new(
        graph: &'a Graph,
        uses: Rc<HashSet<&'a str>>,
        node: &'a Node,
        values: Vec<(&'a str, Value)>,
    ) -> Self {
        let list = values.into_iter().map(|(name, value)| Arg { name, value, used: Cell::new(false) });
        Self { node, graph, uses, list: list.collect() }
    }

    /// What the archive records about a tensor argument.
    pub(crate) fn meta(&self, name: &str) -> Option<&'a TensorMeta> {
        self.graph.tensor_values.get(tensor_name(self.node, name)?)
    }

    /// Whether an argument is an output of another node of these targets, which has the same tensor as this one for another argument.
    pub(crate) fn comes_from(&self, name: &str, targets: &[&str], shared: &str) -> bool {
        self.giver(name).is_some_and(|(node, target)| {
            targets.contains(&target) && tensor_name(node, shared) == tensor_name(self.node, shared)
        })
    }

    /// Whether an argument is an output of a node of a target.
    pub(crate) fn is_given_by(&self, name: &str, target: &str) -> bool {
        self.giver(name).is_some_and(|(_, found)| found == target)
    }

    /// The node that gives an argument, and its target.
    fn giver(&self, name: &str) -> Option<(&'a Node, &'a str)> {
        let given = tensor_name(self.node, name)?;
        let gives = |node: &&Node| node.outputs.iter().flat_map(names).any(|output| output == given);
        let node = self.graph.nodes.iter().find(gives)?;
        Some((node, node.target.strip_prefix("torch.ops.").unwrap_or(&node.target)))
    }

    /// What the archive records about an argument of the node that gives one of this node's, where it is of a target.
    pub(crate) fn of_giver(&self, name: &str, target: &str, argument: &str) -> Option<&'a TensorMeta> {
        let (node, _) = self.giver(name).filter(|(_, found)| *found == target)?;
        self.graph.tensor_values.get(tensor_name(node, argument)?)
    }

    /// What the archive records about an output that is a tensor.
    pub(crate) fn output_meta(&self, position: usize) -> Option<&'a TensorMeta> {
        match self.node.outputs.get(position)? {
            Argument::AsTensor(tensor) => self.graph.tensor_values.get(&tensor.name),
            _ => None,
        }
    }

    /// Whether something uses an output.
    pub(crate) fn is_used(&self, position: usize) -> bool {
        match self.node.outputs.get(position) {
            Some(Argument::AsTensor(tensor)) => self.uses.contains(tensor.name.as_str()),
            Some(Argument::AsSymInt(SymIntArgument::AsName(name))) => self.uses.contains(name.as_str()),
            Some(Argument::AsNone(_) | Argument::AsSymInt(SymIntArgument::AsInt(_))) | None => false,
            Some(_) => true,
        }
    }

    /// Whether something uses any output.
    pub(crate) fn any_output_used(&self) -> bool {
        (0..self.node.outputs.len()).any(|position| self.is_used(position))
    }

    /// The targets of the nodes that use an output that is a tensor.
    pub(crate) fn readers(&self, position: usize) -> impl Iterator<Item = &'a str> {
        let output = self.node.outputs.get(position).and_then(|output| match output {
            Argument::AsTensor(tensor) => Some(tensor.name.as_str()),
            _ => None,
        });
        let reads = move |node: &&'a Node| {
            node.inputs.iter().flat_map(|input| names(&input.arg)).any(|name| Some(name) == output)
        };
        self.graph.nodes.iter().filter(reads).map(|node| node.target.as_str())
    }

    /// The names of arguments that nobody asked for.
    pub(super) fn unused(&self) -> Vec<&str> {
        self.list.iter().filter(|arg| !arg.used.get()).map(|arg| arg.name).collect()
    }

    /// An argument; `None` where it is left out or is `None`.
    pub(crate) fn get(&self, name: &str) -> Option<&Value> {
        let arg = self.list.iter().find(|arg| arg.name == name)?;
        arg.used.set(true);
        Some(&arg.value).filter(|value| !matches!(value, Value::None))
    }

    /// An argument by its position, for operators without a schema.
    pub(crate) fn at(&self, position: usize) -> Option<&Value> {
        let arg = self.list.get(position)?;
        arg.used.set(true);
        Some(&arg.value)
    }

    /// How many arguments there are.
    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    /// Says that an argument does not change the result.
    pub(crate) fn ignore(&self, names: &[&str]) {
        for name in names {
            self.get(name);
        }
    }

    /// Says that no argument changes the result.
    pub(crate) fn ignore_all(&self) {
        self.list.iter().for_each(|arg| arg.used.set(true));
    }

    fn required(&self, name: &str) -> Lowered<&Value> {
        self.get(name).ok_or_else(|| Refusal(format!("argument `{name}` is missing")))
    }

    /// A tensor.
    pub(crate) fn tensor(&self, name: &str) -> Lowered<Tensor> {
        self.opt_tensor(name)?.ok_or_else(|| Refusal(format!("argument `{name}` is missing")))
    }

    /// A tensor or nothing.
    pub(crate) fn opt_tensor(&self, name: &str) -> Lowered<Option<Tensor>> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::Tensor(tensor)) => Ok(Some(tensor.clone())),
            Some(other) => wrong(name, other, "a tensor"),
        }
    }

    /// A list of tensors.
    pub(crate) fn tensors(&self, name: &str) -> Lowered<Vec<Tensor>> {
        self.opt_tensors(name)?
            .into_iter()
            .map(|tensor| tensor.ok_or_else(|| Refusal(format!("argument `{name}` has a None in it"))))
            .collect()
    }

    /// A list of tensors, some of which may be `None`.
    pub(crate) fn opt_tensors(&self, name: &str) -> Lowered<Vec<Option<Tensor>>> {
        match self.required(name)? {
            Value::Tensors(tensors) => Ok(tensors.clone()),
            Value::Tensor(tensor) => Ok(vec![Some(tensor.clone())]),
            // An empty list has no element to tell its type by.
            Value::Numbers(numbers) if numbers.is_empty() => Ok(Vec::new()),
            other => wrong(name, other, "a list of tensors"),
        }
    }

    /// A number.
    pub(crate) fn number(&self, name: &str) -> Lowered<Number> {
        self.opt_number(name)?.ok_or_else(|| Refusal(format!("argument `{name}` is missing")))
    }

    /// A number or nothing.
    pub(crate) fn opt_number(&self, name: &str) -> Lowered<Option<Number>> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::Number(number)) => Ok(Some(number.clone())),
            Some(Value::Tensor(tensor)) if tensor.rank() == 0 => Ok(Some(Number::Computed(tensor.fresh()))),
            Some(other) => wrong(name, other, "a number"),
        }
    }

    /// A tensor or a number.
    pub(crate) fn operand(&self, name: &str) -> Lowered<Operand> {
        match self.required(name)? {
            Value::Tensor(tensor) => Ok(Operand::Tensor(tensor.clone())),
            Value::Number(number) => Ok(Operand::Number(number.clone())),
            other => wrong(name, other, "a tensor or a number"),
        }
    }

    /// An integer that may depend on dynamic dimensions.
    pub(crate) fn size(&self, name: &str) -> Lowered<Size> {
        self.opt_size(name)?.ok_or_else(|| Refusal(format!("argument `{name}` is missing")))
    }

    /// An integer that may depend on dynamic dimensions, or nothing.
    pub(crate) fn opt_size(&self, name: &str) -> Lowered<Option<Size>> {
        self.opt_number(name)?.map(|number| as_size(name, &number)).transpose()
    }

    /// An integer that may depend on dynamic dimensions, with its default.
    pub(crate) fn size_or(&self, name: &str, default: i64) -> Lowered<Size> {
        Ok(self.opt_size(name)?.unwrap_or(Size::Int(default)))
    }

    /// An integer.
    pub(crate) fn int(&self, name: &str) -> Lowered<i64> {
        fixed(name, &self.size(name)?)
    }

    /// An integer with its default.
    pub(crate) fn int_or(&self, name: &str, default: i64) -> Lowered<i64> {
        self.opt_size(name)?.map_or(Ok(default), |size| fixed(name, &size))
    }

    /// An integer or nothing.
    pub(crate) fn opt_int(&self, name: &str) -> Lowered<Option<i64>> {
        self.opt_size(name)?.map(|size| fixed(name, &size)).transpose()
    }

    /// A list of integers that may depend on dynamic dimensions.
    pub(crate) fn sizes(&self, name: &str) -> Lowered<Vec<Size>> {
        self.opt_sizes(name)?.ok_or_else(|| Refusal(format!("argument `{name}` is missing")))
    }

    /// A list of integers that may depend on dynamic dimensions, or nothing.
    pub(crate) fn opt_sizes(&self, name: &str) -> Lowered<Option<Vec<Size>>> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::Numbers(numbers)) => {
                numbers.iter().map(|number| as_size(name, number)).collect::<Lowered<Vec<_>>>().map(Some)
            }
            // A single integer stands for a list of one.
            Some(Value::Number(number)) => Ok(Some(vec![as_size(name, number)?])),
            // An empty list has no element to tell its type by.
            Some(Value::Tensors(tensors)) if tensors.is_empty() => Ok(Some(Vec::new())),
            Some(other) => wrong(name, other, "a list of integers"),
        }
    }

    /// A list of integers.
    pub(crate) fn ints(&self, name: &str) -> Lowered<Vec<i64>> {
        self.sizes(name)?.iter().map(|size| fixed(name, size)).collect()
    }

    /// A list of integers or nothing.
    pub(crate) fn opt_ints(&self, name: &str) -> Lowered<Option<Vec<i64>>> {
        let sizes = self.opt_sizes(name)?;
        sizes.map(|sizes| sizes.iter().map(|size| fixed(name, size)).collect()).transpose()
    }

    /// A list of integers, one for each of `count` dimensions; a list of one stands for all of them, an empty one or
    /// none for the default.
    pub(crate) fn ints_for(&self, name: &str, count: usize, default: i64) -> Lowered<Vec<i64>> {
        let ints = self.opt_ints(name)?.unwrap_or_default();
        match ints.as_slice() {
            [] => Ok(vec![default; count]),
            [one] => Ok(vec![*one; count]),
            all if all.len() == count => Ok(ints),
            all => refuse(format!("argument `{name}` has {} entries for {count} dimensions", all.len())),
        }
    }

    /// A float with its default.
    pub(crate) fn float_or(&self, name: &str, default: f64) -> Lowered<f64> {
        Ok(self.opt_float(name)?.unwrap_or(default))
    }

    /// A float or nothing.
    pub(crate) fn opt_float(&self, name: &str) -> Lowered<Option<f64>> {
        let Some(number) = self.opt_number(name)? else { return Ok(None) };
        let value = number.as_f64();
        value
            .map(Some)
            .ok_or_else(|| Refusal(format!("argument `{name}` is not a number that is known here")))
    }

    /// A list of floats or nothing.
    pub(crate) fn opt_floats(&self, name: &str) -> Lowered<Option<Vec<f64>>> {
        let numbers = match self.get(name) {
            None => return Ok(None),
            Some(Value::Numbers(numbers)) => numbers,
            Some(other) => return wrong(name, other, "a list of floats"),
        };
        let known = numbers.iter().map(Number::as_f64).collect::<Option<Vec<_>>>();
        known
            .map(Some)
            .ok_or_else(|| Refusal(format!("argument `{name}` has a number that is not known here")))
    }

    /// A truth value with its default.
    pub(crate) fn bool_or(&self, name: &str, default: bool) -> Lowered<bool> {
        match self.get(name) {
            None => Ok(default),
            Some(Value::Number(Number::Bool(value))) => Ok(*value),
            Some(other) => wrong(name, other, "a bool"),
        }
    }

    /// A list of truth values.
    pub(crate) fn bools(&self, name: &str) -> Lowered<Vec<bool>> {
        let found = self.required(name)?;
        let Value::Numbers(numbers) = found else { return wrong(name, found, "a list of bools") };
        let known = numbers.iter().map(|number| match number {
            Number::Bool(value) => Ok(*value),
            _ => refuse(format!("argument `{name}` is not a list of bools")),
        });
        known.collect()
    }

    /// A string with its default.
    pub(crate) fn str_or<'s>(&'s self, name: &str, default: &'s str) -> Lowered<&'s str> {
        match self.get(name) {
            None => Ok(default),
            Some(Value::Str(text)) => Ok(text),
            Some(other) => wrong(name, other, "a string"),
        }
    }

    /// An element type or nothing.
    pub(crate) fn opt_dtype(&self, name: &str) -> Lowered<Option<ElementType>> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::Dtype(dtype)) => Ok(Some(*dtype)),
            Some(other) => wrong(name, other, "an element type"),
        }
    }

    /// Accepts where and how a new tensor is kept, as far as its values do not depend on it.
    pub(crate) fn placement(&self) -> Lowered<()> {
        self.ignore(&["pin_memory", "memory_format", "non_blocking"]);
        if let Some(Value::Layout(Some(layout))) = self.get("layout") {
            return refuse(format!("a tensor of layout {layout} is not supported"));
        }
        if let Some(Value::Device(kind)) = self.get("device")
            && kind == "meta"
        {
            return refuse("a tensor on the meta device has no values");
        }
        Ok(())
    }
}

fn as_size(name: &str, number: &Number) -> Lowered<Size> {
    match number {
        Number::Int(size) => Ok(size.clone()),
        Number::Bool(value) => Ok(Size::Int(i64::from(*value))),
        Number::Computed(_) => {
            refuse(format!("argument `{name}` depends on the data, so the shape is not known before the run"))
        }
        Number::Float(_) | Number::Complex(..) => refuse(format!("argument `{name}` is not an integer")),
    }
}

/// The number that a size is. Lowerings add and multiply what they get here, so it must be of a reasonable size; what
/// may be as large as an integer can be is asked for as a [`Size`], whose arithmetic saturates.
fn fixed(name: &str, size: &Size) -> Lowered<i64> {
    match size.as_int() {
        Some(value) if value.unsigned_abs() <= 1 << 31 => Ok(value),
        Some(value) => refuse(format!("argument `{name}` is {value}, which no model needs")),
        None => refuse(format!("argument `{name}` is {size}, which must be a number here")),
    }
}

fn wrong<T>(name: &str, found: &Value, expected: &str) -> Lowered<T> {
    refuse(format!("argument `{name}` is {} where {expected} is expected", found.kind()))
}

//! `@main`: the graph's inputs as its arguments, the graph's outputs as its results.

use std::collections::{BTreeMap, HashMap, HashSet};

use warpforge_ir::build::{BuildError, Builder};
use warpforge_ir::signature::{Argument as MainArgument, ArgumentRole, Output, ResultRole, Signature};
use warpforge_ir::{ElementType, Module, Type, ValueId};

use super::alias::Var;
use super::cx::{Cx, Symbols};
use super::graph::{Walk, check_sizes};
use super::refusal::Refusal;
use super::report::Report;
use super::value::{Number, Tensor, Value, value_type};
use super::{ImportOptions, Imported};
use crate::archive::{Archive, Payload};
use crate::graph::schema::{
    Argument, GraphModule, InputSpec, OutputSpec, SymInt, SymIntArgument, TensorMeta,
};
use crate::graph::size::Size;
use crate::{Error, graph};

impl From<BuildError> for Error {
    fn from(error: BuildError) -> Self {
        Error::Graph(error.to_string())
    }
}

/// One input of the graph that is an argument of `@main`.
struct Input<'a> {
    /// Its name in the graph.
    value: &'a str,
    /// Its name to the user.
    name: &'a str,
    role: ArgumentRole,
    dtype: ElementType,
    sizes: Vec<SymInt>,
}

impl Archive {
    /// Lowers the graph to StableHLO.
    ///
    /// # Errors
    ///
    /// When the graph has operations that cannot be lowered exactly (all of them are listed), when it contradicts
    /// itself or the weights, or when the shapes given do not fit it.
    pub fn import(&self, options: &ImportOptions) -> Result<Imported, Error> {
        let inputs = self.inputs()?;
        let symbols = self.symbols(&inputs, options)?;
        let weights = self.tensors(&inputs)?;
        let types: Vec<Type> =
            inputs.iter().map(|input| input_type(input, &symbols)).collect::<Result<_, _>>()?;
        let mut signature = Signature::default();
        for (input, ty) in inputs.iter().zip(&types) {
            signature.arguments.push(MainArgument::new(input.name, input.role, ty.clone()));
        }
        let packing = self.packing()?;
        let mut module = Module::new();
        let mut builder = Builder::new(&mut module);
        let main = builder.function("main", &types, |builder, arguments| {
            let block = builder.block();
            let inner = Builder::at(builder.module_mut(), block);
            let mut main = Main { archive: self, cx: Cx::new(inner, symbols), outputs: Vec::new() };
            main.cx.packing = packing;
            let results = main.lower(&inputs, arguments)?;
            signature.results = main.outputs;
            Ok::<_, Error>(results)
        })?;
        alias_written(&mut signature);
        module.set_attr(main, "arg_attrs", signature.argument_attrs());
        module.set_attr(main, "res_attrs", signature.result_attrs());
        Ok(Imported { module, weights })
    }

    /// The inputs of the graph that are tensors or dynamic numbers, in order.
    fn inputs(&self) -> Result<Vec<Input<'_>>, Error> {
        let module = &self.program.graph_module;
        let mut inputs: Vec<Input<'_>> = Vec::new();
        for spec in &module.signature.input_specs {
            let (value, name, role) = match spec {
                InputSpec::UserInput { arg: Argument::AsTensor(arg) } => {
                    (arg.name.as_str(), arg.name.as_str(), ArgumentRole::Input)
                }
                InputSpec::UserInput { arg: Argument::AsSymInt(SymIntArgument::AsName(name)) } => {
                    inputs.push(Input {
                        value: name,
                        name,
                        role: ArgumentRole::Input,
                        dtype: ElementType::I64,
                        sizes: Vec::new(),
                    });
                    continue;
                }
                InputSpec::Parameter { arg, parameter_name } => {
                    (arg.name.as_str(), parameter_name.as_str(), ArgumentRole::Parameter)
                }
                InputSpec::Buffer { arg, buffer_name } => {
                    (arg.name.as_str(), buffer_name.as_str(), ArgumentRole::Buffer)
                }
                InputSpec::TensorConstant { arg, tensor_constant_name } => {
                    (arg.name.as_str(), tensor_constant_name.as_str(), ArgumentRole::Constant)
                }
                InputSpec::CustomObj { custom_obj_name } => {
                    return Err(Error::Weight {
                        name: custom_obj_name.clone(),
                        what: "custom objects are pickled, and pickle is never read".to_owned(),
                    });
                }
                InputSpec::Token { arg } => {
                    return Err(Error::Graph(format!("the effect token `{}` is not supported", arg.name)));
                }
                // Numbers, strings and None that the model was exported with are part of the graph.
                InputSpec::UserInput { .. } | InputSpec::ConstantInput(_) => continue,
            };
            let meta = self.meta(value)?;
            let dtype =
                graph::element_type(meta.dtype).map_err(|what| Error::Graph(format!("`{value}`: {what}")))?;
            inputs.push(Input { value, name, role, dtype, sizes: meta.sizes.clone() });
        }
        let mut seen = HashMap::new();
        for input in &inputs {
            if seen.insert(input.name, input.value).is_some() {
                return Err(Error::Graph(format!("two inputs are called `{}`", input.name)));
            }
        }
        Ok(inputs)
    }

    fn meta(&self, value: &str) -> Result<&TensorMeta, Error> {
        let metas = &self.program.graph_module.graph.tensor_values;
        metas.get(value).ok_or_else(|| Error::Graph(format!("nothing says what tensor `{value}` is")))
    }

    /// The symbols of the graph, with their values where shapes are given.
    fn symbols(&self, inputs: &[Input<'_>], options: &ImportOptions) -> Result<Symbols, Error> {
        let mut symbols = Symbols::default();
        for (name, range) in &self.program.range_constraints {
            let range = (range.min_val.unwrap_or(0), range.max_val.unwrap_or(i64::MAX));
            symbols.ranges.insert(name.clone(), range);
        }
        let Some(shapes) = &options.shapes else { return Ok(symbols) };
        let inputs = inputs.iter().filter(|input| input.role == ArgumentRole::Input);
        let mut dims = Vec::new();
        for input in inputs {
            let wrong = |what: String| Error::Shape { input: input.name.to_owned(), what };
            let Some(shape) = shapes.get(input.name) else {
                if input.sizes.iter().any(|size| matches!(size, SymInt::Expr(_))) {
                    return Err(wrong("it has dynamic dimensions and no shape was given".to_owned()));
                }
                continue;
            };
            if shape.len() != input.sizes.len() {
                return Err(wrong(format!(
                    "{} dimensions given, the model has {}",
                    shape.len(),
                    input.sizes.len()
                )));
            }
            for (axis, (given, size)) in shape.iter().zip(&input.sizes).enumerate() {
                let size = symbols.size(size).map_err(|what| wrong(format!("dimension {axis}: {what}")))?;
                let given =
                    i64::try_from(*given).map_err(|_| wrong(format!("dimension {axis} is too large")))?;
                if let Some(name) = size.as_symbol() {
                    let name = name.to_owned();
                    check_range(&symbols, &name, given)
                        .map_err(|what| wrong(format!("dimension {axis}: {what}")))?;
                    symbols.values.insert(name, given);
                } else {
                    dims.push((input.name, axis, size, given));
                }
            }
        }
        for (input, axis, size, given) in dims {
            let value = size.substitute(&|name| symbols.values.get(name).copied());
            if !value.is(given) {
                return Err(Error::Shape {
                    input: input.to_owned(),
                    what: format!("dimension {axis} is {given}, the model needs {value}"),
                });
            }
        }
        Ok(symbols)
    }

    /// The weights that the graph uses, held against what the graph says of them.
    fn tensors(&self, inputs: &[Input<'_>]) -> Result<BTreeMap<String, warpforge_tensor::Tensor>, Error> {
        let mut tensors = BTreeMap::new();
        for input in inputs.iter().filter(|input| input.role.is_weight()) {
            let wrong = |what: String| Error::Weight { name: input.name.to_owned(), what };
            let content = self
                .payload(input)
                .ok_or_else(|| wrong("the graph uses it and the archive does not have it".to_owned()))?
                .content
                .as_ref()
                .map_err(|what| wrong(what.clone()))?;
            let declared = input.sizes.iter().map(|size| match size {
                SymInt::Int(size) => usize::try_from(*size).ok(),
                SymInt::Expr(_) => None,
            });
            let declared: Option<Vec<usize>> = declared.collect();
            if content.element() != input.dtype || declared.as_deref() != Some(content.dims()) {
                return Err(wrong(format!(
                    "stored as {}{:?}, the graph needs {}{:?}",
                    content.element(),
                    content.dims(),
                    input.dtype,
                    declared.unwrap_or_default()
                )));
            }
            let tensor = content.tensor().map_err(|error| wrong(error.to_string()))?;
            tensors.insert(input.name.to_owned(), tensor);
        }
        Ok(tensors)
    }

    /// Buffers that are not saved are among the constants.
    fn payload(&self, input: &Input<'_>) -> Option<&Payload> {
        let (first, second) = match input.role {
            ArgumentRole::Constant => (&self.constants, &self.weights),
            _ => (&self.weights, &self.constants),
        };
        first.get(input.name).or_else(|| second.get(input.name))
    }
}

/// Declares that the new value of a buffer or an input is aliased with it: the graph writes to it.
fn alias_written(signature: &mut Signature) {
    for at in 0..signature.results.len() {
        let Output { role: ResultRole::Buffer, of: Some(of), ty, .. } = &signature.results[at] else {
            continue;
        };
        let written = |argument: &&mut MainArgument| argument.name == *of && argument.ty == *ty;
        if let Some(argument) = signature.arguments.iter_mut().find(written) {
            argument.alias.get_or_insert(at);
        }
    }
}

fn check_range(symbols: &Symbols, name: &str, given: i64) -> Result<(), String> {
    if let Some(before) = symbols.values.get(name)
        && *before != given
    {
        return Err(format!("{given} where {name} is {before} elsewhere"));
    }
    let (low, high) = symbols.ranges.get(name).copied().unwrap_or((0, i64::MAX));
    if given < low || given > high {
        let high = if high == i64::MAX { "any".to_owned() } else { high.to_string() };
        return Err(format!("{given} is not in the range of {name}, {low} to {high}"));
    }
    Ok(())
}

fn input_type(input: &Input<'_>, symbols: &Symbols) -> Result<Type, Error> {
    Ok(value_type(input.dtype, &input_dims(input, symbols)?))
}

fn input_dims(input: &Input<'_>, symbols: &Symbols) -> Result<Vec<Size>, Error> {
    let dims = input.sizes.iter().map(|size| {
        let size = symbols.size(size).map_err(|what| format!("a size cannot be read: {what}"))?;
        match size.as_int() {
            Some(negative) if negative < 0 => Err(format!("a size of {negative}")),
            _ => Ok(size),
        }
    });
    let dims = dims.collect::<Result<Vec<Size>, String>>();
    let checked = dims.and_then(|dims| check_sizes(&dims).map(|()| dims));
    checked.map_err(|what| Error::Shape { input: input.name.to_owned(), what })
}

/// The names of the outputs that are the user's: the model's own where it has some, else `out0`, `out1`, … by position.
fn user_names(module: &GraphModule) -> Vec<String> {
    let specs = &module.signature.output_specs;
    let is_returned =
        |spec: &&OutputSpec| matches!(spec, OutputSpec::UserOutput { .. } | OutputSpec::LossOutput { .. });
    let own = module.out_spec().map(graph::outputs::names).unwrap_or_default();
    // A structure of another size is of something else.
    let own = if own.len() == specs.iter().filter(is_returned).count() { own } else { Vec::new() };
    let mut own = own.into_iter();
    let mut taken: HashSet<String> = specs.iter().filter_map(fixed_name).collect();
    let mut names = Vec::new();
    for spec in specs.iter().filter(is_returned) {
        let name = own.next().flatten();
        if let OutputSpec::UserOutput { .. } = spec {
            let name = name.filter(|name| taken.insert(name.clone()));
            names.push(name.unwrap_or_else(|| format!("out{}", names.len())));
        }
    }
    names
}

/// The name of an output that is not the user's to choose.
fn fixed_name(spec: &OutputSpec) -> Option<String> {
    match spec {
        OutputSpec::UserOutput { .. } | OutputSpec::Token { .. } => None,
        OutputSpec::LossOutput { .. } => Some("loss".to_owned()),
        OutputSpec::BufferMutation { buffer_name: of, .. }
        | OutputSpec::ParameterMutation { parameter_name: of, .. }
        | OutputSpec::UserInputMutation { user_input_name: of, .. } => Some(of.clone()),
        OutputSpec::GradientToParameter { parameter_name: of, .. }
        | OutputSpec::GradientToUserInput { user_input_name: of, .. } => Some(format!("grad.{of}")),
    }
}

/// `@main` while it is built.
struct Main<'a, 'm> {
    archive: &'a Archive,
    cx: Cx<'m>,
    outputs: Vec<Output>,
}

impl<'a> Main<'a, '_> {
    fn lower(&mut self, inputs: &[Input<'a>], arguments: &[ValueId]) -> Result<Vec<ValueId>, Error> {
        let module = &self.archive.program.graph_module;
        let mut walk = Walk::new(&module.graph);
        let mut variables = Vec::new();
        for (input, &id) in inputs.iter().zip(arguments) {
            let dims = input_dims(input, &self.cx.symbols)?;
            for (axis, size) in dims.iter().enumerate() {
                if let Some(symbol) = size.as_symbol() {
                    self.cx.symbols.homes.entry(symbol.to_owned()).or_insert((id, axis));
                }
            }
            let tensor = self.cx.tensor(id, input.dtype, dims);
            if module.graph.tensor_values.contains_key(input.value) {
                let tensor = self.cx.variables.own(&tensor);
                variables.extend(tensor.var.map(|var| (input, var)));
                walk.bind(input.value, Value::Tensor(tensor));
            } else {
                walk.bind(input.value, Value::Number(Number::Computed(tensor)));
            }
        }
        let mut report = Report::default();
        walk.run(&mut self.cx, &mut report, 0);
        if !report.is_empty() {
            return Err(Error::Unsupported(report));
        }
        let mut results = Vec::new();
        let mut names = user_names(module).into_iter();
        for spec in &module.signature.output_specs {
            let value = self.output(&walk, spec, inputs, &mut names)?;
            results.extend(value);
        }
        results.extend(self.written(&variables)?);
        Ok(results)
    }

    fn output(
        &mut self,
        walk: &Walk<'a>,
        spec: &OutputSpec,
        inputs: &[Input<'a>],
        names: &mut impl Iterator<Item = String>,
    ) -> Result<Option<ValueId>, Error> {
        let tensor = |name: &str| Argument::AsTensor(crate::graph::schema::Name { name: name.to_owned() });
        let name = fixed_name(spec).or_else(|| names.next()).unwrap_or_default();
        let (argument, role, of) = match spec {
            OutputSpec::UserOutput { arg } => {
                return self.result(walk, arg, name, ResultRole::Output, None, None);
            }
            OutputSpec::LossOutput { arg } => (arg, ResultRole::Loss, None),
            OutputSpec::BufferMutation { arg, buffer_name: of }
            | OutputSpec::ParameterMutation { arg, parameter_name: of }
            | OutputSpec::UserInputMutation { arg, user_input_name: of } => {
                (arg, ResultRole::Buffer, Some(of))
            }
            OutputSpec::GradientToParameter { arg, parameter_name: of }
            | OutputSpec::GradientToUserInput { arg, user_input_name: of } => {
                (arg, ResultRole::Gradient, Some(of))
            }
            OutputSpec::Token { arg } => {
                return Err(Error::Graph(format!("the effect token `{}` is not supported", arg.name)));
            }
        };
        // What is copied into a buffer or input takes the type that it has.
        let written = of.filter(|_| role == ResultRole::Buffer);
        let target = written.and_then(|of| inputs.iter().find(|input| input.name == of));
        let dtype = target.map(|input| input.dtype);
        self.result(walk, &tensor(&argument.name), name, role, of, dtype)
    }

    fn result(
        &mut self,
        walk: &Walk<'a>,
        argument: &Argument,
        name: String,
        role: ResultRole,
        of: Option<&String>,
        dtype: Option<ElementType>,
    ) -> Result<Option<ValueId>, Error> {
        let failed = |Refusal(why): Refusal| Error::Graph(format!("output `{name}`: {why}"));
        let value = walk.value(&mut self.cx, argument).map_err(failed)?;
        let tensor = match value {
            Value::Tensor(tensor) => tensor,
            Value::Number(number) => self.number(&number).map_err(failed)?,
            // None and strings are no tensors; the numbering of the others keeps its gap.
            _ => return Ok(None),
        };
        let tensor = match dtype {
            Some(dtype) => self.cx.convert(&tensor, dtype).map_err(failed)?,
            None => tensor,
        };
        let ty = self.cx.b.ty(tensor.id).clone();
        self.outputs.push(Output { name, role, of: of.cloned(), ty });
        Ok(Some(tensor.id))
    }

    fn number(&mut self, number: &Number) -> Result<Tensor, Refusal> {
        let dtype = match number {
            Number::Int(_) => ElementType::I64,
            Number::Float(_) => ElementType::F64,
            Number::Bool(_) => ElementType::Bool,
            Number::Complex(..) => ElementType::C128,
            Number::Computed(tensor) => tensor.dtype,
        };
        self.cx.fill(dtype, &[], number)
    }

    /// The new values of buffers and inputs that the graph wrote to without saying so in its signature.
    fn written(&mut self, variables: &[(&Input<'a>, Var)]) -> Result<Vec<ValueId>, Error> {
        let mut results = Vec::new();
        for (input, var) in variables {
            if !self.cx.variables.is_written(*var) {
                continue;
            }
            self.refuse_shared(input, variables)?;
            let value = self
                .cx
                .read(*var)
                .map_err(|Refusal(why)| Error::Graph(format!("`{}`: {why}", input.name)))?;
            let ty = self.cx.b.ty(value.id).clone();
            let name = input.name.to_owned();
            self.outputs.push(Output { of: Some(name.clone()), name, role: ResultRole::Buffer, ty });
            results.push(value.id);
        }
        Ok(results)
    }

    /// A write to a weight that shares its memory with another one would change that one too.
    fn refuse_shared(&self, written: &Input<'a>, variables: &[(&Input<'a>, Var)]) -> Result<(), Error> {
        let entry = |input: &Input<'a>| self.archive.payload(input).map(|payload| payload.entry.as_str());
        let Some(own) = entry(written) else { return Ok(()) };
        let others = variables.iter().map(|(input, _)| input).filter(|input| input.name != written.name);
        match others.filter(|other| other.role.is_weight()).find(|other| entry(other) == Some(own)) {
            None => Ok(()),
            Some(other) => Err(Error::Weight {
                name: written.name.to_owned(),
                what: format!("it is written to and shares its memory with `{}`", other.name),
            }),
        }
    }
}

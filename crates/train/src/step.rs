//! The step: an entry function with gradients, and the optimizer behind it.

use std::collections::HashMap;

use warpforge_diag::Severity;
use warpforge_ir::attr::{Attribute, Dict};
use warpforge_ir::build::Builder;
use warpforge_ir::signature::{Argument, ArgumentRole, Output, ResultRole, Signature};
use warpforge_ir::{ElementType, Func, Module, OpId, OpKind, Type, ValueId, verify};

use crate::emit::Emit;
use crate::reduce::all_reduce;
use crate::{Recipe, TrainError};

/// Counts updates.
const UPDATES: &str = "optimizer.step";

/// Counts runs since the last update.
const RUNS: &str = "optimizer.micro_step";

/// A parameter with the value of its gradient.
struct Trained {
    /// The position of the argument.
    at: usize,
    name: String,
    value: ValueId,
    gradient: ValueId,
}

/// The module with a step in the place of its entry function. Its arguments are those of the function, then the optimizer's state;
/// its results are those of the function but the gradients, then the norm of the gradients where they are clipped, the learning
/// rate, and the new values of all that is updated.
///
/// # Errors
///
/// When the function gives no gradients of parameters, or gradients and parameters do not fit.
pub fn step(module: &Module, entry: &str, recipe: &Recipe) -> Result<Module, TrainError> {
    build(module, entry, recipe, None)
}

/// As [`step`], for one of several ranks: gradients are averaged over all of them before they are clipped and used, in buckets of
/// about so many bytes. The ranks talk through the custom calls [`REDUCE_START`](crate::REDUCE_START) and
/// [`REDUCE_DONE`](crate::REDUCE_DONE), which whoever runs the step provides.
///
/// # Errors
///
/// As [`step`].
pub fn parallel_step(
    module: &Module,
    entry: &str,
    recipe: &Recipe,
    bucket_bytes: usize,
) -> Result<Module, TrainError> {
    build(module, entry, recipe, Some(bucket_bytes))
}

fn build(
    module: &Module,
    entry: &str,
    recipe: &Recipe,
    bucket_bytes: Option<usize>,
) -> Result<Module, TrainError> {
    let mut module = module.clone();
    let missing = || TrainError::NoFunction(entry.to_owned());
    let func = module.function(entry).ok_or_else(missing)?;
    let (op, block) = (func.op().id(), func.body().ok_or_else(missing)?);
    let signature = Signature::of(func);
    let last = module.terminator(block).filter(|last| last.is(OpKind::FuncReturn)).ok_or_else(missing)?;
    let (last, returned) = (last.id(), last.operands().to_vec());
    let arguments = func.arguments().to_vec();
    let trained = trained(entry, &signature, &arguments, &returned)?;
    let foreign = foreign_attrs(func, signature.arguments.len());
    module.retain_ops(block, |&op| op != last);

    let mut stepped = Step {
        signature: Signature { arguments: signature.arguments.clone(), results: Vec::new() },
        returned: Vec::new(),
    };
    // Aliases of the function itself go on with the results that they are with.
    let mut moved = HashMap::new();
    for (at, (result, &value)) in signature.results.iter().zip(&returned).enumerate() {
        let gradient = result.role == ResultRole::Gradient
            && trained.iter().any(|one| Some(&one.name) == result.of.as_ref());
        if !gradient || recipe.keep_gradients {
            moved.insert(at, stepped.returned.len());
            stepped.give(result.clone(), value);
        }
    }
    for argument in &mut stepped.signature.arguments {
        argument.alias = argument.alias.and_then(|result| moved.get(&result).copied());
    }
    let mut builder = Builder::at(&mut module, block);
    stepped.optimizer(&mut builder, recipe, &trained, bucket_bytes)?;
    builder.create(OpKind::FuncReturn, &stepped.returned, [], vec![], None)?;
    declare(&mut module, op, &stepped.signature, foreign);
    let wrong = verify(&module).into_iter().find(|found| found.severity == Severity::Error);
    match wrong {
        Some(found) => Err(TrainError::Invalid(found.message)),
        None => Ok(module),
    }
}

/// The parameters that the function gives gradients of.
fn trained(
    entry: &str,
    signature: &Signature,
    arguments: &[ValueId],
    returned: &[ValueId],
) -> Result<Vec<Trained>, TrainError> {
    let mut trained: Vec<Trained> = Vec::new();
    for (result, &gradient) in signature.results.iter().zip(returned) {
        let (ResultRole::Gradient, Some(of)) = (result.role, &result.of) else { continue };
        let is_it = |argument: &Argument| argument.name == *of && argument.role == ArgumentRole::Parameter;
        let Some(at) = signature.arguments.iter().position(is_it) else { continue };
        let argument = &signature.arguments[at];
        let element = argument.ty.as_tensor().and_then(|ty| ty.shape_usize().and(ty.element().plain()));
        if !matches!(element, Some(ElementType::Float(_))) {
            return Err(TrainError::Parameter { parameter: of.clone(), ty: argument.ty.to_string() });
        }
        if argument.ty != result.ty {
            let (ty, gradient) = (argument.ty.to_string(), result.ty.to_string());
            return Err(TrainError::Gradient { parameter: of.clone(), ty, gradient });
        }
        if argument.alias.is_some() || trained.iter().any(|other| other.at == at) {
            return Err(TrainError::Updated(of.clone()));
        }
        trained.push(Trained { at, name: of.clone(), value: arguments[at], gradient });
    }
    if !trained.is_empty() {
        return Ok(trained);
    }
    let is_gradient = |result: &Output| result.role == ResultRole::Gradient && result.of.is_some();
    Err(match signature.results.iter().any(is_gradient) {
        true => TrainError::ConstantParameters(entry.to_owned()),
        false => TrainError::NoGradients(entry.to_owned()),
    })
}

/// The attributes of the arguments that are no part of a signature.
fn foreign_attrs(func: Func<'_>, count: usize) -> Vec<Dict> {
    (0..count).map(|at| func.argument_attrs(at).cloned().unwrap_or_default()).collect()
}

/// Writes the signature to the function.
fn declare(module: &mut Module, func: OpId, signature: &Signature, foreign: Vec<Dict>) {
    let inputs = signature.arguments.iter().map(|argument| argument.ty.clone()).collect();
    let results = signature.results.iter().map(|result| result.ty.clone()).collect();
    module.set_attr(func, "function_type", Attribute::Type(Type::function(inputs, results)));
    let mut attrs: Vec<Attribute> = signature.argument_attrs().as_array().unwrap_or_default().to_vec();
    for (own, foreign) in attrs.iter_mut().zip(foreign) {
        let Attribute::Dict(own) = own else { continue };
        for (name, value) in foreign.entries() {
            let is_alias = name == warpforge_ir::signature::ALIASING_OUTPUT
                || name == warpforge_ir::signature::BUFFER_DONOR;
            if own.get(name).is_none() && !is_alias {
                own.set(name.clone(), value.clone());
            }
        }
    }
    module.set_attr(func, "arg_attrs", Attribute::Array(attrs.into()));
    module.set_attr(func, "res_attrs", signature.result_attrs());
}

/// A step while it is built.
struct Step {
    signature: Signature,
    returned: Vec<ValueId>,
}

impl Step {
    fn give(&mut self, output: Output, value: ValueId) -> usize {
        self.signature.results.push(output);
        self.returned.push(value);
        self.returned.len() - 1
    }

    /// A result of the step's own.
    fn give_named(&mut self, b: &Builder<'_>, name: &str, value: ValueId) -> Result<(), TrainError> {
        if self.signature.results.iter().any(|known| known.name == name) {
            return Err(TrainError::Name(name.to_owned()));
        }
        let ty = b.ty(value).clone();
        self.give(Output { name: name.to_owned(), role: ResultRole::Output, of: None, ty }, value);
        Ok(())
    }

    /// Gives the new value of an argument.
    fn update(&mut self, b: &Builder<'_>, argument: usize, value: ValueId) -> Result<(), TrainError> {
        let name = self.signature.arguments[argument].name.clone();
        if self.signature.results.iter().any(|known| known.name == name) {
            return Err(TrainError::Name(name));
        }
        let (ty, of) = (b.ty(value).clone(), Some(name.clone()));
        let result = self.give(Output { name, role: ResultRole::Buffer, of, ty }, value);
        self.signature.arguments[argument].alias = Some(result);
        Ok(())
    }

    /// A new argument that is state.
    fn state(&mut self, b: &mut Builder<'_>, name: String, ty: Type) -> Result<(usize, ValueId), TrainError> {
        if self.signature.arguments.iter().any(|known| known.name == name) {
            return Err(TrainError::Name(name));
        }
        let block = b.block();
        let value = b.module_mut().add_argument(block, ty.clone());
        self.signature.arguments.push(Argument::new(name, ArgumentRole::State, ty));
        Ok((self.signature.arguments.len() - 1, value))
    }

    fn optimizer(
        &mut self,
        b: &mut Builder<'_>,
        recipe: &Recipe,
        trained: &[Trained],
        bucket_bytes: Option<usize>,
    ) -> Result<(), TrainError> {
        let counter = Type::tensor(&[], ElementType::I64);
        let (updates_at, updates) = self.state(b, UPDATES.to_owned(), counter.clone())?;
        let done = b.convert(updates, ElementType::F64)?;
        let factor = recipe.schedule.emit(&mut Emit { b }, done)?;
        let most = b.scalar(ElementType::F64, recipe.rate)?;
        let rate = b.binary(OpKind::Multiply, most, factor)?;
        let mut gradients: Vec<ValueId> = trained.iter().map(|one| one.gradient).collect();
        let ready = match recipe.accumulate.get() {
            1 => None,
            runs => Some(self.accumulate(b, runs, trained, &mut gradients)?),
        };
        if let Some(bytes) = bucket_bytes {
            all_reduce(b, bytes, ready, &mut gradients)?;
        }
        if let Some(most) = recipe.clip {
            let norm = clip(&mut Emit { b }, most, &mut gradients)?;
            self.give_named(b, "grad_norm", norm)?;
        }
        let shown = b.convert(rate, ElementType::F32)?;
        self.give_named(b, "lr", shown)?;
        let scalars = recipe.optimizer.scalars(&mut Emit { b }, rate, done)?;
        for (one, &gradient) in trained.iter().zip(&gradients) {
            let ty = b.tensor_type(one.value)?.clone();
            let mut places = vec![one.at];
            let mut old = vec![one.value];
            for (moment, ty) in recipe.optimizer.state(&ty) {
                let (at, value) = self.state(b, format!("{moment}.{}", one.name), ty)?;
                places.push(at);
                old.push(value);
            }
            let decays = !recipe.no_decay.iter().any(|part| one.name.contains(part.as_str()));
            let emit = &mut Emit { b: &mut *b };
            let new = recipe.optimizer.update(emit, &scalars, one.value, gradient, &old[1..], decays)?;
            for ((at, old), new) in places.into_iter().zip(old).zip(new) {
                let new = match ready {
                    Some(ready) => b.select(ready, new, old)?,
                    None => new,
                };
                self.update(b, at, new)?;
            }
        }
        let one = b.scalar(ElementType::I64, 1)?;
        let next = b.binary(OpKind::Add, updates, one)?;
        let next = match ready {
            Some(ready) => b.select(ready, next, updates)?,
            None => next,
        };
        self.update(b, updates_at, next)
    }

    /// Adds the gradients of a run to those before, which are then the mean of all runs, and says whether they are complete.
    fn accumulate(
        &mut self,
        b: &mut Builder<'_>,
        runs: u64,
        trained: &[Trained],
        gradients: &mut [ValueId],
    ) -> Result<ValueId, TrainError> {
        let (at, before) = self.state(b, RUNS.to_owned(), Type::tensor(&[], ElementType::I64))?;
        let one = b.scalar(ElementType::I64, 1)?;
        let zero = b.scalar(ElementType::I64, 0)?;
        let all = b.scalar(ElementType::I64, i64::try_from(runs).unwrap_or(i64::MAX))?;
        let now = b.binary(OpKind::Add, before, one)?;
        let ready = Emit { b: &mut *b }.equal(now, all)?;
        let next = b.select(ready, zero, now)?;
        self.update(b, at, next)?;
        for (one, gradient) in trained.iter().zip(gradients) {
            let ty = b.ty(one.value).clone();
            let (at, sum) = self.state(b, format!("accumulated.{}", one.name), ty)?;
            let count = b.splat_like(sum, runs as f64)?;
            let part = b.binary(OpKind::Divide, *gradient, count)?;
            *gradient = b.binary(OpKind::Add, sum, part)?;
            let nothing = b.splat_like(sum, 0.0)?;
            let kept = b.select(ready, nothing, *gradient)?;
            self.update(b, at, kept)?;
        }
        Ok(ready)
    }
}

/// Scales the gradients so that their norm together is at most so large, and gives that norm.
fn clip(emit: &mut Emit<'_, '_>, most: f64, gradients: &mut [ValueId]) -> Result<ValueId, TrainError> {
    let mut total = None;
    for &gradient in gradients.iter() {
        let squares = emit.sum_of_squares(gradient)?;
        let squares = emit.b.convert(squares, ElementType::F32)?;
        total = Some(match total {
            Some(total) => emit.add(total, squares)?,
            None => squares,
        });
    }
    let total = match total {
        Some(total) => total,
        None => emit.b.scalar(ElementType::F32, 0.0)?,
    };
    let norm = emit.b.unary(OpKind::Sqrt, total)?;
    let (small, most) = (emit.b.scalar(ElementType::F32, 1e-6)?, emit.b.scalar(ElementType::F32, most)?);
    let sum = emit.add(norm, small)?;
    let factor = emit.div(most, sum)?;
    let one = emit.b.scalar(ElementType::F32, 1.0)?;
    let factor = emit.b.binary(OpKind::Minimum, factor, one)?;
    for gradient in gradients {
        *gradient = emit.scaled(*gradient, factor)?;
    }
    Ok(norm)
}

//! What is compiled: a module, its entry function and the weights bound to its arguments.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use warpforge_ir::{Func, Module, TensorType, Type};
use warpforge_tensor::Tensor;

use crate::error::{ErrorKind, Result};
use crate::{CustomCalls, InputType, State};

/// Tensors bound to arguments of an entry function, for all runs. Cheap to clone; clones are the same weights.
#[derive(Debug, Clone)]
pub struct Weights {
    id: u64,
    bound: Arc<[Option<Tensor>]>,
}

impl Weights {
    /// Weights by the position of their argument.
    #[must_use]
    pub fn new(bound: Vec<Option<Tensor>>) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self { id: NEXT.fetch_add(1, Ordering::Relaxed), bound: bound.into() }
    }

    /// A number that only clones of these weights have: what a backend keeps its copy under.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The tensor bound to an argument.
    #[must_use]
    pub fn get(&self, argument: usize) -> Option<&Tensor> {
        self.bound.get(argument)?.as_ref()
    }

    /// The bytes of all of them.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bound.iter().flatten().map(|tensor| tensor.bytes().len() as u64).sum()
    }
}

impl Default for Weights {
    fn default() -> Self {
        Self::new(Vec::new())
    }
}

/// An argument that is a value of a state, and the result that is its new content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StateBinding {
    /// The position of the argument.
    pub argument: usize,
    /// The position of the result.
    pub result: usize,
    /// The value of the state.
    pub value: usize,
}

/// Where an argument that is no weight comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// From the run: its position among [`Program::inputs`].
    Input(usize),
    /// From the state: its position among [`Program::bindings`].
    State(usize),
}

/// A module that can be compiled: verified, with an entry function on tensors.
#[derive(Debug, Clone)]
pub struct Program {
    module: Arc<Module>,
    entry: String,
    weights: Weights,
    /// Argument positions that a run gives, and their types.
    inputs: Vec<(usize, TensorType)>,
    outputs: Vec<TensorType>,
    state: Option<Arc<State>>,
    bindings: Vec<StateBinding>,
    calls: CustomCalls,
}

impl Program {
    /// A program of a verified module.
    ///
    /// # Errors
    ///
    /// When there is no such function, it has no body, takes or gives something else than ranked tensors, or a weight
    /// is not of its argument's type.
    pub fn new(module: Arc<Module>, entry: &str, weights: Weights) -> Result<Self> {
        let wrong = |reason: String| ErrorKind::Entry { entry: entry.to_owned(), reason };
        let func = module.function(entry).ok_or_else(|| {
            let names: Vec<String> = module.functions().map(|func| format!("@{}", func.name())).collect();
            let known = if names.is_empty() { "no functions".to_owned() } else { names.join(", ") };
            wrong(format!("there is no such function; the module has {known}"))
        })?;
        if func.body().is_none() {
            return Err(wrong("it is declared but has no body".to_owned()).into());
        }
        let (arguments, results) = types(func);
        let arguments = tensors(arguments, "argument").map_err(wrong)?;
        let outputs = tensors(results, "result").map_err(wrong)?;
        let mut inputs = Vec::new();
        for (position, ty) in arguments.into_iter().enumerate() {
            match weights.get(position) {
                None => inputs.push((position, ty)),
                Some(tensor) => {
                    if let Some(problem) = crate::mismatch(&ty, tensor) {
                        return Err(wrong(format!("the weight of argument {position} {problem}")).into());
                    }
                }
            }
        }
        let (state, bindings, calls) = (None, Vec::new(), CustomCalls::default());
        Ok(Self { module, entry: entry.to_owned(), weights, inputs, outputs, state, bindings, calls })
    }

    /// The program with custom calls of the host.
    #[must_use]
    pub fn with_calls(mut self, calls: CustomCalls) -> Self {
        self.calls = calls;
        self
    }

    /// The custom calls of the host.
    #[must_use]
    pub fn calls(&self) -> &CustomCalls {
        &self.calls
    }

    /// The program with some of its inputs and outputs bound to a state.
    ///
    /// # Errors
    ///
    /// When a binding names no input or output, one twice, or one whose type is not that of the value; all of them are named.
    pub fn with_state(mut self, state: Arc<State>, bindings: Vec<StateBinding>) -> Result<Self> {
        let mut problems = Vec::new();
        for (at, binding) in bindings.iter().enumerate() {
            let &StateBinding { argument, result, value } = binding;
            let input = self.inputs.iter().find(|(position, _)| *position == argument).map(|(_, ty)| ty);
            let named = [("input", input), ("result", self.outputs.get(result))];
            for ((what, ty), position) in named.into_iter().zip([argument, result]) {
                let held = state.types().get(value);
                match (ty, held) {
                    (Some(ty), Some(held)) if known_type(ty).is_none_or(|ty| ty == *held) => {}
                    (Some(ty), Some(held)) => {
                        problems.push(format!("{what} {position} is {ty}, its value {held}"));
                    }
                    (None, _) => problems.push(format!("there is no {what} {position}")),
                    (_, None) => problems.push(format!("there is no value {value}")),
                }
            }
            let same = |other: &StateBinding| {
                other.argument == argument || other.result == result || other.value == value
            };
            if bindings[..at].iter().any(same) {
                problems
                    .push(format!("argument {argument}, result {result} or value {value} is bound twice"));
            }
        }
        if !problems.is_empty() {
            return Err(ErrorKind::State(problems.join("; ")).into());
        }
        self.inputs.retain(|(position, _)| bindings.iter().all(|binding| binding.argument != *position));
        let results = self.outputs.into_iter().enumerate();
        let others = results.filter(|(at, _)| bindings.iter().all(|binding| binding.result != *at));
        self.outputs = others.map(|(_, ty)| ty).collect();
        (self.state, self.bindings) = (Some(state), bindings);
        Ok(self)
    }

    /// The program with the custom calls and bound to the state of another, whose arguments and results have the same positions.
    ///
    /// # Errors
    ///
    /// As [`Program::with_state`].
    pub fn with_state_of(mut self, other: &Self) -> Result<Self> {
        self.calls = other.calls.clone();
        match &other.state {
            Some(state) => self.with_state(Arc::clone(state), other.bindings.clone()),
            None => Ok(self),
        }
    }

    /// The state that it is bound to.
    #[must_use]
    pub fn state(&self) -> Option<&Arc<State>> {
        self.state.as_ref()
    }

    /// The arguments and results that are state.
    #[must_use]
    pub fn bindings(&self) -> &[StateBinding] {
        &self.bindings
    }

    /// Where each argument that is no weight comes from, in order: the numbering of arguments in a graph.
    #[must_use]
    pub fn sources(&self) -> Vec<Source> {
        let count = self.inputs.len() + self.bindings.len() + self.weights.bound.iter().flatten().count();
        let mut inputs = 0..self.inputs.len();
        let source = |position: usize| {
            let bound = self.bindings.iter().position(|binding| binding.argument == position);
            bound.map(Source::State).or_else(|| inputs.next().map(Source::Input))
        };
        (0..count).filter(|&at| self.weights.get(at).is_none()).filter_map(source).collect()
    }

    /// Which results are given, by their positions among all of the function's.
    #[must_use]
    pub fn given_results(&self) -> Vec<usize> {
        let count = self.outputs.len() + self.bindings.len();
        (0..count).filter(|at| self.bindings.iter().all(|binding| binding.result != *at)).collect()
    }

    /// The module.
    #[must_use]
    pub fn module(&self) -> &Arc<Module> {
        &self.module
    }

    /// The bytes of all inputs, weights and results whose sizes are known.
    #[must_use]
    pub fn io_bytes(&self) -> u64 {
        let types = self.inputs.iter().map(|(_, ty)| ty).chain(&self.outputs);
        let bytes = |ty: &TensorType| {
            let len = ty.shape_usize()?.iter().map(|&dim| dim as u64).product::<u64>();
            Some(len * ty.element().storage()?.byte_width() as u64)
        };
        types.filter_map(bytes).sum::<u64>() + self.weights.bytes()
    }

    /// The entry function's name.
    #[must_use]
    pub fn entry(&self) -> &str {
        &self.entry
    }

    /// The weights.
    #[must_use]
    pub fn weights(&self) -> &Weights {
        &self.weights
    }

    /// The arguments that a run gives: those that no weight and no state is bound to, with their positions, in order.
    #[must_use]
    pub fn inputs(&self) -> &[(usize, TensorType)] {
        &self.inputs
    }

    /// The types of the results that a run gives: those that are no state.
    #[must_use]
    pub fn outputs(&self) -> &[TensorType] {
        &self.outputs
    }

    /// Checks the inputs of a run.
    ///
    /// # Errors
    ///
    /// When the inputs are more or fewer than there are, or of other types; all of them are named.
    pub fn check_inputs(&self, inputs: &[Tensor]) -> Result<()> {
        if inputs.len() != self.inputs.len() {
            let (expected, found) = (self.inputs.len(), inputs.len());
            return Err(ErrorKind::Inputs(vec![format!("expected {expected} inputs, found {found}")]).into());
        }
        let pairs = self.inputs.iter().zip(inputs);
        let problems: Vec<String> = pairs
            .filter_map(|((position, ty), tensor)| {
                crate::mismatch(ty, tensor).map(|problem| format!("argument {position} {problem}"))
            })
            .collect();
        if problems.is_empty() { Ok(()) } else { Err(ErrorKind::Inputs(problems).into()) }
    }

    /// All arguments of a run in the function's order: the weights and, between them, the inputs and the values of the state, in
    /// the order of [`Program::bindings`].
    ///
    /// # Errors
    ///
    /// When the inputs are more or fewer than there are, or of other types; all of them are named.
    pub fn arguments(&self, inputs: &[Tensor], state: &[Tensor]) -> Result<Vec<Tensor>> {
        self.check_inputs(inputs)?;
        let mut given = self.sources().into_iter();
        let count = self.inputs.len() + self.bindings.len() + self.weights.bound.iter().flatten().count();
        let argument = |position: usize| match self.weights.get(position) {
            Some(weight) => Some(weight),
            None => match given.next()? {
                Source::Input(at) => inputs.get(at),
                Source::State(at) => state.get(at),
            },
        };
        Ok((0..count).filter_map(argument).cloned().collect())
    }
}

/// The type of a tensor whose sizes are all known.
fn known_type(ty: &TensorType) -> Option<InputType> {
    Some(InputType { element: ty.element().storage()?, dims: ty.shape_usize()? })
}

fn types(func: Func<'_>) -> (&[Type], &[Type]) {
    func.signature().map_or((&[], &[]), |signature| (&signature.inputs, &signature.results))
}

fn tensors(types: &[Type], what: &str) -> std::result::Result<Vec<TensorType>, String> {
    let tensor = |(position, ty): (usize, &Type)| {
        ty.as_tensor()
            .cloned()
            .ok_or_else(|| format!("{what} {position} is of type {ty}, not a ranked tensor"))
    };
    types.iter().enumerate().map(tensor).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpforge_diag::Source;
    use warpforge_snakeburger::text;

    fn module(text: &str) -> Arc<Module> {
        Arc::new(text::parse(&Source::new("m", text), &text::Options::default()).unwrap())
    }

    const PICK: &str =
        "func.func @main(%a: tensor<2xf32>, %w: tensor<1xf32>, %b: tensor<i32>) -> tensor<2xf32> {
        func.return %a : tensor<2xf32>\n}";

    #[test]
    fn weights_stand_between_the_inputs() {
        let weight = Tensor::from_slice(&[1], &[7.0f32]).unwrap();
        let weights = Weights::new(vec![None, Some(weight), None]);
        let program = Program::new(module(PICK), "main", weights).unwrap();
        assert_eq!(program.inputs().iter().map(|(at, _)| *at).collect::<Vec<_>>(), [0, 2]);
        let inputs =
            [Tensor::from_slice(&[2], &[1.0f32, 2.0]).unwrap(), Tensor::from_slice(&[], &[3i32]).unwrap()];
        let all = program.arguments(&inputs, &[]).unwrap();
        assert_eq!(all.iter().map(Tensor::len).collect::<Vec<_>>(), [2, 1, 1]);
        assert_eq!(all[1].as_slice::<f32>().unwrap(), [7.0]);
    }

    #[test]
    fn everything_wrong_with_the_inputs_is_named() {
        let program = Program::new(module(PICK), "main", Weights::default()).unwrap();
        let wrong = [
            Tensor::from_slice(&[3], &[1.0f32; 3]).unwrap(),
            Tensor::from_slice(&[1], &[1i32]).unwrap(),
            Tensor::from_slice(&[], &[3i32]).unwrap(),
        ];
        let text = program.arguments(&wrong, &[]).unwrap_err().to_string();
        assert!(text.contains("argument 0") && text.contains("argument 1") && !text.contains("argument 2"));
        assert!(program.arguments(&wrong[..1], &[]).is_err());
    }

    #[test]
    fn state_is_neither_given_nor_taken() {
        let weight = Tensor::from_slice(&[1], &[7.0f32]).unwrap();
        let program =
            || Program::new(module(PICK), "main", Weights::new(vec![None, Some(weight.clone()), None]));
        let two = Tensor::from_slice(&[2], &[1.0f32, 2.0]).unwrap();
        let state = Arc::new(State::on_host(&[two.clone(), weight.clone()]));
        let bind = |argument, result, value| StateBinding { argument, result, value };
        let bound = program().unwrap().with_state(Arc::clone(&state), vec![bind(0, 0, 0)]).unwrap();
        assert_eq!((bound.inputs().len(), bound.outputs().len()), (1, 0));
        assert_eq!(bound.sources(), [super::Source::State(0), super::Source::Input(0)]);
        let all = bound.arguments(&[Tensor::from_slice(&[], &[3i32]).unwrap()], &[two]).unwrap();
        assert_eq!(all.iter().map(Tensor::len).collect::<Vec<_>>(), [2, 1, 1]);
        let refused =
            |bindings| program().unwrap().with_state(Arc::clone(&state), bindings).unwrap_err().to_string();
        assert!(refused(vec![bind(1, 0, 0)]).contains("there is no input 1"));
        assert!(refused(vec![bind(0, 1, 0)]).contains("there is no result 1"));
        assert!(refused(vec![bind(0, 0, 2)]).contains("there is no value 2"));
        assert!(refused(vec![bind(0, 0, 1)]).contains("input 0 is tensor<2xf32>, its value tensor<1xf32>"));
        assert!(refused(vec![bind(0, 0, 0), bind(2, 0, 0)]).contains("bound twice"));
    }

    #[test]
    fn an_entry_that_cannot_run_is_refused() {
        let refused = |text: &str, entry: &str| {
            Program::new(module(text), entry, Weights::default()).unwrap_err().to_string()
        };
        assert!(refused(PICK, "other").contains("@main"));
        assert!(refused("func.func private @f()", "f").contains("no body"));
        let token = "func.func @f(%t: !stablehlo.token) {\n  func.return\n}";
        assert!(refused(token, "f").contains("argument 0 is of type !stablehlo.token"));
        let weights = Weights::new(vec![Some(Tensor::from_slice(&[1], &[1.0f32]).unwrap())]);
        assert!(Program::new(module(PICK), "main", weights).is_err());
    }
}

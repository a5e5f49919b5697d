//! A program ready to run on inputs of any shape it allows: compiled once for each.

use std::sync::{Arc, Mutex, PoisonError};

use warpforge_ir::TensorType;
use warpforge_tensor::{ElementType, Tensor};

use crate::cache::Cache;
use crate::error::Result;
use crate::registry::{Choice, Target};
use crate::{Backend, Executable, Outcome, Program, RunOptions};

/// Compiled programs that a session keeps at a time.
const KEPT: usize = 32;

/// The type of one input of a run.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct InputType {
    /// Element type.
    pub element: ElementType,
    /// Sizes of the dimensions.
    pub dims: Vec<usize>,
}

impl InputType {
    /// The type of a tensor.
    #[must_use]
    pub fn of(tensor: &Tensor) -> Self {
        Self { element: tensor.element_type(), dims: tensor.dims().to_vec() }
    }
}

impl std::fmt::Display for InputType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let dims: Vec<u64> = self.dims.iter().map(|&dim| dim as u64).collect();
        TensorType::fixed(&dims, self.element).fmt(f)
    }
}

/// Makes the program for given input types, with as few unknown dimensions as possible.
pub trait Specialise: Send + Sync {
    /// The program for inputs of these types, in the order of its inputs.
    ///
    /// # Errors
    ///
    /// When inputs of these types are not allowed.
    fn specialise(&self, inputs: &[InputType]) -> Result<Program>;
}

/// A source of programs, a backend, and what it has compiled so far.
pub struct Session {
    source: Box<dyn Specialise>,
    choice: Choice,
    compiled: Mutex<Cache<Vec<InputType>, Arc<dyn Executable>>>,
}

impl Session {
    /// A session that has compiled nothing yet.
    #[must_use]
    pub fn new(source: Box<dyn Specialise>, choice: Choice) -> Self {
        Self { source, choice, compiled: Mutex::new(Cache::new(KEPT)) }
    }

    /// The backend.
    #[must_use]
    pub fn backend(&self) -> &dyn Backend {
        self.choice.backend.as_ref()
    }

    /// What programs are compiled for.
    #[must_use]
    pub fn target(&self) -> &Target {
        &self.choice.target
    }

    /// How many programs are compiled and kept.
    #[must_use]
    pub fn compiled(&self) -> usize {
        self.compiled.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// The executable for inputs of these types; compiled now, unless it was before.
    ///
    /// # Errors
    ///
    /// When the program does not allow these types, or the backend cannot compile it.
    pub fn prepare(&self, inputs: &[InputType]) -> Result<Arc<dyn Executable>> {
        let lock = || self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = lock().get(&inputs.to_vec()) {
            return Ok(found);
        }
        // Compiled without the lock: a slow compilation for one shape does not hold up runs of another. Two threads
        // may compile the same program; both results are good, and the later one is kept.
        let program = self.source.specialise(inputs)?;
        let executable: Arc<dyn Executable> = Arc::from(self.choice.compile(&program)?);
        lock().insert(inputs.to_vec(), Arc::clone(&executable));
        Ok(executable)
    }

    /// Runs once, compiling first where the shapes are new.
    ///
    /// # Errors
    ///
    /// As [`Session::prepare`] and [`Executable::run`].
    pub fn run(&self, inputs: &[Tensor], options: &RunOptions) -> Result<Outcome> {
        let types: Vec<InputType> = inputs.iter().map(InputType::of).collect();
        self.prepare(&types)?.run(inputs, options)
    }
}

/// A program stands for itself, whatever the inputs: for modules whose shapes are all known.
impl Specialise for Program {
    fn specialise(&self, _: &[InputType]) -> Result<Program> {
        Ok(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CompileOptions, Reference, Weights, choose};
    use warpforge_diag::Source;
    use warpforge_snakeburger::text;

    fn session(text: &str) -> Session {
        let module = text::parse(&Source::new("m", text), &text::Options::default()).unwrap();
        let program = Program::new(Arc::new(module), "main", Weights::default()).unwrap();
        Session::new(Box::new(program), choose(&[Arc::new(Reference)], &CompileOptions::default()).unwrap())
    }

    const DOUBLE: &str = "func.func @main(%a: tensor<2xi32>) -> tensor<2xi32> {
        %0 = stablehlo.add %a, %a : tensor<2xi32>
        func.return %0 : tensor<2xi32>\n}";

    #[test]
    fn a_program_is_compiled_once_for_each_shape() {
        let session = session(DOUBLE);
        assert_eq!(session.compiled(), 0);
        for value in [1i32, 2, 3] {
            let input = Tensor::from_slice(&[2], &[value, 10]).unwrap();
            let outcome = session.run(&[input], &RunOptions::default()).unwrap();
            assert_eq!(outcome.outputs[0].as_slice::<i32>().unwrap(), [2 * value, 20]);
            assert_eq!(session.compiled(), 1);
        }
    }

    #[test]
    fn inputs_of_another_type_are_refused() {
        let wrong = Tensor::from_slice(&[3], &[1i32; 3]).unwrap();
        let error = session(DOUBLE).run(&[wrong], &RunOptions::default()).unwrap_err();
        assert!(error.to_string().contains("is tensor<3xi32>, not tensor<2xi32>"), "{error}");
    }
}

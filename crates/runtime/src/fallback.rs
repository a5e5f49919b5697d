//! Programs that an engine has no form for: the reference runs them as a whole, and says so.

use warpforge_tensor::Tensor;

use crate::{Backend, Executable, Outcome, Program, Reference, Result, RunOptions, Target};

/// A program on the reference.
pub struct ReferenceFallback {
    inner: Box<dyn Executable>,
    reason: String,
}

impl ReferenceFallback {
    /// Compiles a program for the reference, for a reason.
    ///
    /// # Errors
    ///
    /// When the reference cannot run it either.
    pub fn new(program: &Program, target: &Target, reason: String) -> Result<Self> {
        Ok(Self { inner: Reference.compile(program, target)?, reason })
    }
}

impl Executable for ReferenceFallback {
    fn program(&self) -> &Program {
        self.inner.program()
    }

    fn run(&self, inputs: &[Tensor], options: &RunOptions) -> Result<Outcome> {
        self.inner.run(inputs, options)
    }

    fn threads(&self) -> usize {
        self.inner.threads()
    }

    fn peak_memory_bytes(&self) -> Option<u64> {
        self.inner.peak_memory_bytes()
    }

    fn fallbacks(&self) -> Vec<String> {
        vec![format!("@{}: {}", self.program().entry(), self.reason)]
    }
}

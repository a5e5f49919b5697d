//! Falling back: operations that an engine has no kernel for run on the reference interpreter, and are reported.

use std::fmt;

use warpforge_tensor::Tensor;

use crate::{Backend, Executable, Lifetime, Outcome, Program, Reference, Result, RunOptions, Target};

/// An operation that the reference interpreter runs in an engine's place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fallback {
    /// The operation, or the function where a whole program falls back.
    pub operation: String,
    /// Why, where more is known than that there is no kernel.
    pub reason: Option<String>,
    /// Bytes that it reads and writes in a run, through the host where the engine is a device.
    pub bytes: u64,
}

impl fmt::Display for Fallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.reason {
            Some(reason) => write!(f, "{}: {reason}", self.operation),
            None => f.write_str(&self.operation),
        }
    }
}

impl Fallback {
    /// One line that names the operations, each once with its count, and the bytes that they move in a run. `None` where nothing
    /// falls back.
    #[must_use]
    pub fn summary(all: &[Self]) -> Option<String> {
        let mut counts: Vec<(String, usize)> = Vec::new();
        for fallback in all {
            let name = fallback.to_string();
            match counts.iter_mut().find(|(known, _)| *known == name) {
                Some((_, count)) => *count += 1,
                None => counts.push((name, 1)),
            }
        }
        let named = |(name, count): &(String, usize)| match count {
            1 => name.clone(),
            _ => format!("{name} x{count}"),
        };
        let names = counts.iter().map(named).collect::<Vec<_>>().join(", ");
        let bytes: u64 = all.iter().map(|fallback| fallback.bytes).sum();
        (!all.is_empty()).then(|| {
            format!("on the reference interpreter: {names}; {:.1} MB moved in each run", bytes as f64 / 1e6)
        })
    }
}

/// A program that the reference interpreter runs as a whole.
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

    fn lifetimes(&self) -> Vec<Lifetime> {
        self.inner.lifetimes()
    }

    fn fallbacks(&self) -> Vec<Fallback> {
        let program = self.program();
        let operation = format!("@{}", program.entry());
        vec![Fallback { operation, reason: Some(self.reason.clone()), bytes: program.io_bytes() }]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_counts_equal_operations_and_adds_their_bytes() {
        let sort = Fallback { operation: "sort".to_owned(), reason: None, bytes: 1_000_000 };
        let whole =
            Fallback { operation: "@main".to_owned(), reason: Some("a token".to_owned()), bytes: 500_000 };
        assert_eq!(Fallback::summary(&[]), None);
        assert_eq!(
            Fallback::summary(&[sort.clone(), sort, whole]).unwrap(),
            "on the reference interpreter: sort x2, @main: a token; 2.5 MB moved in each run"
        );
    }
}

//! Why a function cannot be refined.

use warpforge_diag::{Diagnostic, Span};

/// Why a function cannot be refined.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RefineError {
    /// There is no such function with a body.
    #[error("there is no function `@{0}` with a body")]
    NoFunction(String),
    /// Not one type is given for each argument.
    #[error("`@{function}` takes {expected} arguments, and {given} types are given")]
    InputCount {
        /// The function.
        function: String,
        /// How many arguments it takes.
        expected: usize,
        /// How many types are given.
        given: usize,
    },
    /// An argument cannot be of the type given.
    #[error("argument {index} is declared as {declared}, which {given} does not fit")]
    Input {
        /// The argument, counted from zero.
        index: usize,
        /// Its type in the module.
        declared: String,
        /// The type given.
        given: String,
    },
    /// With these inputs an operation breaks its constraints: sizes that must be the same are not.
    #[error("{why}")]
    Contradiction {
        /// The constraints, each as `operation: label: what is wrong`.
        why: String,
        /// Where the operation is in its source.
        span: Span,
        /// The location that the operation carries.
        location: Option<String>,
    },
    /// A condition that the module itself sets on its inputs does not hold.
    #[error("{message}")]
    Assertion {
        /// What the module says about it.
        message: String,
        /// Where the assertion is in its source.
        span: Span,
    },
    /// A function calls itself.
    #[error("`@{0}` calls itself in the end")]
    Recursion(String),
    /// Calls nest too deeply.
    #[error("calls nest more than {0} deep")]
    TooDeep(usize),
}

impl RefineError {
    /// The error as a message about a place in the source that the module was read from.
    pub fn diagnostic(&self) -> Diagnostic {
        let (span, location) = match self {
            RefineError::Contradiction { span, location, .. } => (*span, location.as_deref()),
            RefineError::Assertion { span, .. } => (*span, None),
            _ => (Span::NONE, None),
        };
        let diagnostic = Diagnostic::error(span, self.to_string());
        match location {
            Some(location) => diagnostic.with_note(format!("at {location}")),
            None => diagnostic,
        }
    }
}

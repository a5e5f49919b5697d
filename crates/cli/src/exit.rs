//! Exit codes, and errors that carry one.

use std::fmt;
use std::path::Path;
use std::process::ExitCode;

use warpforge_diag::printable;

/// What the program's exit code says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Everything passed.
    Pass = 0,
    /// A check failed: a mismatch, a regression, a failed benchmark.
    CheckFailed = 1,
    /// Bad usage or bad input.
    BadInput = 2,
    /// Not possible here: no such device, library or permission.
    NotPossible = 3,
    /// Too little or too noisy to say.
    Inconclusive = 4,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// An error with the exit code it leads to.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    error: anyhow::Error,
}

impl Failure {
    /// The user's input is wrong.
    pub(crate) fn bad_input(error: impl Into<anyhow::Error>) -> Self {
        Self { exit: Exit::BadInput, error: error.into() }
    }

    /// A check does not hold.
    pub(crate) fn check_failed(error: impl Into<anyhow::Error>) -> Self {
        Self { exit: Exit::CheckFailed, error: error.into() }
    }

    /// The machine or the system does not allow it.
    pub(crate) fn not_possible(error: impl Into<anyhow::Error>) -> Self {
        Self { exit: Exit::NotPossible, error: error.into() }
    }
}

/// Models and their runs: what the input is to blame for, and what is not possible here.
impl From<warpforge::Error> for Failure {
    fn from(error: warpforge::Error) -> Self {
        use warpforge_interp::ErrorKind as Evaluation;
        use warpforge_runtime::ErrorKind as Runtime;
        let exit = match &error {
            warpforge::Error::Stopped { source, .. } => match source.kind() {
                Evaluation::CheckFailed(_) => Exit::CheckFailed,
                Evaluation::Unsupported(_) | Evaluation::Limit(_) => Exit::NotPossible,
                _ => Exit::BadInput,
            },
            warpforge::Error::Runtime(runtime) => match runtime.kind() {
                Runtime::Entry { .. }
                | Runtime::Inputs(_)
                | Runtime::Shapes(_)
                | Runtime::Source(_)
                | Runtime::Threads(_) => Exit::BadInput,
                _ => Exit::NotPossible,
            },
            warpforge::Error::Ranks(warpforge_collective::Error::Engine { .. }) => Exit::NotPossible,
            warpforge::Error::Ranks(_) => Exit::CheckFailed,
            _ => Exit::BadInput,
        };
        // Its text has the causes already.
        Self { exit, error: anyhow::anyhow!("{error}") }
    }
}

impl Failure {
    /// A file of tensors cannot be read.
    pub(crate) fn unreadable(path: &Path, error: &warpforge_tensor::Error) -> Self {
        Self::bad_input(match error {
            // The operating system's reason comes with the path.
            warpforge_tensor::Error::Io { .. } => anyhow::anyhow!("{error}"),
            _ => anyhow::anyhow!("{}: {error}", path.display()),
        })
    }
}

impl Failure {
    /// What is wrong, with its causes.
    pub(crate) fn reason(&self) -> String {
        let mut text = String::new();
        for cause in self.error.chain().map(ToString::to_string) {
            // Many errors have their cause in their own text.
            if text.is_empty() {
                text = cause;
            } else if !text.contains(&cause) {
                text += ": ";
                text += &cause;
            }
        }
        printable(&without_types(&text)).into_owned()
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "warpt: {}", self.reason())
    }
}

/// What readers of JSON and TOML say before the name of a type of this program, and what is said in its place.
const TYPES: [(&str, &str); 7] = [
    ("expected internally tagged enum ", "expected an object"),
    ("expected adjacently tagged enum ", "expected an object"),
    ("expected tuple struct ", "expected an array"),
    ("expected newtype struct ", "expected a value"),
    ("expected struct ", "expected an object"),
    ("expected enum ", "expected a name"),
    ("data did not match any variant of untagged enum ", "a value of a kind that is not known here"),
];

/// What they call numbers.
const NUMBERS: [(&str, &str); 12] = [
    ("f64", "a number"),
    ("f32", "a number"),
    ("usize", "a whole number"),
    ("isize", "a whole number"),
    ("u8", "a whole number"),
    ("u16", "a whole number"),
    ("u32", "a whole number"),
    ("u64", "a whole number"),
    ("i8", "a whole number"),
    ("i16", "a whole number"),
    ("i32", "a whole number"),
    ("i64", "a whole number"),
];

/// Text without the names of this program's types, which readers of JSON and TOML put into what they expect.
fn without_types(text: &str) -> String {
    let mut text = text.to_owned();
    let end = |rest: &str| rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    for (before, instead) in TYPES {
        while let Some(at) = text.find(before) {
            let name = at + before.len();
            text.replace_range(at..name + end(&text[name..]), instead);
        }
    }
    // Elsewhere these are types of elements, which people know.
    if text.contains("invalid type: ") || text.contains("invalid value: ") {
        const BEFORE: &str = ", expected ";
        if let Some(at) = text.rfind(BEFORE).map(|at| at + BEFORE.len()) {
            let range = at..at + end(&text[at..]);
            if let Some((_, instead)) = NUMBERS.iter().find(|(name, _)| *name == &text[range.clone()]) {
                text.replace_range(range, instead);
            }
        }
    }
    text
}

/// What a command returns.
pub(crate) type Outcome = Result<Exit, Failure>;

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context as _;

    #[test]
    fn causes_are_said_once_and_types_not_at_all() {
        let cause = || std::io::Error::from(std::io::ErrorKind::NotFound);
        let twice = anyhow::anyhow!(cause()).context(format!("a.json: {}", cause()));
        assert_eq!(Failure::bad_input(twice).to_string(), format!("warpt: a.json: {}", cause()));
        let types = "invalid type: integer, expected struct Run with 8 elements; expected struct Run";
        assert_eq!(
            without_types(types),
            "invalid type: integer, expected an object with 8 elements; expected an object"
        );
        for (said, shown) in [
            (
                "data did not match any variant of untagged enum Param at line 1",
                "a value of a kind that is not known here at line 1",
            ),
            (
                "invalid type: string \"x\", expected f64 at line 1",
                "invalid type: string \"x\", expected a number at line 1",
            ),
            ("operand 1: tensor<f64>, expected f32", "operand 1: tensor<f64>, expected f32"),
        ] {
            assert_eq!(without_types(said), shown);
        }
        let once = Err::<(), _>(cause()).context("cannot read a.json").unwrap_err();
        assert_eq!(Failure::bad_input(once).to_string(), format!("warpt: cannot read a.json: {}", cause()));
    }
}

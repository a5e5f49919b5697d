//! What can go wrong in an evaluation.

use warpforge_diag::Span;
use warpforge_ir::OpRef;
use warpforge_ir::nodes::Location;

/// An evaluation that stopped.
#[derive(Debug, thiserror::Error)]
#[error("{}{kind}", self.prefix())]
pub struct Error {
    kind: ErrorKind,
    place: Option<Box<Place>>,
}

/// The operation that stopped.
#[derive(Debug)]
struct Place {
    op: String,
    span: Span,
    location: Location,
}

/// Why an evaluation stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The operation, or this form of it, has no evaluator.
    #[error("not supported by the reference: {0}")]
    Unsupported(String),
    /// A check in the program does not hold.
    #[error("check failed: {0}")]
    CheckFailed(String),
    /// The module or its inputs are not what the operation asks for.
    #[error("{0}")]
    Invalid(String),
    /// A custom call of the user has failed.
    #[error("the custom call failed: {0}")]
    CustomCall(String),
    /// A bound of [`Limits`](crate::Limits) was reached.
    #[error("limit reached: {0}")]
    Limit(String),
    /// All processes wait for each other.
    #[error("all processes wait for each other")]
    Deadlock,
    /// Another process failed.
    #[error("another process failed")]
    PeerFailed,
    /// A tensor could not be made.
    #[error(transparent)]
    Tensor(#[from] warpforge_tensor::Error),
    /// A file could not be read or written.
    #[error("{0}")]
    File(String),
}

impl Error {
    /// An evaluation that an observer stops at what an operation gave.
    #[must_use]
    pub fn stopped(op: OpRef<'_>, reason: String) -> Self {
        check_failed(reason).at(op)
    }

    /// Why the evaluation stopped.
    #[must_use]
    pub fn kind(&self) -> &ErrorKind {
        &self.kind
    }

    /// The name of the operation that stopped.
    #[must_use]
    pub fn op(&self) -> Option<&str> {
        self.place.as_ref().map(|place| place.op.as_str())
    }

    /// Where the operation is in its source.
    #[must_use]
    pub fn span(&self) -> Span {
        self.place.as_ref().map_or(Span::NONE, |place| place.span)
    }

    /// The node and the line of the program that the operation was made from, where the module says so.
    #[must_use]
    pub fn location(&self) -> Option<&Location> {
        self.place.as_ref().map(|place| &place.location)
    }

    fn prefix(&self) -> String {
        self.op().map(|op| format!("{op}: ")).unwrap_or_default()
    }

    /// Notes the operation, unless an inner one is noted already.
    pub(crate) fn at(mut self, op: OpRef<'_>) -> Self {
        self.place.get_or_insert_with(|| {
            let location = op.module().parsed_location(op.id());
            Box::new(Place { op: op.name().to_owned(), span: op.span(), location })
        });
        self
    }
}

impl From<ErrorKind> for Error {
    fn from(kind: ErrorKind) -> Self {
        Self { kind, place: None }
    }
}

impl From<warpforge_tensor::Error> for Error {
    fn from(error: warpforge_tensor::Error) -> Self {
        ErrorKind::from(error).into()
    }
}

/// The result of an evaluation.
pub type Result<T> = std::result::Result<T, Error>;

pub(crate) fn invalid(text: impl Into<String>) -> Error {
    ErrorKind::Invalid(text.into()).into()
}

pub(crate) fn unsupported(text: impl Into<String>) -> Error {
    ErrorKind::Unsupported(text.into()).into()
}

pub(crate) fn check_failed(text: impl Into<String>) -> Error {
    ErrorKind::CheckFailed(text.into()).into()
}

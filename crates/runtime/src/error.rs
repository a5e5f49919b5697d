//! What can go wrong between a module and its results.

use std::fmt;

use warpforge_fusion::ImportError;

use crate::{Device, Precision, Tier};

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct Error {
    kind: Box<ErrorKind>,
}

/// What went wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// No backend has this device and tier here.
    #[error("no backend runs on {device}{}; there is {}{}", at_tier(*tier), listed(offers), lines(reasons))]
    Unavailable {
        /// The device asked for.
        device: Device,
        /// The tier asked for.
        tier: Option<Tier>,
        /// What there is instead.
        offers: Vec<Offer>,
        /// Why there is no such device, where somebody knows.
        reasons: Vec<String>,
    },
    /// The backend cannot compute in this precision.
    #[error("{backend} cannot compute in precision `{precision}`; it has {}", names(known))]
    Precision {
        /// The backend.
        backend: &'static str,
        /// The precision asked for.
        precision: Precision,
        /// The precisions that it has.
        known: Vec<Precision>,
    },
    /// Only the reference interpreter runs some operations, and that was refused.
    #[error(
        "only the reference interpreter runs:{}\nrun without --no-fallback to allow it",
        lines(operations)
    )]
    Fallback {
        /// Each operation with its reason.
        operations: Vec<String>,
    },
    /// The backend cannot do something that the run asks for.
    #[error("{backend} cannot {what}")]
    NotOffered {
        /// The backend.
        backend: &'static str,
        /// What was asked for, as a verb: `observe values`.
        what: String,
    },
    /// The module has operations that the backend cannot run.
    #[error("{backend} cannot run:{}", lines(operations))]
    Unsupported {
        /// The backend.
        backend: &'static str,
        /// Each operation with its reason.
        operations: Vec<String>,
    },
    /// The backend failed while it compiled or ran.
    #[error("{backend}: {reason}")]
    Failed {
        /// The backend.
        backend: &'static str,
        /// What happened.
        reason: String,
    },
    /// No run can use so many threads.
    #[error("{0}")]
    Threads(String),
    /// The entry function cannot be run.
    #[error("@{entry}: {reason}")]
    Entry {
        /// Its name.
        entry: String,
        /// Why.
        reason: String,
    },
    /// The inputs do not fit the arguments.
    #[error("the inputs do not fit:{}", lines(.0))]
    Inputs(Vec<String>),
    /// The state does not fit the program, or cannot be used.
    #[error("the state: {0}")]
    State(String),
    /// The module cannot be made to fit the inputs' shapes.
    #[error("the module does not fit these shapes: {0}")]
    Shapes(String),
    /// The program for these shapes cannot be made.
    #[error(transparent)]
    Source(Box<dyn std::error::Error + Send + Sync>),
    /// The evaluation stopped.
    #[error(transparent)]
    Evaluation(#[from] warpforge_interp::Error),
}

impl ErrorKind {
    /// Why a backend has no plan of a function.
    #[must_use]
    pub fn import(backend: &'static str, error: &ImportError) -> Self {
        match error {
            ImportError::TooManyOps { function, .. } => {
                ErrorKind::Entry { entry: function.clone(), reason: error.to_string() }
            }
            _ => ErrorKind::Unsupported { backend, operations: vec![error.to_string()] },
        }
    }
}

/// A device at a tier, and the backend that has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// The backend.
    pub backend: &'static str,
    /// The device.
    pub device: Device,
    /// The tier.
    pub tier: Tier,
}

impl fmt::Display for Offer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at tier {} ({})", self.device, self.tier, self.backend)
    }
}

impl Error {
    /// What went wrong.
    #[must_use]
    pub fn kind(&self) -> &ErrorKind {
        &self.kind
    }

    /// What went wrong, taken out.
    #[must_use]
    pub fn into_kind(self) -> ErrorKind {
        *self.kind
    }
}

impl From<ErrorKind> for Error {
    fn from(kind: ErrorKind) -> Self {
        Self { kind: Box::new(kind) }
    }
}

impl From<warpforge_interp::Error> for Error {
    fn from(error: warpforge_interp::Error) -> Self {
        ErrorKind::from(error).into()
    }
}

/// The result of something here.
pub type Result<T> = std::result::Result<T, Error>;

fn at_tier(tier: Option<Tier>) -> String {
    tier.map_or_else(String::new, |tier| format!(" at tier {tier}"))
}

fn listed(offers: &[Offer]) -> String {
    if offers.is_empty() {
        return "none at all".to_owned();
    }
    offers.iter().map(Offer::to_string).collect::<Vec<_>>().join(", ")
}

fn names(precisions: &[Precision]) -> String {
    precisions.iter().map(Precision::to_string).collect::<Vec<_>>().join(", ")
}

/// One indented line each.
fn lines(items: &[String]) -> String {
    items.iter().map(|item| format!("\n  {item}")).collect()
}

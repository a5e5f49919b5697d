//! How to compile and how to run.

use std::convert::Infallible;
use std::fmt;
use std::num::NonZeroUsize;
use std::str::FromStr;
use std::sync::Arc;

use warpforge_interp::Observer;

use crate::{Device, Tier};

/// In which number formats a program computes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Precision {
    /// As the module says.
    #[default]
    Model,
    /// Another one, by the name that a backend may know it by: `bf16`, `tf32`, …
    Named(String),
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Precision::Model => f.write_str("model"),
            Precision::Named(name) => f.write_str(name),
        }
    }
}

impl FromStr for Precision {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(if text == "model" { Precision::Model } else { Precision::Named(text.to_owned()) })
    }
}

/// How to compile.
#[derive(Debug, Clone, Default)]
pub struct CompileOptions {
    /// Where the program is to run.
    pub device: Device,
    /// How; the best tier that the device has when left out.
    pub tier: Option<Tier>,
    /// In which number formats.
    pub precision: Precision,
    /// The most host threads that a run may use; left out, the backend decides.
    pub threads: Option<NonZeroUsize>,
}

/// How to run once.
#[derive(Clone, Default)]
pub struct RunOptions {
    /// Collect profile events.
    pub profile: bool,
    /// Sees every value in the correctness tier, where
    /// [`Capabilities::observes_values`](crate::Capabilities::observes_values).
    pub observer: Option<Arc<dyn Observer>>,
}

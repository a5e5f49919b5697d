//! Operating system, tools, frameworks and libraries.

use serde::{Deserialize, Serialize};

/// The machine's software.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Software {}

impl Software {
    pub(crate) fn detect() -> Self {
        Self {}
    }
}

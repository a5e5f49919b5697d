//! Operating system, tools, frameworks and libraries.

mod os;

use std::path::Path;

use serde::{Deserialize, Serialize};

pub use os::Os;

/// The machine's software.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Software {
    /// The operating system and its kernel.
    pub os: Os,
}

impl Software {
    pub(crate) fn detect() -> Self {
        Self { os: Os::read(Path::new("/")) }
    }
}

//! Custom calls that whoever runs a program provides: functions of the host that are operations of the module.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use warpforge_interp::{CustomCall, Options};

/// Custom calls by their targets. Cheap to clone.
#[derive(Clone, Default)]
pub struct CustomCalls(Arc<HashMap<String, Arc<dyn CustomCall>>>);

impl CustomCalls {
    /// The calls of these targets.
    #[must_use]
    pub fn new(calls: HashMap<String, Arc<dyn CustomCall>>) -> Self {
        Self(Arc::new(calls))
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How the reference evaluates operations that may be such calls.
    #[must_use]
    pub fn options(&self) -> Options {
        Options { custom_calls: HashMap::clone(&self.0), ..Options::default() }
    }
}

impl fmt::Debug for CustomCalls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

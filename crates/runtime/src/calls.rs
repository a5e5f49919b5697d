//! Custom calls that whoever runs a program provides: functions of the host that are operations of the module.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use warpforge_interp::{CustomCall, Options};

use crate::DeviceGroup;

/// Calls that average values over ranks, which a device that is connected to those of the other ranks makes itself.
///
/// `start` takes values, where its first operand is a boolean only if that is true, and gives a number; its `backend_config` says which of
/// how many of a run it is, such as `0/3`. `done` takes that number and gives the values' averages, those that were not to be
/// averaged as they were. Sums are those of f32, and of f64 for values of f64; they are divided by the number of ranks.
#[derive(Debug, Clone)]
pub struct DeviceReduction {
    /// The target that starts one.
    pub start: &'static str,
    /// The target that waits for its end.
    pub done: &'static str,
    /// The device among those of the other ranks.
    pub group: Arc<dyn DeviceGroup>,
}

/// Custom calls by their targets. Cheap to clone.
#[derive(Clone, Default)]
pub struct CustomCalls {
    all: Arc<HashMap<String, Arc<dyn CustomCall>>>,
    reduction: Option<DeviceReduction>,
}

impl CustomCalls {
    /// The calls of these targets.
    #[must_use]
    pub fn new(calls: HashMap<String, Arc<dyn CustomCall>>) -> Self {
        Self { all: Arc::new(calls), reduction: None }
    }

    /// The same, with some made by the device of whoever compiles them.
    #[must_use]
    pub fn with_reduction(self, reduction: DeviceReduction) -> Self {
        Self { reduction: Some(reduction), ..self }
    }

    /// The calls that a device makes.
    #[must_use]
    pub fn reduction(&self) -> Option<&DeviceReduction> {
        self.reduction.as_ref()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// How the reference evaluates operations that may be such calls.
    #[must_use]
    pub fn options(&self) -> Options {
        Options { custom_calls: HashMap::clone(&self.all), ..Options::default() }
    }
}

impl fmt::Debug for CustomCalls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.all.keys()).finish()
    }
}

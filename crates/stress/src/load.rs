//! What a test does again and again, and what it finds.

use serde::{Deserialize, Serialize};

use crate::error::StressError;

/// Differences kept of one iteration; the others are only counted.
const MOST_KEPT: usize = 16;

/// A result that is not what it must be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mismatch {
    /// The iteration, from 1.
    #[serde(default)]
    pub iteration: u64,
    /// What was compared.
    pub what: String,
    /// Where: the core, the offset in memory, the block of the file, the element of the result.
    pub location: String,
    /// What had to be there.
    pub expected: String,
    /// What was there.
    pub found: String,
}

/// What one iteration did.
#[derive(Debug, Default)]
pub(crate) struct Work {
    /// How much, in the unit of the test.
    pub(crate) amount: f64,
    /// Differences, all counted.
    pub(crate) errors: u64,
    /// The first of them.
    pub(crate) mismatches: Vec<Mismatch>,
}

impl Work {
    pub(crate) fn of(amount: f64) -> Self {
        Self { amount, ..Self::default() }
    }

    /// Notes a difference.
    pub(crate) fn mismatch(
        &mut self,
        what: impl Into<String>,
        location: impl Into<String>,
        expected: impl std::fmt::Display,
        found: impl std::fmt::Display,
    ) {
        self.errors += 1;
        if self.mismatches.len() < MOST_KEPT {
            self.mismatches.push(Mismatch {
                iteration: 0,
                what: what.into(),
                location: location.into(),
                expected: expected.to_string(),
                found: found.to_string(),
            });
        }
    }

    /// Takes over what another part of the iteration did and found.
    pub(crate) fn add(&mut self, other: Self) {
        self.amount += other.amount;
        self.errors += other.errors;
        let room = MOST_KEPT.saturating_sub(self.mismatches.len());
        self.mismatches.extend(other.mismatches.into_iter().take(room));
    }
}

/// The circumstances of one iteration.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Iteration {
    /// From 1.
    pub(crate) number: u64,
    /// Whether one result is to be falsified before it is checked, which tests of the checks ask for.
    pub(crate) falsify: bool,
}

/// A load on one part of the machine.
pub(crate) trait Load {
    /// Does one piece of work, no longer than about a second, and checks its result.
    fn iterate(&mut self, iteration: Iteration) -> Result<Work, StressError>;

    /// What a reader should know about how the load is made.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
}

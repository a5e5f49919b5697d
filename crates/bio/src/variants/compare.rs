//! Calls against a truth.

use std::collections::HashSet;

use super::Variant;

/// How many calls are right and how many variants were found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Accuracy {
    /// Calls that are in the truth.
    pub true_positives: usize,
    /// Calls that are not.
    pub false_positives: usize,
    /// Variants that were not called.
    pub false_negatives: usize,
}

impl Accuracy {
    /// Part of the calls that are right.
    #[must_use]
    pub fn precision(&self) -> f64 {
        share(self.true_positives, self.false_positives)
    }

    /// Part of the variants that were found.
    #[must_use]
    pub fn recall(&self) -> f64 {
        share(self.true_positives, self.false_negatives)
    }

    /// The harmonic mean of both.
    #[must_use]
    pub fn f1(&self) -> f64 {
        let sum = 2 * self.true_positives + self.false_positives + self.false_negatives;
        if sum == 0 { 0.0 } else { 2.0 * self.true_positives as f64 / sum as f64 }
    }
}

fn share(part: usize, rest: usize) -> f64 {
    if part + rest == 0 { 0.0 } else { part as f64 / (part + rest) as f64 }
}

/// Compares normalized variants by position and alleles.
#[must_use]
pub fn compare(truth: &[Variant], calls: &[Variant]) -> Accuracy {
    let key = |variant: &Variant| (variant.position, variant.reference.clone(), variant.alternate.clone());
    let truth: HashSet<_> = truth.iter().map(key).collect();
    let calls: HashSet<_> = calls.iter().map(key).collect();
    let found = truth.intersection(&calls).count();
    Accuracy {
        true_positives: found,
        false_positives: calls.len() - found,
        false_negatives: truth.len() - found,
    }
}

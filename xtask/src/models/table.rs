//! The table of models.

use std::fmt;

/// One model in one form.
pub(super) struct Row {
    /// MODEL/FORM, and where it ran.
    pub(super) name: String,
    /// How long reading, compiling and running took.
    pub(super) seconds: f64,
    /// What came of it.
    pub(super) verdict: Verdict,
}

/// How a model's results compare with PyTorch's.
pub(super) enum Verdict {
    /// All within their tolerances.
    Pass {
        /// How many results there are.
        results: usize,
        /// The largest error, relative to the largest value of its tensor.
        worst: f64,
    },
    /// A result is wrong or missing.
    Fail {
        /// Which, and how.
        reason: String,
    },
    /// It could not be imported or run.
    Refused {
        /// What warpt said.
        message: String,
    },
    /// There is nothing to compare it with.
    Skipped {
        /// Why PyTorch gave nothing.
        reason: String,
    },
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<70} {:>7.1} s  ", self.name, self.seconds)?;
        match &self.verdict {
            Verdict::Pass { results, worst } => write!(f, "PASS  {results} results, worst error {worst:.1e}"),
            Verdict::Fail { reason } => write!(f, "FAIL  {reason}"),
            Verdict::Refused { message } => write!(f, "REFUSED  {message}"),
            Verdict::Skipped { reason } => write!(f, "SKIPPED  PyTorch: {reason}"),
        }
    }
}

/// How many of each.
pub(super) fn summary(rows: &[Row]) -> String {
    let count = |wanted: fn(&Verdict) -> bool| rows.iter().filter(|row| wanted(&row.verdict)).count();
    format!(
        "{} passed, {} failed, {} refused, {} skipped",
        count(|verdict| matches!(verdict, Verdict::Pass { .. })),
        count(|verdict| matches!(verdict, Verdict::Fail { .. })),
        count(|verdict| matches!(verdict, Verdict::Refused { .. })),
        count(|verdict| matches!(verdict, Verdict::Skipped { .. }))
    )
}

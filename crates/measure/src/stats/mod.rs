//! Summaries of samples and comparisons of two sets of them.

use serde::{Deserialize, Serialize};

/// How many samples lie far from the rest, by Tukey's fences (1.5 and 3 interquartile ranges).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outliers {
    /// More than 3 interquartile ranges below the first quartile.
    pub low_severe: usize,
    /// 1.5 to 3 interquartile ranges below.
    pub low_mild: usize,
    /// 1.5 to 3 interquartile ranges above the third quartile.
    pub high_mild: usize,
    /// More than 3 interquartile ranges above.
    pub high_severe: usize,
}

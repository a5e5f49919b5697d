//! Tiers: how a program runs, from the fastest to the most traceable.

use std::fmt;
use std::str::FromStr;

/// How a program runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Tier {
    /// Fused, with vendor libraries and the best kernels.
    Production,
    /// The plan of production on our own instrumented kernels.
    Observable,
    /// The reference, operation by operation, every value traceable.
    Correctness,
}

impl Tier {
    /// All tiers, the fastest first.
    pub const ALL: [Tier; 3] = [Tier::Production, Tier::Observable, Tier::Correctness];

    /// The word for it on the command line and in records.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Tier::Production => "production",
            Tier::Observable => "observable",
            Tier::Correctness => "correctness",
        }
    }
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Tier {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Tier::ALL.into_iter().find(|tier| tier.name() == text);
        found.ok_or_else(|| format!("`{text}` is no tier; there are production, observable and correctness"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back_and_the_fastest_is_first() {
        for tier in Tier::ALL {
            assert_eq!(tier.to_string().parse(), Ok(tier));
        }
        assert!(Tier::ALL.is_sorted());
        assert!("fast".parse::<Tier>().is_err());
    }
}

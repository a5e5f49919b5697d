//! Which values of a trace to keep whole.

/// Patterns, one of which must fit. `*` stands for any text; without one the pattern is the whole name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    patterns: Vec<String>,
}

impl Filter {
    /// A filter that keeps what one of these patterns fits; without patterns, everything.
    #[must_use]
    pub fn new(patterns: impl IntoIterator<Item = String>) -> Self {
        Self { patterns: patterns.into_iter().collect() }
    }

    /// Whether one of these names fits.
    pub(super) fn keeps(&self, names: &[&str]) -> bool {
        let fits = |pattern: &String| names.iter().any(|name| matches(pattern, name));
        self.patterns.is_empty() || self.patterns.iter().any(fits)
    }
}

/// Whether a name is what a pattern says.
fn matches(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    // The earliest place for each part leaves the most room for those after it.
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_any_text() {
        for (pattern, name, expected) in [
            ("stablehlo.add", "stablehlo.add", true),
            ("stablehlo.add", "stablehlo.add2", false),
            ("stablehlo.*", "stablehlo.add", true),
            ("*add", "stablehlo.add", true),
            ("*.a*d", "stablehlo.add", true),
            ("a*a", "a", false),
            ("*b*b*", "abc", false),
            ("*", "", true),
            ("", "x", false),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} on {name}");
        }
    }

    #[test]
    fn any_pattern_may_fit_any_name() {
        let filter = Filter::new(["relu*".to_owned(), "main/3:0/0".to_owned()]);
        assert!(filter.keeps(&["stablehlo.maximum", "relu_1"]));
        assert!(!filter.keeps(&["stablehlo.maximum"]));
        assert!(Filter::default().keeps(&["anything"]));
    }
}

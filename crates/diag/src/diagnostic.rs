//! Diagnostics and collections of them.

use std::fmt;

use crate::{Source, Span, printable};

/// How bad a diagnostic is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Something worth knowing.
    Warning,
    /// The input is refused.
    Error,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Severity::Warning => "warning",
            Severity::Error => "error",
        })
    }
}

/// One message about one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// Where it is; [`Span::NONE`] when there is no source.
    pub span: Span,
    /// The rule that is broken, such as `stablehlo.add: C1`; empty for syntax.
    pub rule: String,
    /// What is wrong.
    pub message: String,
    /// Further lines: what was expected, what to do.
    pub notes: Vec<String>,
}

impl Diagnostic {
    /// An error at a place.
    pub fn error(span: Span, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { severity: Severity::Error, span, rule: String::new(), message, notes: Vec::new() }
    }

    /// A warning at a place.
    pub fn warning(span: Span, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(span, message) }
    }

    /// Names the rule that is broken.
    #[must_use]
    pub fn with_rule(mut self, rule: impl Into<String>) -> Self {
        self.rule = rule.into();
        self
    }

    /// Adds a line below the message.
    #[must_use]
    pub fn with_note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    /// The diagnostic as text: `file:line:column: error: message`, the source line and a caret below the place.
    pub fn render(&self, source: &Source) -> String {
        use fmt::Write as _;
        let mut out = String::new();
        out.push_str(&printable(source.name()));
        let located = !self.span.is_none();
        if located && source.is_binary() {
            let _ = write!(out, ":byte {}", self.span.start);
        } else if located {
            let _ = write!(out, ":{}", source.position(self.span.start));
        }
        let _ = write!(out, ": {}: ", self.severity);
        if !self.rule.is_empty() {
            let _ = write!(out, "{}: ", printable(&self.rule));
        }
        out.push_str(&printable(&self.message));
        if located && !source.is_binary() {
            self.render_line(source, &mut out);
        }
        for note in &self.notes {
            let _ = write!(out, "\n  note: {}", printable(note));
        }
        out
    }

    fn render_line(&self, source: &Source, out: &mut String) {
        /// Longest piece of a source line that is shown: constants make lines of megabytes.
        const SHOWN: usize = 120;
        let line: Vec<char> = source.line_at(self.span.start).chars().take(1 << 20).collect();
        let column = source.shown_column(self.span.start);
        let first = if column > SHOWN - 20 { column - SHOWN / 2 } else { 0 }.min(line.len());
        let last = (first + SHOWN).min(line.len());
        out.push_str("\n  ");
        let lead = if first > 0 { "…" } else { "" };
        out.push_str(lead);
        // Tabs become one blank each, so that the caret stands below its character.
        out.extend(line[first..last].iter().map(|&c| if c.is_control() { ' ' } else { c }));
        if last < line.len() {
            out.push('…');
        }
        let width = (self.span.end.saturating_sub(self.span.start) as usize).max(1);
        let indent = column.saturating_sub(first) + lead.chars().count();
        let width = width.min(last.saturating_sub(column).max(1));
        out.push_str("\n  ");
        out.extend(std::iter::repeat_n(' ', indent));
        out.push('^');
        out.extend(std::iter::repeat_n('~', width - 1));
    }
}

/// What one reader or checker has to say about one source.
#[derive(Clone, Debug)]
pub struct Diagnostics {
    source: Source,
    items: Vec<Diagnostic>,
}

impl Diagnostics {
    /// An empty collection about a source.
    pub fn new(source: Source) -> Self {
        Self { source, items: Vec::new() }
    }

    /// The source that the spans point into.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// Adds a diagnostic.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        self.items.push(diagnostic);
    }

    /// All of them, in the order found.
    pub fn items(&self) -> &[Diagnostic] {
        &self.items
    }

    /// Whether one of them is an error.
    pub fn has_errors(&self) -> bool {
        self.items.iter().any(|d| d.severity == Severity::Error)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
}

impl Extend<Diagnostic> for Diagnostics {
    fn extend<I: IntoIterator<Item = Diagnostic>>(&mut self, items: I) {
        self.items.extend(items);
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, item) in self.items.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            f.write_str(&item.render(&self.source))?;
        }
        Ok(())
    }
}

impl std::error::Error for Diagnostics {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diagnostic_shows_place_line_and_caret() {
        let source = Source::new("m.mlir", "module {\n  %0 = bogus %1\n}\n");
        let item = Diagnostic::error(Span::new(16, 21), "unknown operation")
            .with_rule("stablehlo.add: C1")
            .with_note("did you mean `add`?");
        assert_eq!(
            item.render(&source),
            "m.mlir:2:8: error: stablehlo.add: C1: unknown operation\n    %0 = bogus %1\n         ^~~~~\n  note: did you mean `add`?"
        );
    }

    #[test]
    fn a_very_long_line_is_cut_around_the_place() {
        let text = format!("{}X{}", "a".repeat(5000), "b".repeat(5000));
        let source = Source::new("m", text);
        let shown = Diagnostic::error(Span::new(5000, 5001), "here").render(&source);
        let lines: Vec<&str> = shown.lines().collect();
        assert!(lines[1].chars().count() < 130, "{}", lines[1].len());
        let caret = lines[2].chars().position(|c| c == '^').unwrap();
        assert_eq!(lines[1].chars().nth(caret), Some('X'));
    }

    #[test]
    fn names_from_files_cannot_command_the_terminal() {
        let shown = Diagnostic::error(Span::NONE, "`\u{1b}[2J` is not known").with_note("\u{7}");
        assert_eq!(
            shown.render(&Source::binary("a\u{1b}")),
            "a\\u{1b}: error: `\\u{1b}[2J` is not known\n  note: \\u{7}"
        );
    }

    #[test]
    fn a_binary_source_shows_the_byte() {
        let shown = Diagnostic::error(Span::at(12), "cut off").render(&Source::binary("a.bc"));
        assert_eq!(shown, "a.bc:byte 12: error: cut off");
    }

    #[test]
    fn collections_tell_errors_from_warnings() {
        let mut all = Diagnostics::new(Source::new("m", "x"));
        all.push(Diagnostic::warning(Span::NONE, "odd"));
        assert!(!all.has_errors());
        all.push(Diagnostic::error(Span::at(0), "bad"));
        assert!(all.has_errors());
        assert_eq!(all.to_string(), "m: warning: odd\nm:1:1: error: bad\n  x\n  ^");
    }
}

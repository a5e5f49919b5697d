//! What text is rendered for: colours, and how many columns there are.

use unicode_width::UnicodeWidthStr as _;

use crate::table::Style;
use crate::wrap::wrap;

/// A terminal, or a file, which has no colours and no end to its lines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Screen {
    /// Whether to write colour codes.
    pub colour: bool,
    /// The longest line; none where lines may have any length.
    pub columns: Option<usize>,
}

impl Screen {
    /// No colours, lines of any length.
    pub const PLAIN: Self = Self { colour: false, columns: None };

    /// The screen without so many columns on its left.
    #[must_use]
    pub fn indented(self, by: usize) -> Self {
        Self { columns: self.columns.map(|columns| columns.saturating_sub(by).max(1)), ..self }
    }

    /// The columns for text after what stands to its left; where there are next to none, lines are longer instead.
    fn room(self, left: usize) -> usize {
        const LEAST: usize = 10;
        self.columns.map_or(usize::MAX, |columns| columns.saturating_sub(left).max(LEAST))
    }

    /// Text in the colour of a style.
    #[must_use]
    pub fn paint(self, style: Style, text: &str) -> String {
        if self.colour && !text.is_empty() { style.paint(text) } else { text.to_owned() }
    }

    /// A label with text beside it, wrapped at words; what follows the first line stands below the text. What would
    /// command the terminal becomes a space.
    #[must_use]
    pub fn labelled(self, label: &str, text: &str) -> String {
        let clean = |text: &str| text.replace(|c: char| c.is_control(), " ");
        let (label, text) = (clean(label), clean(text));
        let room = self.room(label.width());
        let below = " ".repeat(label.width());
        let mut out = String::new();
        for (at, line) in wrap(&text, room).iter().enumerate() {
            out += format!("{}{line}", if at == 0 { &label } else { &below }).trim_end();
            out.push('\n');
        }
        out
    }

    /// A line of prose with its line break, wrapped at words; what follows the first line is indented by `hanging`.
    /// What would command the terminal becomes a space.
    #[must_use]
    pub fn line(self, style: Style, hanging: usize, text: &str) -> String {
        let clean = text.replace(|c: char| c.is_control(), " ");
        if self.columns.is_none() {
            return self.paint(style, &clean) + "\n";
        }
        let lead = clean.len() - clean.trim_start().len();
        let hanging = " ".repeat(lead + hanging);
        let lines = wrap(clean.trim_start(), self.room(hanging.len()));
        let mut out = String::new();
        for (at, line) in lines.iter().enumerate() {
            let before = if at == 0 { &clean[..lead] } else { &hanging };
            out += &self.paint(style, &format!("{before}{line}"));
            out.push('\n');
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prose_is_wrapped_where_there_is_an_end() {
        let text = "  one two three four";
        assert_eq!(Screen::PLAIN.line(Style::Plain, 2, text), "  one two three four\n");
        let narrow = Screen { colour: false, columns: Some(15) };
        assert_eq!(narrow.line(Style::Plain, 2, text), "  one two\n    three four\n");
        assert_eq!(narrow.line(Style::Bad, 0, "a\u{1b}[2J"), "a [2J\n");
        let coloured = Screen { colour: true, ..narrow };
        assert_eq!(coloured.line(Style::Bad, 0, "x"), "\u{1b}[31mx\u{1b}[0m\n");
        assert_eq!(narrow.labelled("  x  ", "a b c d e f"), "  x  a b c d e\n     f\n");
        assert_eq!(
            narrow.labelled("a long label: ", "one two three"),
            "a long label: one two\n              three\n"
        );
        assert_eq!(narrow.indented(20).columns, Some(1));
    }
}

//! A table, as aligned text or as Markdown.

use std::fmt::Write as _;

use unicode_width::UnicodeWidthStr as _;

/// On which side a column's text stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// Text.
    Left,
    /// Numbers.
    Right,
}

/// How a row is coloured on a terminal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Style {
    /// As everything else.
    #[default]
    Plain,
    /// Good news.
    Good,
    /// Bad news.
    Bad,
    /// Nothing to see, or not known.
    Faint,
}

impl Style {
    /// The text with the terminal's colour codes around it.
    #[must_use]
    pub fn paint(self, text: &str) -> String {
        let code = match self {
            Self::Plain => return text.to_owned(),
            Self::Good => 32,
            Self::Bad => 31,
            Self::Faint => 2,
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }
}

/// Rows under a header.
#[derive(Debug, Clone)]
pub struct Table {
    columns: Vec<(String, Align)>,
    rows: Vec<(Style, Vec<String>)>,
}

impl Table {
    /// An empty table with these columns.
    #[must_use]
    pub fn new<'a>(columns: impl IntoIterator<Item = &'a (impl AsRef<str> + 'a, Align)>) -> Self {
        let columns = columns.into_iter().map(|(name, align)| (name.as_ref().to_owned(), *align));
        Self { columns: columns.collect(), rows: Vec::new() }
    }

    /// Adds a row; cells that are missing are empty, superfluous ones are left out. A cell is one line: what would
    /// break it, or command the terminal, becomes a space.
    pub fn row(&mut self, style: Style, cells: impl IntoIterator<Item = String>) {
        let clean = |cell: String| cell.replace(|c: char| c.is_control(), " ");
        let mut cells: Vec<String> = cells.into_iter().map(clean).collect();
        cells.resize(self.columns.len(), String::new());
        self.rows.push((style, cells));
    }

    /// Whether there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The table for a terminal: columns aligned by the width they are displayed with.
    #[must_use]
    pub fn to_text(&self, colour: bool) -> String {
        let widths: Vec<usize> = self
            .columns
            .iter()
            .enumerate()
            .map(|(i, (header, _))| {
                self.rows.iter().map(|(_, cells)| cells[i].width()).fold(header.width(), usize::max)
            })
            .collect();
        let line = |cells: &[&str]| {
            let mut line = String::new();
            for ((cell, width), (_, align)) in cells.iter().zip(&widths).zip(&self.columns) {
                let space = " ".repeat(width.saturating_sub(cell.width()));
                match align {
                    Align::Left => write!(line, "{cell}{space}  "),
                    Align::Right => write!(line, "{space}{cell}  "),
                }
                .expect("writing to a string cannot fail");
            }
            line.trim_end().to_owned()
        };
        let headers: Vec<&str> = self.columns.iter().map(|(header, _)| header.as_str()).collect();
        let mut text = line(&headers) + "\n";
        for (style, cells) in &self.rows {
            let row = line(&cells.iter().map(String::as_str).collect::<Vec<_>>());
            text += &if colour { style.paint(&row) } else { row };
            text.push('\n');
        }
        text
    }

    /// The table for a Markdown page.
    #[must_use]
    pub fn to_markdown(&self) -> String {
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        let headers: Vec<String> = self.columns.iter().map(|(header, _)| escape(header)).collect();
        let rule = |align: &Align| if *align == Align::Left { "---" } else { "---:" };
        let rules: Vec<String> = self.columns.iter().map(|(_, align)| rule(align).to_owned()).collect();
        let mut text = line(&headers) + &line(&rules);
        for (_, cells) in &self.rows {
            text += &line(&cells.iter().map(|cell| escape(cell)).collect::<Vec<_>>());
        }
        text
    }
}

/// Text that Markdown shows as it is.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\\' | '|' | '*' | '_' | '`' | '[' | ']' | '<' | '>' => escaped.extend(['\\', character]),
            '\n' | '\r' => escaped.push(' '),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(&[("name", Align::Left), ("value", Align::Right)]);
        table.row(Style::Plain, ["L1 µs".to_owned(), "12.5".to_owned()]);
        table.row(Style::Bad, ["日本|x".to_owned(), "100000".to_owned()]);
        table
    }

    #[test]
    fn columns_line_up_by_display_width() {
        assert_eq!(table().to_text(false), "name     value\nL1 µs     12.5\n日本|x  100000\n");
        assert!(table().to_text(true).contains("\u{1b}[31m日本|x  100000\u{1b}[0m\n"));
    }

    #[test]
    fn markdown_is_escaped() {
        let expected = "| name | value |\n| --- | ---: |\n| L1 µs | 12.5 |\n| 日本\\|x | 100000 |\n";
        assert_eq!(table().to_markdown(), expected);
    }

    #[test]
    fn cells_cannot_break_lines_or_command_the_terminal() {
        let mut table = Table::new(&[("a", Align::Left), ("b", Align::Left)]);
        table.row(Style::Plain, ["x\n\u{1b}[2J".to_owned()]);
        assert_eq!(table.to_text(false), "a       b\nx  [2J\n");
        assert!(!table.is_empty());
    }
}

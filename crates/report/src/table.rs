//! A table, as aligned text, as Markdown or as HTML.

mod html;
mod layout;

use std::fmt::Write as _;

use unicode_width::UnicodeWidthStr as _;

use crate::RenderError;
use crate::screen::Screen;
use crate::wrap::wrap;

/// What stands between two columns.
const GAP: &str = "  ";

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

    /// The table for a terminal: columns aligned by the width they are displayed with. Where they do not fit, text is
    /// wrapped; where that is not enough, the columns are spread over several tables, each with the first columns.
    #[must_use]
    pub fn to_text(&self, screen: Screen) -> String {
        let columns: Vec<layout::Column> = (0..self.columns.len()).map(|at| self.column(at)).collect();
        let parts = layout::parts(&columns, screen.columns);
        parts.iter().map(|part| self.part(part, screen)).collect::<Vec<_>>().join("\n")
    }

    /// What the layout knows of a column.
    fn column(&self, at: usize) -> layout::Column {
        let (header, align) = &self.columns[at];
        let mut column = layout::Column::of_header(header, *align == Align::Left);
        for (_, cells) in &self.rows {
            column.take(&cells[at]);
        }
        column
    }

    /// Some of the columns, each in its width.
    fn part(&self, part: &[layout::Place], screen: Screen) -> String {
        let headers: Vec<&str> = self.columns.iter().map(|(header, _)| header.as_str()).collect();
        let mut text = self.lines(part, &headers).concat();
        for (style, cells) in &self.rows {
            let cells: Vec<&str> = cells.iter().map(String::as_str).collect();
            for line in self.lines(part, &cells) {
                text += &screen.paint(*style, line.trim_end_matches('\n'));
                text.push('\n');
            }
        }
        text
    }

    /// A row as lines, as many as its tallest cell has.
    fn lines(&self, part: &[layout::Place], cells: &[&str]) -> Vec<String> {
        let wrapped: Vec<Vec<String>> =
            part.iter().map(|place| wrap(cells[place.column], place.width)).collect();
        let height = wrapped.iter().map(Vec::len).max().unwrap_or(0);
        let line = |row: usize| {
            let mut line = String::new();
            for (place, cell) in part.iter().zip(&wrapped) {
                let cell = cell.get(row).map_or("", String::as_str);
                let space = " ".repeat(place.width.saturating_sub(cell.width()));
                match self.columns[place.column].1 {
                    Align::Left => write!(line, "{cell}{space}{GAP}"),
                    Align::Right => write!(line, "{space}{cell}{GAP}"),
                }
                .expect("writing to a string cannot fail");
            }
            line.trim_end().to_owned() + "\n"
        };
        (0..height).map(line).collect()
    }

    /// The table for a spreadsheet.
    ///
    /// # Errors
    /// If the CSV writer fails.
    pub fn to_csv(&self) -> Result<String, RenderError> {
        let failed = |error: csv::Error| RenderError::Csv(error.to_string());
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record(self.columns.iter().map(|(header, _)| header)).map_err(failed)?;
        for (_, cells) in &self.rows {
            writer.write_record(cells).map_err(failed)?;
        }
        let bytes = writer.into_inner().map_err(|error| RenderError::Csv(error.to_string()))?;
        String::from_utf8(bytes).map_err(|error| RenderError::Csv(error.to_string()))
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
        assert_eq!(table().to_text(Screen::PLAIN), "name     value\nL1 µs     12.5\n日本|x  100000\n");
        assert!(
            table()
                .to_text(Screen { colour: true, columns: None })
                .contains("\u{1b}[31m日本|x  100000\u{1b}[0m\n")
        );
    }

    #[test]
    fn markdown_is_escaped() {
        let expected = "| name | value |\n| --- | ---: |\n| L1 µs | 12.5 |\n| 日本\\|x | 100000 |\n";
        assert_eq!(table().to_markdown(), expected);
    }

    #[test]
    fn a_spreadsheet_quotes_what_needs_it() {
        let mut table = Table::new(&[("name", Align::Left), ("value", Align::Right)]);
        table.row(Style::Plain, ["a,b".to_owned(), "1".to_owned()]);
        assert_eq!(table.to_csv().unwrap(), "name,value\n\"a,b\",1\n");
    }

    #[test]
    fn cells_cannot_break_lines_or_command_the_terminal() {
        let mut table = Table::new(&[("a", Align::Left), ("b", Align::Left)]);
        table.row(Style::Plain, ["x\n\u{1b}[2J".to_owned()]);
        assert_eq!(table.to_text(Screen::PLAIN), "a       b\nx  [2J\n");
        assert!(!table.is_empty());
    }

    fn wide() -> Table {
        let mut table = Table::new(&[
            ("benchmark", Align::Left),
            ("size bytes", Align::Right),
            ("one core GB/s", Align::Right),
            ("verdict", Align::Left),
        ]);
        let cells =
            ["micro/mem_bandwidth", "1048576", "12345.678 ±0.2 %", "PASS: the machine was quiet enough"];
        table.row(Style::Plain, cells.map(str::to_owned));
        table
    }

    fn narrow(columns: usize) -> String {
        wide().to_text(Screen { colour: false, columns: Some(columns) })
    }

    #[test]
    fn text_is_wrapped_before_anything_else() {
        assert_eq!(narrow(200), wide().to_text(Screen::PLAIN));
        assert_eq!(
            narrow(66),
            "benchmark            size bytes     one core GB/s  verdict\n\
             micro/mem_bandwidth     1048576  12345.678 ±0.2 %  PASS: the\n\
             \u{20}                                                  machine was\n\
             \u{20}                                                  quiet enough\n"
        );
    }

    #[test]
    fn columns_without_room_come_in_a_table_of_their_own() {
        let text = narrow(30);
        let tables: Vec<&str> = text.split("\n\n").collect();
        assert_eq!(tables.len(), 3, "{text}");
        assert!(tables.iter().all(|table| table.starts_with("benchmark")), "{text}");
    }

    #[test]
    fn numbers_are_whole_at_any_width() {
        for columns in 1..120 {
            let text = narrow(columns);
            assert!(text.contains("1048576") && text.contains("12345.678"), "{columns}:\n{text}");
            let longest = text.lines().map(str::width).max();
            assert!(columns < 30 || longest <= Some(columns), "{columns}:\n{text}");
        }
    }
}

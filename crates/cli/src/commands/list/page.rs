//! A page of headings and aligned rows.

use warpforge_report::{Screen, Style};

/// Where the values begin.
const VALUE_COLUMN: usize = 17;
/// Where long values are broken on a screen that is wider.
const WIDTH: usize = 110;

/// A page in the making.
#[derive(Debug)]
pub(super) struct Page {
    text: String,
    screen: Screen,
}

impl Page {
    pub(super) fn new(screen: Screen) -> Self {
        let columns = Some(screen.columns.unwrap_or(WIDTH).min(WIDTH));
        Self { text: String::new(), screen: Screen { columns, ..screen } }
    }

    /// Begins a section.
    pub(super) fn heading(&mut self, title: &str) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        let (bold, plain) = if self.screen.colour { ("\u{1b}[1;36m", "\u{1b}[0m") } else { ("", "") };
        self.text.push_str(&format!("{bold}{title}{plain}\n"));
    }

    /// A label and its value, broken at spaces if it is long; nothing if the value is empty.
    pub(super) fn row(&mut self, label: &str, value: &str) {
        if !value.is_empty() {
            let label = format!("{:<VALUE_COLUMN$}", format!("  {}", printable(label)));
            self.text += &self.screen.labelled(&label, &printable(value));
        }
    }

    /// A line of its own.
    pub(super) fn line(&mut self, text: &str) {
        self.text += &self.screen.line(Style::Plain, 2, &format!("  {}", printable(text)));
    }

    pub(super) fn finish(self) -> String {
        self.text
    }
}

/// The parts that are known, separated by commas.
pub(super) fn joined<const N: usize>(parts: [Option<String>; N]) -> String {
    parts.into_iter().flatten().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
}

/// Text from devices and files, without the bytes that would steer the terminal.
fn printable(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_aligned_and_long_values_hang() {
        let mut page = Page::new(Screen::PLAIN);
        page.heading("CPU");
        page.row("Model", "X");
        page.row("Nothing", "");
        page.row("Long", &"word ".repeat(30));
        let text = page.finish();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[..2], ["CPU", "  Model          X"]);
        assert!(lines.len() == 4 && lines[3].starts_with(&" ".repeat(VALUE_COLUMN)), "{text}");
        assert!(lines.iter().all(|line| line.len() <= WIDTH));
    }

    #[test]
    fn a_devices_name_cannot_steer_the_terminal() {
        let mut page = Page::new(Screen { colour: true, columns: None });
        page.heading("T");
        page.row("Model", "evil\u{1b}[2Jdisk\n");
        assert!(page.finish().ends_with("evil[2Jdisk\n"));
    }
}

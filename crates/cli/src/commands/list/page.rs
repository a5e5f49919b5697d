//! A page of headings and aligned rows.

/// Where the values begin.
const VALUE_COLUMN: usize = 17;
/// Where long values are broken.
const WIDTH: usize = 110;

/// A page in the making.
#[derive(Debug)]
pub(super) struct Page {
    text: String,
    colour: bool,
}

impl Page {
    pub(super) fn new(colour: bool) -> Self {
        Self { text: String::new(), colour }
    }

    /// Begins a section.
    pub(super) fn heading(&mut self, title: &str) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        let (bold, plain) = if self.colour { ("\u{1b}[1;36m", "\u{1b}[0m") } else { ("", "") };
        self.text.push_str(&format!("{bold}{title}{plain}\n"));
    }

    /// A label and its value, broken at spaces if it is long; nothing if the value is empty.
    pub(super) fn row(&mut self, label: &str, value: &str) {
        if value.is_empty() {
            return;
        }
        let mut label = format!("  {}", printable(label));
        for line in broken(&printable(value), WIDTH - VALUE_COLUMN) {
            let row = format!("{label:<VALUE_COLUMN$}{line}");
            self.text.push_str(row.trim_end());
            self.text.push('\n');
            label.clear();
        }
    }

    /// A line of its own.
    pub(super) fn line(&mut self, text: &str) {
        for (index, line) in broken(&printable(text), WIDTH - 4).iter().enumerate() {
            self.text.push_str(if index == 0 { "  " } else { "    " });
            self.text.push_str(line);
            self.text.push('\n');
        }
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

/// Lines of at most `width` characters, unless a word is longer.
fn broken(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_aligned_and_long_values_hang() {
        let mut page = Page::new(false);
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
        let mut page = Page::new(true);
        page.heading("T");
        page.row("Model", "evil\u{1b}[2Jdisk\n");
        assert!(page.finish().ends_with("evil[2Jdisk\n"));
    }
}

//! An HTML page of its own: headings, paragraphs, tables and SVG pictures, in light and dark.

use warpforge_svg::escaped;

use crate::table::Table;

/// Pictures are drawn on white; in the dark their lightness is inverted and their hues stay.
const LOOK: &str = "
:root { color-scheme: light dark; --ink: #1c1c1c; --paper: #fff; --faint: #6b6b6b; --rule: #ddd; --good: #15703a; --bad: #b42318; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e6e6; --paper: #161616; --faint: #9a9a9a; --rule: #3a3a3a; --good: #6fcf8e; --bad: #ff8a80; }
  figure svg { filter: invert(0.92) hue-rotate(180deg); }
}
body { margin: 2rem auto; max-width: 64rem; padding: 0 1rem; font: 15px/1.45 system-ui, sans-serif; color: var(--ink); background: var(--paper); }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
figure { margin: 1rem 0; overflow-x: auto; } figure svg { max-width: 100%; height: auto; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 0.9rem; }
th, td { padding: 0.2rem 0.7rem; text-align: left; border-bottom: 1px solid var(--rule); }
th { font-weight: 600; } .number { text-align: right; }
.good { color: var(--good); } .bad { color: var(--bad); } .faint { color: var(--faint); }
";

/// A page in the making.
#[derive(Debug, Clone)]
pub struct Page {
    text: String,
}

impl Page {
    /// A page with a title.
    #[must_use]
    pub fn new(title: &str) -> Self {
        let title = escaped(title);
        Self {
            text: format!(
                "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
                 <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title}</title>\n\
                 <style>{LOOK}</style>\n</head>\n<body>\n<h1>{title}</h1>\n"
            ),
        }
    }

    /// Adds the heading of a section.
    pub fn heading(&mut self, words: &str) {
        self.text += &format!("<h2>{}</h2>\n", escaped(words));
    }

    /// Adds a paragraph.
    pub fn paragraph(&mut self, words: &str) {
        self.text += &format!("<p>{}</p>\n", escaped(words));
    }

    /// Adds a table, unless it has no rows.
    pub fn table(&mut self, table: &Table) {
        if !table.is_empty() {
            self.text += &format!("<div class=\"wide\">\n{}</div>\n", table.to_html());
        }
    }

    /// Adds a picture: an SVG document, which is taken as it is.
    pub fn picture(&mut self, svg: &str) {
        self.text += &format!("<figure>\n{svg}</figure>\n");
    }

    /// The page.
    #[must_use]
    pub fn finish(self) -> String {
        self.text + "</body>\n</html>\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{Align, Style};

    #[test]
    fn a_page_needs_no_other_file_and_is_escaped() {
        let mut page = Page::new("a < b");
        page.heading("c & d");
        page.paragraph("\"e\"");
        let mut table = Table::new(&[("name", Align::Left)]);
        page.table(&table);
        table.row(Style::Faint, ["f".to_owned()]);
        page.table(&table);
        page.picture("<svg></svg>\n");
        let text = page.finish();
        for part in
            ["<title>a &lt; b</title>", "<h2>c &amp; d</h2>", "<p>&quot;e&quot;</p>", "<figure>\n<svg>"]
        {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert_eq!(text.matches("<table>").count(), 1, "an empty table is left out");
        for outside in ["http:", "https:", "src=", "<link", "<script", "url("] {
            assert!(!text.contains(outside), "{outside}: {text}");
        }
        assert!(text.contains("prefers-color-scheme: dark") && text.ends_with("</html>\n"));
    }
}

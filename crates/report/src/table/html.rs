//! A table for a page in a browser.

use warpforge_svg::escaped;

use super::{Align, Style, Table};

impl Table {
    /// The table as an HTML element; the classes of rows and cells are those that [`crate::Page`] has colours for.
    #[must_use]
    pub fn to_html(&self) -> String {
        let mut text = String::from("<table>\n<thead>");
        text += &self.html_row("th", Style::Plain, self.columns.iter().map(|(header, _)| header));
        text += "</thead>\n<tbody>\n";
        for (style, cells) in &self.rows {
            text += &self.html_row("td", *style, cells.iter());
            text.push('\n');
        }
        text + "</tbody>\n</table>\n"
    }

    fn html_row<'a>(&self, element: &str, style: Style, cells: impl Iterator<Item = &'a String>) -> String {
        let class = match style {
            Style::Plain => "",
            Style::Good => " class=\"good\"",
            Style::Bad => " class=\"bad\"",
            Style::Faint => " class=\"faint\"",
        };
        let mut row = format!("<tr{class}>");
        for (cell, (_, align)) in cells.zip(&self.columns) {
            let class = if *align == Align::Right { " class=\"number\"" } else { "" };
            row += &format!("<{element}{class}>{}</{element}>", escaped(cell));
        }
        row + "</tr>"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_escaped_and_rows_have_the_class_of_their_style() {
        let mut table = Table::new(&[("a & b", Align::Left), ("value", Align::Right)]);
        table.row(Style::Bad, ["<script>".to_owned(), "1".to_owned()]);
        let text = table.to_html();
        assert!(text.contains("<th>a &amp; b</th><th class=\"number\">value</th>"), "{text}");
        assert!(
            text.contains("<tr class=\"bad\"><td>&lt;script&gt;</td><td class=\"number\">1</td></tr>"),
            "{text}"
        );
    }
}

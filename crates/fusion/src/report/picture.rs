//! Clusters as boxes in rows, with lines from those that a cluster reads to it.

use std::fmt::Write as _;

use super::{Entry, Report, counted};

const BOX: (usize, usize) = (260, 44);
/// Pixels of a letter at most.
const LETTER: usize = 7;
const GAP: (usize, usize) = (30, 36);
const MARGIN: usize = 20;

/// An SVG document. Each cluster stands below all that it reads.
pub(super) fn svg(report: &Report) -> String {
    let mut levels: Vec<usize> = Vec::new();
    let mut filled: Vec<usize> = Vec::new();
    let mut places: Vec<(usize, usize)> = Vec::new();
    for entry in &report.clusters {
        let level = entry.reads.iter().map(|&read| levels[read] + 1).max().unwrap_or(0);
        filled.resize(filled.len().max(level + 1), 0);
        places.push((filled[level], level));
        filled[level] += 1;
        levels.push(level);
    }
    let letters = |entry: &Entry| title(entry).len() + words(entry).len();
    let wide = report.clusters.iter().map(|entry| LETTER * letters(entry) + 2 * MARGIN).max();
    let wide = wide.unwrap_or(0).max(BOX.0);
    let at = |number: usize| {
        let (column, row) = places[number];
        (MARGIN + column * (wide + GAP.0), MARGIN + row * (BOX.1 + GAP.1))
    };
    let columns = filled.iter().copied().max().unwrap_or(0);
    let (width, height) =
        (2 * MARGIN + columns * (wide + GAP.0), 2 * MARGIN + filled.len() * (BOX.1 + GAP.1));
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    for entry in &report.clusters {
        let (x, y) = at(entry.number);
        for &read in &entry.reads {
            let (from_x, from_y) = at(read);
            let _ = writeln!(
                out,
                "<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{y}\" stroke=\"#999\"/>",
                from_x + wide / 2,
                from_y + BOX.1,
                x + wide / 2
            );
        }
    }
    for entry in &report.clusters {
        let (x, y) = at(entry.number);
        let _ = writeln!(
            out,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{}\" height=\"{}\" rx=\"6\" fill=\"{}\" stroke=\"#555\"><title>{}</title></rect>",
            wide,
            BOX.1,
            colour(entry.kind),
            escaped(&entry.operations.join(", "))
        );
        let lines = [title(entry), entry.result.clone()];
        for (line, text) in lines.iter().enumerate() {
            let _ =
                writeln!(out, "<text x=\"{}\" y=\"{}\">{}</text>", x + 8, y + 17 + 17 * line, escaped(text));
        }
        let said = escaped(&words(entry));
        let _ = writeln!(
            out,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"end\" fill=\"#333\">{said}</text>",
            x + wide - 8,
            y + 17
        );
    }
    out.push_str("</svg>\n");
    out
}

/// The number and the kind.
fn title(entry: &Entry) -> String {
    format!("#{} {}", entry.number, entry.kind)
}

/// What stands beside the kind: what people call the cluster, else its operation, else how many it has.
fn words(entry: &Entry) -> String {
    match (&entry.patterns[..], &entry.operations[..]) {
        ([], [only]) => only.clone(),
        ([], operations) => format!("{} operations", operations.len()),
        (patterns, _) => counted(patterns),
    }
}

fn colour(kind: &str) -> &'static str {
    match kind {
        "matmul" | "convolution" => "#cfe2f3",
        "attention" | "attention gradient" => "#d9d2e9",
        "row loop" => "#d9ead3",
        "loop" => "#fff2cc",
        "fallback" => "#f4cccc",
        _ => "#eeeeee",
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

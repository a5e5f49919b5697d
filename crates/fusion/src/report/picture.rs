//! Clusters as boxes in rows, with arrows from those that a cluster reads to it.

use warpforge_svg::{Anchor, Document, Point, Rectangle};

use super::{Entry, Report, Totals, counted};

const BOX: Point = (330.0, 62.0);
const GAP: Point = (30.0, 40.0);
const MARGIN: f64 = 20.0;
/// What stands above the boxes.
const HEADER: f64 = 48.0;
/// The distance between the lanes beside the boxes that skip connections take.
const LANE: f64 = 14.0;
/// The most characters of a line in a box: it holds as many of a wide typeface.
const LINE: usize = 44;

impl Report {
    /// The clusters as a picture: an SVG document.
    #[must_use]
    pub fn picture(&self) -> String {
        svg(self)
    }
}

/// An SVG document. Each cluster of a run stands below all that it reads; a connection that skips rows runs beside the boxes.
fn svg(report: &Report) -> String {
    let mut entries = report.clusters.clone();
    // What is computed once is a constant of every run.
    entries.iter_mut().for_each(|entry| entry.reads.retain(|&read| read < report.clusters.len()));
    let layout = Layout::new(&entries);
    let (width, height) = layout.size();
    let mut picture = Document::new(width, height, 12);
    header(&mut picture, report);
    for entry in &entries {
        for (place, &read) in entry.reads.iter().enumerate() {
            // Arrows that end at one box end side by side.
            let share = (place + 1) as f64 / (entry.reads.len() + 1) as f64;
            let from = layout.corner(read);
            let to = layout.corner(entry.number);
            let start = (from.0 + BOX.0 / 2.0, from.1 + BOX.1);
            let end = (to.0 + BOX.0 * share, to.1);
            if layout.rows(read, entry.number) == 1 {
                picture.arrow(&[start, end], "#777", 1.2);
                continue;
            }
            let beside = layout.right() + LANE * (layout.lane(read, entry.number) + 1) as f64;
            let (below, above) = (start.1 + GAP.1 * 0.3, end.1 - GAP.1 * 0.4);
            let start = (from.0 + BOX.0 * 0.8, start.1);
            let path = [start, (start.0, below), (beside, below), (beside, above), (end.0, above), end];
            picture.arrow(&path, "#a60", 1.2);
        }
    }
    for entry in &entries {
        draw(&mut picture, entry, layout.corner(entry.number));
    }
    picture.finish()
}

/// Where the boxes stand: a column and a row for each. And the lanes beside them: what each connection that skips rows
/// has for its own from its first box to its last.
struct Layout {
    places: Vec<(usize, usize)>,
    columns: usize,
    rows: usize,
    lanes: Vec<Vec<[usize; 2]>>,
}

impl Layout {
    fn new(entries: &[Entry]) -> Self {
        let mut layout = Self { places: Vec::new(), columns: 0, rows: 0, lanes: Vec::new() };
        let mut filled: Vec<usize> = Vec::new();
        for entry in entries {
            let row = entry.reads.iter().map(|&read| layout.places[read].1 + 1).max().unwrap_or(0);
            filled.resize(filled.len().max(row + 1), 0);
            layout.places.push((filled[row], row));
            filled[row] += 1;
            for &read in &entry.reads {
                layout.take_lane(read, entry.number);
            }
        }
        layout.columns = filled.iter().copied().max().unwrap_or(0);
        layout.rows = filled.len();
        layout
    }

    /// Gives a connection that skips rows the first lane that is free beside them.
    fn take_lane(&mut self, from: usize, to: usize) {
        if self.rows(from, to) < 2 {
            return;
        }
        let rows = |number: usize| self.places[number].1;
        let apart = |other: &[usize; 2]| rows(other[1]) <= rows(from) || rows(to) <= rows(other[0]);
        match self.lanes.iter().position(|lane| lane.iter().all(apart)) {
            Some(free) => self.lanes[free].push([from, to]),
            None => self.lanes.push(vec![[from, to]]),
        }
    }

    fn lane(&self, from: usize, to: usize) -> usize {
        self.lanes.iter().position(|lane| lane.contains(&[from, to])).unwrap_or(0)
    }

    /// How many rows a connection goes down.
    fn rows(&self, from: usize, to: usize) -> usize {
        self.places[to].1 - self.places[from].1
    }

    fn corner(&self, number: usize) -> Point {
        let (column, row) = self.places[number];
        (MARGIN + column as f64 * (BOX.0 + GAP.0), HEADER + MARGIN + row as f64 * (BOX.1 + GAP.1))
    }

    /// The right edge of the boxes.
    fn right(&self) -> f64 {
        MARGIN + self.columns as f64 * (BOX.0 + GAP.0) - GAP.0
    }

    fn size(&self) -> Point {
        let lanes = LANE * (self.lanes.len() + 1) as f64;
        // The header needs some room however few boxes there are.
        let width = (self.right() + lanes + MARGIN).max(420.0);
        (width, HEADER + 2.0 * MARGIN + self.rows as f64 * (BOX.1 + GAP.1) - GAP.1)
    }
}

/// What fusion saves.
fn header(picture: &mut Document, report: &Report) {
    let Report { before, after, .. } = report;
    let part = |saved: f64, of: f64| if of > 0.0 { 100.0 * saved / of } else { 0.0 };
    let Totals { kernels, bytes, .. } = *before;
    let fewer = kernels.saturating_sub(after.kernels);
    let less = bytes.saturating_sub(after.bytes);
    let lines = [
        format!(
            "{} kernels instead of {kernels} ({fewer} saved, {:.0} %)",
            after.kernels,
            part(fewer as f64, kernels as f64)
        ),
        format!(
            "{} moved instead of {} ({} saved, {:.0} %)",
            size(after.bytes),
            size(bytes),
            size(less),
            part(less as f64, bytes as f64)
        ),
    ];
    for (at, line) in lines.iter().enumerate() {
        picture.text((MARGIN, MARGIN + 6.0 + 17.0 * at as f64), Anchor::Start, line);
    }
}

fn draw(picture: &mut Document, entry: &Entry, corner: Point) {
    let title = entry.provenance.iter().cloned().chain([entry.operations.join(", ")]);
    let title = title.collect::<Vec<_>>().join("; ");
    let look = Rectangle { fill: colour(entry.kind), stroke: Some("#555"), radius: 6.0, title: Some(&title) };
    picture.rectangle(corner, BOX, &look);
    let line = |number: usize| corner.1 + 17.0 * (number + 1) as f64;
    let (left, right) = (corner.0 + 8.0, corner.0 + BOX.0 - 8.0);
    let mut both = |number: usize, start: &str, end: &str| {
        let start = short(start, LINE);
        picture.text((left, line(number)), Anchor::Start, &start);
        let end = short(end, LINE.saturating_sub(start.chars().count() + 2));
        picture.coloured_text((right, line(number)), Anchor::End, "#333", &end);
    };
    both(0, &format!("#{} {}", entry.number, entry.kind), &words(entry));
    both(1, &entry.result, &size(entry.bytes));
    if let Some(provenance) = &entry.provenance {
        picture.coloured_text((left, line(2)), Anchor::Start, "#555", &short(provenance, LINE));
    }
}

/// What stands beside the kind: what people call the cluster, else its operation, else how many it has.
fn words(entry: &Entry) -> String {
    match (&entry.patterns[..], &entry.operations[..]) {
        ([], [only]) => only.clone(),
        ([], operations) => format!("{} operations", operations.len()),
        (patterns, _) => counted(patterns),
    }
}

/// A text of so many characters at most.
fn short(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

/// Bytes in a unit that people read.
fn size(bytes: u64) -> String {
    match bytes {
        0..1000 => format!("{bytes} B"),
        1000..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
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

#[cfg(test)]
mod tests {
    use crate::report::Report;
    use crate::testing::{graph, planned};

    #[test]
    fn savings_arrows_and_skip_connections_are_drawn() {
        let graph = graph(
            "func.func @main(%a: tensor<8x8xf32>, %w: tensor<8x8xf32>) -> tensor<8x8xf32> {
                %0 = stablehlo.dot %a, %w : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
                %1 = stablehlo.dot %0, %w : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
                %2 = stablehlo.dot %1, %w : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
                %3 = stablehlo.add %2, %0 : tensor<8x8xf32>
                func.return %3 : tensor<8x8xf32>\n}",
        );
        let report = Report::new(&planned(graph));
        let picture = report.picture();
        assert!(picture.contains("kernels instead of 4 (1 saved, 25 %)"), "{picture}");
        let edges: usize = report.clusters.iter().map(|entry| entry.reads.len()).sum();
        assert_eq!(picture.matches("<polygon").count(), edges);
        // The skip connection leaves its row beside the boxes.
        assert!(picture.contains("stroke=\"#a60\""), "{picture}");
    }
}

//! Lines over logarithmic axes, as an SVG picture.

use warpforge_svg::{Anchor, Document};

use super::stats::figure;

/// One plot of the picture.
pub(super) struct Panel<'a> {
    pub(super) title: &'a str,
    pub(super) across: &'a str,
    pub(super) up: &'a str,
    pub(super) lines: Vec<Line>,
}

/// One line: positive points from left to right.
pub(super) struct Line {
    pub(super) name: String,
    pub(super) points: Vec<(f64, f64)>,
}

const WIDTH: f64 = 430.0;
const HEIGHT: f64 = 340.0;
/// What is around the axes: left, top, right, bottom.
const MARGINS: [f64; 4] = [58.0, 34.0, 14.0, 46.0];
/// Colours that most people can tell apart, on white and on black.
const COLOURS: [&str; 4] = ["#0072b2", "#e69f00", "#009e73", "#cc79a7"];

const GRID: &str = "#ddd";

/// The panels side by side.
pub(super) fn picture(panels: &[Panel<'_>]) -> String {
    let mut picture = Document::new(WIDTH * panels.len() as f64, HEIGHT, 11);
    for (index, panel) in panels.iter().enumerate() {
        picture.translated((WIDTH * index as f64, 0.0), |picture| draw(panel, picture));
    }
    picture.finish()
}

/// A logarithmic axis: from values to coordinates.
struct Scale {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl Scale {
    /// A scale whose ends are powers of `base` around the values.
    fn around(values: impl Iterator<Item = f64>, base: f64, from: f64, to: f64) -> Self {
        let (low, high) =
            values.fold((f64::INFINITY, 0.0f64), |(low, high), value| (low.min(value), high.max(value)));
        let low = low.log(base).floor();
        let high = high.log(base).ceil().max(low + 1.0);
        Self { low: base.powf(low), high: base.powf(high), from, to }
    }

    fn place(&self, value: f64) -> f64 {
        self.from + (value / self.low).ln() / (self.high / self.low).ln() * (self.to - self.from)
    }

    fn ticks(&self, base: f64) -> Vec<f64> {
        std::iter::successors(Some(self.low), |tick| Some(tick * base))
            .take_while(|tick| *tick <= self.high * 1.001)
            .collect()
    }
}

fn draw(panel: &Panel<'_>, picture: &mut Document) {
    let [left, top, right, bottom] = MARGINS;
    let (right, bottom) = (WIDTH - right, HEIGHT - bottom);
    let points = || panel.lines.iter().flat_map(|line| &line.points);
    if points().next().is_none() {
        return;
    }
    let across = Scale::around(points().map(|point| point.0), 2.0, left, right);
    let up = Scale::around(points().map(|point| point.1), 10.0, bottom, top);
    let middle = f64::midpoint(left, right);
    picture.text((middle, 18.0), Anchor::Middle, panel.title);
    picture.text((middle, HEIGHT - 10.0), Anchor::Middle, panel.across);
    picture.text((left, top - 6.0), Anchor::End, panel.up);
    for tick in across.ticks(2.0) {
        let x = across.place(tick);
        picture.text((x, bottom + 16.0), Anchor::Middle, &tick.to_string());
        picture.line((x, bottom), (x, top), GRID, 0.6);
    }
    for tick in up.ticks(10.0) {
        let y = up.place(tick);
        let label = if tick >= 1.0 { tick.to_string() } else { figure(tick) };
        picture.text((left - 6.0, y + 4.0), Anchor::End, &label);
        picture.line((left, y), (right, y), GRID, 0.6);
    }
    for (index, (line, colour)) in panel.lines.iter().zip(COLOURS.iter().cycle()).enumerate() {
        let key = top + 10.0 + 15.0 * index as f64;
        picture.line((left + 8.0, key), (left + 30.0, key), colour, 2.0);
        picture.text((left + 36.0, key + 4.0), Anchor::Start, &line.name);
        let places: Vec<_> =
            line.points.iter().map(|point| (across.place(point.0), up.place(point.1))).collect();
        for pair in places.windows(2) {
            picture.line(pair[0], pair[1], colour, 1.8);
        }
        for place in places {
            picture.circle(place, 2.6, colour);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_lie_between_the_axes_and_larger_is_higher() {
        let up = Scale::around([3.0, 250.0].into_iter(), 10.0, 300.0, 20.0);
        assert_eq!((up.low, up.high), (1.0, 1000.0));
        assert_eq!(up.ticks(10.0).len(), 4);
        assert!(up.place(3.0) > up.place(250.0));
        assert!((up.place(1.0) - 300.0).abs() < 1e-9 && (up.place(1000.0) - 20.0).abs() < 1e-9);
        let single = Scale::around([8.0].into_iter(), 2.0, 0.0, 10.0);
        assert!(single.place(8.0).is_finite());
    }

    #[test]
    fn a_picture_has_every_line_and_point() {
        let line = |name: &str| Line { name: name.to_owned(), points: vec![(1.0, 2.0), (2.0, 4.5)] };
        let panel = |lines| Panel { title: "t < u", across: "batch", up: "ms", lines };
        let text = picture(&[panel(vec![line("ours"), line("torch")]), panel(Vec::new())]);
        assert_eq!(text.matches("<circle").count(), 4);
        assert!(text.contains(">ours<") && text.contains(">torch<"));
        assert!(text.contains("t &lt; u"));
        assert_eq!(text.matches("<g ").count(), text.matches("</g>").count());
        assert!(!text.contains("NaN") && !text.contains("inf"));
    }
}

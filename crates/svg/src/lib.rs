//! SVG documents: lines, arrows, rectangles, circles and text on white, escaped and always well-formed.
//!
//! A document is a string that grows by one element per call. Coordinates are in pixels, `y` grows downwards, and are
//! rounded to a tenth. An element with a coordinate that is not finite is left out.
//!
//! ```
//! use warpforge_svg::{Anchor, Document};
//!
//! let mut picture = Document::new(120.0, 40.0, 12);
//! picture.line((0.0, 20.0), (120.0, 20.0), "#999", 1.0);
//! picture.text((60.0, 15.0), Anchor::Middle, "a < b");
//! assert!(picture.finish().contains("a &lt; b"));
//! ```
#![forbid(unsafe_code)]

use std::fmt::Write as _;

/// A place or a size: `x` and `y`.
pub type Point = (f64, f64);

/// Which point of a text stands at its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anchor {
    /// Its start.
    Start,
    /// Its middle.
    Middle,
    /// Its end.
    End,
}

impl Anchor {
    fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Middle => "middle",
            Self::End => "end",
        }
    }
}

/// How a rectangle looks.
#[derive(Debug, Clone, Copy, Default)]
pub struct Rectangle<'a> {
    /// The colour inside.
    pub fill: &'a str,
    /// The colour of the border; none without one.
    pub stroke: Option<&'a str>,
    /// The radius of the corners.
    pub radius: f64,
    /// What a viewer shows when the pointer rests on it.
    pub title: Option<&'a str>,
}

/// A document in the making.
#[derive(Debug, Clone)]
pub struct Document {
    text: String,
}

impl Document {
    /// A white document of this size in pixels, with text of this size.
    #[must_use]
    pub fn new(width: f64, height: f64, font_size: u32) -> Self {
        let (width, height) = (number(width), number(height));
        let text = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" font-size=\"{font_size}\">\n\
             <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
        );
        Self { text }
    }

    /// Draws with the origin moved to a place.
    pub fn translated(&mut self, to: Point, draw: impl FnOnce(&mut Self)) {
        let _ = writeln!(self.text, "<g transform=\"translate({} {})\">", number(to.0), number(to.1));
        draw(self);
        self.text += "</g>\n";
    }

    /// A line of a colour and a width.
    pub fn line(&mut self, from: Point, to: Point, colour: &str, width: f64) {
        self.stroke(from, to, colour, width, "");
    }

    /// A dashed line of a colour and a width.
    pub fn dashed_line(&mut self, from: Point, to: Point, colour: &str, width: f64) {
        self.stroke(from, to, colour, width, " stroke-dasharray=\"6 4\"");
    }

    fn stroke(&mut self, from: Point, to: Point, colour: &str, width: f64, look: &str) {
        if !finite(&[from, to]) {
            return;
        }
        let [x1, y1, x2, y2] = [from.0, from.1, to.0, to.1].map(number);
        let _ = writeln!(
            self.text,
            "<line x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\" stroke=\"{}\" stroke-width=\"{width}\"{look}/>",
            escaped(colour)
        );
    }

    /// A line along points with an arrowhead at its end. It has no effect with fewer than two points.
    pub fn arrow(&mut self, points: &[Point], colour: &str, width: f64) {
        const HEAD: f64 = 7.0;
        let &[.., before, tip] = points else { return };
        let length = (tip.0 - before.0).hypot(tip.1 - before.1);
        if !finite(points) || length == 0.0 {
            return;
        }
        let (dx, dy) = ((tip.0 - before.0) / length, (tip.1 - before.1) / length);
        let base = (tip.0 - HEAD * dx, tip.1 - HEAD * dy);
        let half = HEAD / 2.0;
        let head = [(base.0 - half * dy, base.1 + half * dx), tip, (base.0 + half * dy, base.1 - half * dx)];
        let mut shaft = points.to_vec();
        shaft.pop();
        shaft.push(base);
        let list = |points: &[Point]| {
            let pairs: Vec<String> =
                points.iter().map(|point| format!("{},{}", number(point.0), number(point.1))).collect();
            pairs.join(" ")
        };
        let colour = escaped(colour);
        let _ = writeln!(
            self.text,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width}\"/>\n\
             <polygon points=\"{}\" fill=\"{colour}\"/>",
            list(&shaft),
            list(&head)
        );
    }

    /// A filled circle.
    pub fn circle(&mut self, centre: Point, radius: f64, fill: &str) {
        self.titled_circle(centre, radius, fill, None);
    }

    /// A filled circle with what a viewer shows when the pointer rests on it.
    pub fn titled_circle(&mut self, centre: Point, radius: f64, fill: &str, title: Option<&str>) {
        if !finite(&[centre, (radius, 0.0)]) {
            return;
        }
        let [x, y, radius] = [centre.0, centre.1, radius].map(number);
        let fill = escaped(fill);
        let _ = write!(self.text, "<circle cx=\"{x}\" cy=\"{y}\" r=\"{radius}\" fill=\"{fill}\"");
        let _ = match title {
            Some(title) => writeln!(self.text, "><title>{}</title></circle>", escaped(title)),
            None => writeln!(self.text, "/>"),
        };
    }

    /// A rectangle by its upper left corner and its size.
    pub fn rectangle(&mut self, corner: Point, size: Point, look: &Rectangle<'_>) {
        if !finite(&[corner, size]) {
            return;
        }
        let [x, y, width, height, radius] = [corner.0, corner.1, size.0, size.1, look.radius].map(number);
        let _ = write!(
            self.text,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"{radius}\" fill=\"{}\"",
            escaped(look.fill)
        );
        if let Some(stroke) = look.stroke {
            let _ = write!(self.text, " stroke=\"{}\"", escaped(stroke));
        }
        let _ = match look.title {
            Some(title) => writeln!(self.text, "><title>{}</title></rect>", escaped(title)),
            None => writeln!(self.text, "/>"),
        };
    }

    /// A line of black text.
    pub fn text(&mut self, at: Point, anchor: Anchor, words: &str) {
        self.coloured_text(at, anchor, "black", words);
    }

    /// A line of text.
    pub fn coloured_text(&mut self, at: Point, anchor: Anchor, fill: &str, words: &str) {
        if !finite(&[at]) {
            return;
        }
        let (x, y) = (number(at.0), number(at.1));
        let _ = writeln!(
            self.text,
            "<text x=\"{x}\" y=\"{y}\" text-anchor=\"{}\" fill=\"{}\">{}</text>",
            anchor.name(),
            escaped(fill),
            escaped(words)
        );
    }

    /// The document.
    #[must_use]
    pub fn finish(mut self) -> String {
        self.text += "</svg>\n";
        self.text
    }
}

fn finite(points: &[Point]) -> bool {
    points.iter().all(|(x, y)| x.is_finite() && y.is_finite())
}

/// A coordinate, rounded to a tenth.
fn number(value: f64) -> f64 {
    if value.is_finite() { (value * 10.0).round() / 10.0 } else { 0.0 }
}

/// Text without the characters that mean something in XML and HTML, and without control characters, which XML has no form for.
#[must_use]
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\t' | '\n' | '\r' => out.push(' '),
            character if character.is_control() => out.push('\u{fffd}'),
            character => out.push(character),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_written_as_they_are_asked_for() {
        let mut picture = Document::new(100.0, 50.5, 11);
        picture.translated((5.0, 0.0), |picture| {
            picture.line((0.0, 1.25), (10.0, 20.0), "#999", 0.6);
            picture.circle((3.12, 2.0), 2.6, "red");
        });
        let look =
            Rectangle { fill: "#eee", stroke: Some("#555"), radius: 6.0, title: Some("add, multiply") };
        picture.rectangle((1.0, 2.0), (30.0, 40.0), &look);
        picture.rectangle((1.0, 2.0), (3.0, 4.0), &Rectangle { fill: "blue", ..Rectangle::default() });
        picture.text((8.0, 9.0), Anchor::End, "end");
        picture.arrow(&[(0.0, 0.0), (0.0, 20.0)], "#999", 1.0);
        picture.arrow(&[(0.0, 0.0)], "#999", 1.0);
        let text = picture.finish();
        for expected in [
            "viewBox=\"0 0 100 50.5\"",
            "<g transform=\"translate(5 0)\">",
            "<line x1=\"0\" y1=\"1.3\" x2=\"10\" y2=\"20\" stroke=\"#999\" stroke-width=\"0.6\"/>",
            "<circle cx=\"3.1\" cy=\"2\" r=\"2.6\" fill=\"red\"/>",
            "rx=\"6\" fill=\"#eee\" stroke=\"#555\"><title>add, multiply</title></rect>",
            "rx=\"0\" fill=\"blue\"/>",
            "text-anchor=\"end\" fill=\"black\">end</text>",
            "<polyline points=\"0,0 0,13\" fill=\"none\" stroke=\"#999\" stroke-width=\"1\"/>",
            "<polygon points=\"-3.5,13 0,20 3.5,13\" fill=\"#999\"/>",
        ] {
            assert!(text.contains(expected), "{expected} in\n{text}");
        }
        assert!(text.starts_with("<svg ") && text.ends_with("</svg>\n"));
        assert_eq!(text.matches("<g ").count(), text.matches("</g>").count());
    }

    #[test]
    fn nothing_in_a_text_is_markup() {
        let mut picture = Document::new(10.0, 10.0, 11);
        picture.text((0.0, 0.0), Anchor::Start, "<script>\"a\" & b\u{0}\n</text>");
        picture.line((0.0, 0.0), (1.0, 1.0), "\"/><script>", 1.0);
        let text = picture.finish();
        assert!(text.contains("&lt;script&gt;&quot;a&quot; &amp; b\u{fffd} &lt;/text&gt;"), "{text}");
        assert!(!text.contains("<script"), "{text}");
    }

    #[test]
    fn coordinates_that_are_not_finite_are_left_out() {
        let mut picture = Document::new(f64::NAN, 10.0, 11);
        let before = picture.clone().finish();
        picture.line((0.0, f64::NAN), (1.0, 1.0), "red", 1.0);
        picture.circle((f64::INFINITY, 0.0), 1.0, "red");
        picture.text((0.0, f64::NEG_INFINITY), Anchor::Start, "x");
        picture.rectangle((0.0, 0.0), (f64::NAN, 1.0), &Rectangle::default());
        assert_eq!(picture.finish(), before);
        assert!(!before.contains("NaN"), "{before}");
    }
}

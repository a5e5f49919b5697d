//! The roofline as an SVG document: log-log, a roof for each type and instruction set, a slope for each level.

use warpforge_svg::{Anchor, Document};

use super::{Point, Roofline};

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 600.0;
const LEFT: f64 = 78.0;
const RIGHT: f64 = 210.0;
const TOP: f64 = 48.0;
const BOTTOM: f64 = 60.0;

const GRID: &str = "#e4e4e4";
const FRAME: &str = "#666";
const SLOPE: &str = "#7a7a7a";
const FUSED: &str = "#c2410c";
const UNFUSED: &str = "#f4b183";
const ALONE: &str = "#1d4ed8";

/// Colours of element types.
const TYPES: [(&str, &str); 8] = [
    ("f64", "#7c3aed"),
    ("f32", "#0f766e"),
    ("tf32", "#0891b2"),
    ("bf16", "#b91c1c"),
    ("f16", "#be185d"),
    ("int8", "#a16207"),
    ("e4m3", "#4d7c0f"),
    ("e5m2", "#365314"),
];

/// Least distance of two labels.
const LINE: f64 = 13.0;

/// From the end of a roof to its name.
const LEADER: f64 = 14.0;

/// Logarithmic axes.
struct Axes {
    /// Binary logarithms of the least and largest intensity.
    x: (f64, f64),
    /// Decimal logarithms of the least and largest rate.
    y: (f64, f64),
    /// Billions of operations a second of the unit of rates, and its name.
    unit: (f64, &'static str),
}

impl Axes {
    fn of(roofline: &Roofline) -> Self {
        let unfused = roofline.points.iter().filter_map(|point| point.unfused);
        let points =
            || roofline.points.iter().map(|point| (point.intensity, point.gops)).chain(unfused.clone());
        let roofs = || roofline.roofs.iter().map(|roof| roof.gops);
        let bounds = |values: Vec<f64>, least: f64, most: f64| {
            values
                .into_iter()
                .filter(|value| value.is_finite())
                .fold((least, most), |(low, high), value| (low.min(value.floor()), high.max(value.ceil())))
        };
        let ridges =
            roofline.slopes.iter().flat_map(|slope| roofs().map(move |gops| (gops / slope.gbps).log2()));
        let x = bounds(points().map(|(x, _)| x.log2()).chain(ridges).collect(), -3.0, 5.0);
        let y = bounds(points().map(|(_, y)| y).chain(roofs()).map(f64::log10).collect(), 0.0, 2.0);
        let highest = roofs().fold(0.0, f64::max);
        let unit = if highest >= 1e4 { (1e3, "TFLOP/s") } else { (1.0, "GFLOP/s") };
        let mut axes = Self { x, y, unit };
        // The names of slopes stand above the highest roof.
        let room = LINE * (roofline.slopes.len() + 1) as f64;
        if highest > 0.0 && axes.at(1.0, highest).1 - TOP < room {
            axes.y.1 += 1.0;
        }
        axes
    }

    /// A rate in the unit of the axis.
    fn rate(&self, gops: f64) -> String {
        amount(gops / self.unit.0)
    }

    fn at(&self, intensity: f64, gops: f64) -> (f64, f64) {
        let share = |value: f64, (low, high): (f64, f64)| (value - low) / (high - low);
        (
            LEFT + share(intensity.log2(), self.x) * (WIDTH - LEFT - RIGHT),
            HEIGHT - BOTTOM - share(gops.log10(), self.y) * (HEIGHT - TOP - BOTTOM),
        )
    }

    fn least_x(&self) -> f64 {
        self.x.0.exp2()
    }

    fn most_x(&self) -> f64 {
        self.x.1.exp2()
    }
}

/// The picture of a roofline.
#[must_use]
pub fn picture(roofline: &Roofline) -> String {
    let axes = Axes::of(roofline);
    let mut document = Document::new(WIDTH, HEIGHT, 11);
    document.text((LEFT, 22.0), Anchor::Start, &roofline.title);
    grid(&mut document, &axes);
    slopes(&mut document, &axes, roofline);
    roofs(&mut document, &axes, roofline);
    for point in &roofline.points {
        draw(&mut document, &axes, point);
    }
    legend(&mut document);
    document.finish()
}

fn grid(document: &mut Document, axes: &Axes) {
    let (low, high) = (10f64.powf(axes.y.0), 10f64.powf(axes.y.1));
    let steps = |(from, to): (f64, f64)| (from as i32)..=(to as i32);
    let every = if axes.x.1 - axes.x.0 > 14.0 { 2 } else { 1 };
    for power in steps(axes.x).filter(|power| power % every == 0) {
        let x = f64::from(power).exp2();
        document.line(axes.at(x, low), axes.at(x, high), GRID, 1.0);
        let (across, down) = axes.at(x, low);
        let label =
            if power < 0 { format!("1/{}", 1_u64 << -power) } else { (1_u64 << power.min(62)).to_string() };
        document.text((across, down + 18.0), Anchor::Middle, &label);
    }
    for power in steps(axes.y) {
        let y = 10f64.powi(power);
        document.line(axes.at(axes.least_x(), y), axes.at(axes.most_x(), y), GRID, 1.0);
        let (across, down) = axes.at(axes.least_x(), y);
        document.text((across - 8.0, down + 4.0), Anchor::End, &axes.rate(y));
    }
    let corner = axes.at(axes.least_x(), low);
    document.line(corner, axes.at(axes.most_x(), low), FRAME, 1.0);
    document.line(corner, axes.at(axes.least_x(), high), FRAME, 1.0);
    let middle = (LEFT + WIDTH - RIGHT) / 2.0;
    document.text((middle, HEIGHT - 18.0), Anchor::Middle, "operations for each byte");
    document.text((LEFT, TOP - 10.0), Anchor::Middle, axes.unit.1);
}

/// A slope ends at the highest roof, and its name stands above the end: the steepest slope's lowest.
fn slopes(document: &mut Document, axes: &Axes, roofline: &Roofline) {
    let highest = roofline.roofs.iter().map(|roof| roof.gops).fold(0.0, f64::max);
    let top = if highest > 0.0 { highest } else { 10f64.powf(axes.y.1) };
    let bottom = 10f64.powf(axes.y.0);
    let mut row = axes.at(1.0, top).1 - 8.0;
    for slope in &roofline.slopes {
        let begin = (bottom / slope.gbps).max(axes.least_x());
        let end = (top / slope.gbps).min(axes.most_x());
        if begin >= end {
            continue;
        }
        document.line(axes.at(begin, begin * slope.gbps), axes.at(end, end * slope.gbps), SLOPE, 1.2);
        let (across, down) = axes.at(end, end * slope.gbps);
        document.line((across, down), (across, row - 8.0), SLOPE, 0.6);
        let text = format!("{} {} GB/s", slope.label, amount(slope.gbps));
        document.coloured_text((across - 4.0, row), Anchor::End, SLOPE, &text);
        row -= LINE;
    }
}

/// A roof begins where it meets the steepest slope.
fn roofs(document: &mut Document, axes: &Axes, roofline: &Roofline) {
    let steepest = roofline.slopes.iter().map(|slope| slope.gbps).fold(0.0, f64::max);
    let mut labels: Vec<f64> = Vec::new();
    for roof in &roofline.roofs {
        let begin = if steepest > 0.0 { (roof.gops / steepest).max(axes.least_x()) } else { axes.least_x() };
        let (from, to) = (axes.at(begin, roof.gops), axes.at(axes.most_x(), roof.gops));
        let colour = colour(&roof.label);
        if roof.sustained {
            document.line(from, to, colour, 1.6);
        } else {
            document.dashed_line(from, to, colour, 1.2);
        }
        let mut down = to.1 + 4.0;
        while labels.iter().any(|other| (other - down).abs() < LINE - 1.0) {
            down += LINE;
        }
        labels.push(down);
        document.line(to, (to.0 + LEADER, down - 4.0), colour, 0.6);
        let text = format!("{} {}", roof.label, axes.rate(roof.gops));
        document.coloured_text((to.0 + LEADER + 4.0, down), Anchor::Start, colour, &text);
    }
}

fn colour(label: &str) -> &'static str {
    let dtype = label.split(' ').next().unwrap_or_default();
    TYPES.iter().find(|(name, _)| *name == dtype).map_or("#333", |(_, colour)| colour)
}

fn draw(document: &mut Document, axes: &Axes, point: &Point) {
    let here = axes.at(point.intensity, point.gops);
    let Some((intensity, gops)) = point.unfused else {
        document.titled_circle(here, 2.4, ALONE, Some(&point.label));
        return;
    };
    let there = axes.at(intensity, gops);
    document.line(there, here, UNFUSED, 0.8);
    document.titled_circle(there, 2.2, UNFUSED, Some(&format!("{} unfused", point.label)));
    document.titled_circle(here, 2.4, FUSED, Some(&point.label));
}

fn legend(document: &mut Document) {
    let mut across = WIDTH - RIGHT - 330.0;
    for (fill, text) in [(ALONE, "operation"), (UNFUSED, "unfused"), (FUSED, "fused")] {
        document.circle((across, TOP - 14.0), 3.5, fill);
        document.text((across + 8.0, TOP - 10.0), Anchor::Start, text);
        across += 76.0;
    }
    document.line((across, TOP - 14.0), (across + 22.0, TOP - 14.0), FRAME, 1.6);
    document.text((across + 26.0, TOP - 10.0), Anchor::Start, "sustained");
    document.dashed_line((across + 90.0, TOP - 14.0), (across + 112.0, TOP - 14.0), FRAME, 1.2);
    document.text((across + 116.0, TOP - 10.0), Anchor::Start, "burst");
}

/// A number in few digits.
fn amount(value: f64) -> String {
    match value {
        value if value > 0.0 && value < 0.1 => format!("{value:.0e}"),
        value if value >= 100.0 => format!("{value:.0}"),
        value if value.fract().abs() < 1e-9 => format!("{value:.0}"),
        value => format!("{value:.1}"),
    }
}

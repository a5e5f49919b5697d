//! How one run compares with a golden one: for a terminal, a Markdown page, and tools that read JUnit.

mod junit;
mod markdown;
mod text;

pub use junit::junit;
pub use markdown::markdown;
pub use text::text;

use warpforge_golden::report::{
    Bin, Bisection, Cause, Cluster, Figures, Operation, OriginVerdict, Point, RunInfo, Share, Source, Status,
    TensorReport,
};
use warpforge_golden::tolerance::{Limits, Nan};
use warpforge_golden::{Validation, Verdict};

use crate::number::significant;
use crate::table::{Align, Style, Table};

/// What stands for a difference that is no number.
const NOT_FINITE: &str = "not finite";

/// Rows of the longer tables; the rest is in the JSON.
const SHOWN: usize = 20;

/// A number of a few digits.
fn number(value: f64) -> String {
    significant(value, 3)
}

fn style(verdict: Verdict) -> Style {
    match verdict {
        Verdict::Pass => Style::Good,
        Verdict::Fail => Style::Bad,
        Verdict::Inconclusive => Style::Faint,
    }
}

/// A row a class.
fn classes(validation: &Validation) -> Table {
    let mut table = Table::new(&[
        ("class", Align::Left),
        ("verdict", Align::Left),
        ("compared", Align::Right),
        ("identical", Align::Right),
        ("failed", Align::Right),
        ("missing", Align::Right),
        ("extra", Align::Right),
        ("max abs", Align::Right),
        ("max rel", Align::Right),
        ("max ULP", Align::Right),
        ("cosine", Align::Right),
    ]);
    for class in &validation.classes {
        let counts = &class.counts;
        let optional = |value: Option<f64>| value.map(number).unwrap_or_default();
        let cells = [
            class.class.to_string(),
            class.verdict.to_string(),
            counts.compared.to_string(),
            counts.identical.to_string(),
            counts.failed.to_string(),
            counts.missing.to_string(),
            counts.extra.to_string(),
            if class.non_finite > 0 { NOT_FINITE.to_owned() } else { optional(class.max_abs) },
            optional(class.max_rel),
            class.max_ulp.map(|ulp| ulp.to_string()).unwrap_or_default(),
            class.min_cosine.map(cosine).unwrap_or_default(),
        ];
        table.row(style(class.verdict), cells);
    }
    table
}

/// A cosine with as many digits as it takes to see that it is not 1.
fn cosine(value: f64) -> String {
    format!("{value:.6}")
}

/// A row an operation out of tolerance.
fn operations(validation: &Validation) -> Table {
    let mut table = Table::new(&[
        ("#", Align::Right),
        ("node", Align::Left),
        ("operation", Align::Left),
        ("source", Align::Left),
        ("max abs", Align::Right),
        ("out of tolerance", Align::Right),
        ("error", Align::Left),
    ]);
    for operation in validation.operations.iter().take(SHOWN) {
        let figures = operation.figures.as_ref();
        let style = match operation.origin.verdict {
            OriginVerdict::AroseHere | OriginVerdict::Both => Style::Bad,
            OriginVerdict::Inherited => Style::Plain,
            OriginVerdict::Unknown => Style::Faint,
        };
        let cells = [
            operation.position.to_string(),
            with_step(operation.step.as_deref(), &operation.node),
            operation.target.clone().unwrap_or_default(),
            operation.source.clone().unwrap_or_default(),
            figures.map(max_abs).unwrap_or_default(),
            figures.map(share).unwrap_or_default(),
            operation.origin.verdict.to_string(),
        ];
        table.row(style, cells);
    }
    table
}

fn with_step(step: Option<&str>, name: &str) -> String {
    step.map_or_else(|| name.to_owned(), |step| format!("{step}/{name}"))
}

/// The largest difference; with NaN or infinities in one run alone there is none.
fn max_abs(figures: &Figures) -> String {
    if figures.first_non_finite.is_some() { NOT_FINITE.to_owned() } else { number(figures.max_abs) }
}

/// How many elements are NaN or infinite, and the first that is so in one run alone.
fn non_finite(figures: &Figures) -> Option<String> {
    let first = figures.first_non_finite.as_ref()?;
    let count = |nan: Option<u64>, infinite: Option<u64>| {
        format!("{} NaN and {} infinite", nan.unwrap_or(0), infinite.unwrap_or(0))
    };
    Some(format!(
        "golden {}, candidate {} of {}; first at {:?}: golden {}, candidate {}",
        count(figures.golden_nan, figures.golden_infinite),
        count(figures.candidate_nan, figures.candidate_infinite),
        figures.elements,
        first.index,
        first.golden,
        first.candidate
    ))
}

/// What sets the tolerance of a tensor, where that is not plain: outliers, or a single element.
fn scale(report: &TensorReport) -> Option<String> {
    let figures = report.figures.as_ref().filter(|_| report.rule.limits.scaled > 0.0)?;
    let (scale, largest, outliers) = (figures.scale?, figures.largest?, figures.outliers?);
    let one = if figures.scale_of_one { ", which is that of one element" } else { "" };
    if outliers > 0 {
        let those = match outliers {
            1 => "1 outlier is judged by its own magnitude".to_owned(),
            _ => format!("{outliers} outliers are judged by their own magnitudes"),
        };
        return Some(format!(
            "{those}, up to {}; the tolerance of the rest is set by {}{one}",
            number(largest),
            number(scale)
        ));
    }
    figures.scale_of_one.then(|| {
        format!("one element of magnitude {} sets the tolerance of all {}", number(scale), figures.elements)
    })
}

/// How many elements are out of tolerance.
fn share(figures: &Figures) -> String {
    format!("{} of {}", figures.out_of_tolerance, figures.elements)
}

/// A row a tensor that is a mismatch.
fn failures(validation: &Validation) -> Table {
    let mut table = Table::new(&[
        ("class", Align::Left),
        ("tensor", Align::Left),
        ("type", Align::Left),
        ("status", Align::Left),
        ("out of tolerance", Align::Right),
        ("max abs", Align::Right),
        ("max rel", Align::Right),
        ("ULP", Align::Right),
        ("worst at", Align::Left),
        ("golden", Align::Right),
        ("candidate", Align::Right),
        ("tolerance", Align::Left),
    ]);
    for report in failed(validation).take(SHOWN) {
        let figures = report.figures.as_ref();
        let worst = figures.and_then(|figures| figures.worst.as_ref());
        let figure = |value: fn(&Figures) -> String| figures.map(value).unwrap_or_default();
        let point = |value: fn(&Point) -> String| worst.map(value).unwrap_or_default();
        let cells = [
            report.class.to_string(),
            report.label(),
            kinds(report),
            report.status.to_string(),
            figure(share),
            figure(max_abs),
            figure(|figures| number(figures.max_rel)),
            figure(|figures| figures.max_ulp.to_string()),
            point(|point| format!("{:?}", point.index)),
            point(|point| short(&point.golden)),
            point(|point| short(&point.candidate)),
            tolerance(report),
        ];
        table.row(Style::Bad, cells);
    }
    table
}

fn failed(validation: &Validation) -> impl Iterator<Item = &TensorReport> {
    validation.tensors.iter().filter(|report| report.failed)
}

/// What is more than the tables show, in words.
fn more(count: usize) -> Option<String> {
    (count > SHOWN).then(|| format!("… and {} more; --json has all", count - SHOWN))
}

/// A value as text, shortened to six digits where it is a plain number.
fn short(value: &str) -> String {
    value.parse::<f64>().map_or_else(|_| value.to_owned(), |value| significant(value, 6))
}

/// The type of a tensor; both where they differ.
fn kinds(report: &TensorReport) -> String {
    match (&report.golden, &report.candidate) {
        (Some(golden), Some(candidate)) if golden != candidate => format!("{golden}, not {candidate}"),
        (Some(kind), _) | (None, Some(kind)) => kind.to_string(),
        (None, None) => String::new(),
    }
}

/// The rule in a few words.
fn tolerance(report: &TensorReport) -> String {
    if let Some(three_way) = &report.three_way {
        return format!("{} × the golden distance from the reference", three_way.factor);
    }
    let Limits { rtol, atol, scaled, ulp } = report.rule.limits;
    let mut parts: Vec<String> = [("rtol", rtol), ("atol", atol), ("scaled", scaled)]
        .into_iter()
        .filter(|(_, value)| *value > 0.0)
        .map(|(name, value)| format!("{name} {value:e}"))
        .collect();
    if ulp > 0 {
        parts.push(format!("{ulp} ULP"));
    }
    if parts.is_empty() {
        parts.push("exact".to_owned());
    }
    if report.rule.nan == Nan::Mismatch {
        parts.push("no NaN".to_owned());
    }
    parts.join(", ")
}

/// Where a run comes from, in a line.
fn run_label(run: &RunInfo) -> String {
    let mut facts: Vec<String> = run.model.iter().cloned().collect();
    facts.extend(run.seed.map(|seed| format!("seed {seed}")));
    // The rest of the versions is in the JSON: a run names a dozen.
    let made_by = run.versions.iter().filter(|(name, _)| matches!(name.as_str(), "torch" | "warpt"));
    facts.extend(made_by.map(|(name, version)| format!("{name} {version}")));
    let facts = if facts.is_empty() { String::new() } else { format!(" ({})", facts.join(", ")) };
    format!("{}{facts}", run.path)
}

/// An operation in a line: node, operation, module, source.
fn operation_label(operation: &Operation) -> String {
    let mut label = with_step(operation.step.as_deref(), &operation.node);
    if let Some(target) = &operation.target {
        label += &format!(" ({target})");
    }
    if let Some(module) = operation.module.as_ref().filter(|module| !module.is_empty()) {
        label += &format!(" in {module}");
    }
    if let Some(source) = &operation.source {
        label += &format!(", {source}");
    }
    label
}

/// What is to say about the first operation: what differs, where it comes from, both values.
fn first_operation(operation: &Operation) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(figures) = &operation.figures {
        lines.push(format!(
            "{} `{}`: {} elements out of tolerance, max abs {}, max rel {}, {} ULP, cosine {}",
            operation.class,
            operation.tensor,
            share(figures),
            max_abs(figures),
            number(figures.max_rel),
            figures.max_ulp,
            figures.cosine.map_or_else(|| "unknown".to_owned(), cosine),
        ));
        lines.extend(non_finite(figures));
        let points = [("worst", &figures.worst), ("first", &figures.first)];
        let mut shown: Option<&Point> = None;
        for (what, point) in points {
            let Some(point) = point.as_ref().filter(|point| shown != Some(point)) else { continue };
            lines.push(format!(
                "{what} at {:?}: golden {}, candidate {}",
                point.index, point.golden, point.candidate
            ));
            shown = Some(point);
        }
    }
    if let Some(cluster) = &operation.cluster {
        let Cluster { position, kernel, nodes } = cluster;
        lines.push(format!("cluster {position}, kernel `{kernel}`, computes {}", nodes.join(", ")));
    }
    lines.push(format!("{}: {}", operation.origin.verdict, operation.origin.explanation));
    if let Some(replay) = &operation.origin.replay {
        lines.push(format!("replayed {} from {}", replay.nodes.join(", "), replay.inputs.join(", ")));
    }
    lines
}

/// Which operation made the error that the first one out of tolerance inherited.
fn cause(found: &Cause) -> String {
    let step = found.step.as_ref().map(|step| format!("{step}/")).unwrap_or_default();
    let target = found.target.as_ref().map(|target| format!(" ({target})")).unwrap_or_default();
    let source = found.source.as_ref().map(|source| format!(", {source}")).unwrap_or_default();
    format!(
        "the error arose in {step}{}{target}{source}: its value is within the tolerance, but {} off by itself, {} of its largest",
        found.node,
        number(found.max_abs),
        number(found.part_of_largest),
    )
}

/// What stands before the first operation: a fused cluster where a kernel computed several.
fn first_title(operation: &Operation) -> &'static str {
    match &operation.cluster {
        Some(_) => "first cluster out of tolerance",
        None => "first operation out of tolerance",
    }
}

/// What splitting the operation has shown.
fn bisection(found: &Bisection) -> Vec<String> {
    let place = found.source.as_ref().map(|source| format!(", {source}")).unwrap_or_default();
    let what = match found.of {
        Source::Execution => "the engine computes it otherwise than the reference",
        Source::Import => "the imported model computes it otherwise than the golden run",
    };
    let Share { max_abs, out_of_tolerance, .. } = found.difference;
    let mut lines = vec![format!(
        "split, the first node out of tolerance is {}{place}: {what} (up to {max_abs:.2e}, {out_of_tolerance} out of tolerance)",
        found.node
    )];
    lines.push(format!("smallest subgraph: {} from {}", found.subgraph.join(", "), found.inputs.join(", ")));
    lines.extend(found.written.as_ref().map(|folder| format!("written to {folder}")));
    lines
}

/// A histogram of differences as a table with bars.
fn differences(figures: &Figures) -> Table {
    histogram(&figures.histogram, "difference", |value| format!("{value:e}"))
}

/// A histogram of distances as a table with bars.
fn distances(figures: &Figures) -> Table {
    let power = |value: f64| if value < 1024.0 { value.to_string() } else { format!("2^{}", value.log2()) };
    histogram(&figures.ulp_histogram, "ULP", power)
}

fn histogram(bins: &[Bin], what: &str, end: impl Fn(f64) -> String) -> Table {
    const WIDTH: f64 = 30.0;
    let mut table = Table::new(&[(what, Align::Right), ("elements", Align::Right), ("", Align::Left)]);
    let largest = bins.iter().map(|bin| bin.count).max().unwrap_or(1).max(1);
    for bin in bins {
        let range = match bin.to {
            Some(0.0) => "0".to_owned(),
            Some(to) if bin.from == 0.0 => format!("below {}", end(to)),
            Some(to) => format!("{} to {}", end(bin.from), end(to)),
            None => format!("from {}", end(bin.from)),
        };
        // A bin that holds anything shows a bar.
        let length = (bin.count as f64 / largest as f64 * WIDTH).ceil() as usize;
        table.row(Style::Plain, [range, bin.count.to_string(), "█".repeat(length)]);
    }
    table
}

/// What it came to, in a line.
fn summary(validation: &Validation) -> String {
    let counts = &validation.counts;
    let mut parts =
        vec![format!("{} tensors compared", counts.compared), format!("{} failed", counts.failed)];
    let optional = [
        (counts.identical, "identical"),
        (counts.missing, "missing"),
        (counts.extra, "extra"),
        (counts.ignored, "ignored"),
        (counts.skipped, "skipped"),
    ];
    parts.extend(
        optional.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")),
    );
    parts.push(format!(
        "{} of {} elements out of tolerance",
        counts.elements_out_of_tolerance, counts.elements
    ));
    match validation.verdict {
        Verdict::Inconclusive => format!("nothing could be compared: {}", parts.join(", ")),
        _ => parts.join(", "),
    }
}

/// Names of the tensors of a status that is no mismatch, a few of them.
fn one_sided(validation: &Validation, status: Status) -> Option<String> {
    let found: Vec<String> = validation
        .tensors
        .iter()
        .filter(|report| report.status == status && !report.failed)
        .map(|report| {
            let reason = report.reason.iter().map(|reason| format!(" ({reason})")).collect::<String>();
            format!("{} {}{reason}", report.class, report.label())
        })
        .collect();
    let few = found.iter().take(5).cloned().collect::<Vec<_>>().join(", ");
    let rest = if found.len() > 5 { format!(" and {} more", found.len() - 5) } else { String::new() };
    (!found.is_empty()).then(|| format!("{status}: {few}{rest}"))
}

/// What is to say about tensors one by one, of the first few.
fn about(validation: &Validation, what: impl Fn(&TensorReport) -> Option<String>) -> Vec<String> {
    const FEW: usize = 5;
    let said =
        |report: &TensorReport| Some(format!("{} {}: {}", report.class, report.label(), what(report)?));
    let mut lines: Vec<String> = validation.tensors.iter().filter_map(said).collect();
    if lines.len() > FEW {
        let rest = lines.len() - FEW;
        lines.truncate(FEW);
        lines.push(format!("… and {rest} more tensors likewise; --json has all"));
    }
    lines
}

/// What else a reader should know.
fn notes(validation: &Validation) -> Vec<String> {
    let mut notes: Vec<String> = [Status::Missing, Status::Extra, Status::Ignored, Status::Skipped]
        .into_iter()
        .filter_map(|status| one_sided(validation, status))
        .collect();
    notes.extend(about(validation, |report| non_finite(report.figures.as_ref()?)));
    notes.extend(about(validation, scale));
    notes.extend(validation.notes.iter().cloned());
    notes
}

#[cfg(test)]
mod tests;

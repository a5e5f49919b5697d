//! Stress tests and their results for people.

use std::fmt::Write as _;

use warpforge_inventory::live::Conditions;
use warpforge_report::number::{significant, with_unit};
use warpforge_report::{Screen, Style};
use warpforge_stress::{Range, Rate, Test, TestResult, Verdict};

/// Heights of a course's windows.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The tests and what they do.
pub(super) fn list(tests: &[&Test], screen: Screen) -> String {
    let mut text = String::new();
    for test in tests {
        text += &screen.line(Style::Plain, 2, &format!("{} {}, in {}", test.component, test.name, test.unit));
        text += &screen.labelled("    load:     ", test.what);
        text += &screen.labelled("    verified: ", test.verified);
    }
    text
}

/// What a test came to: a line, and what a reader should know below it.
pub(super) fn result(result: &TestResult, screen: Screen) -> String {
    let style = match result.verdict {
        Verdict::Pass => Style::Good,
        Verdict::Fail => Style::Bad,
        Verdict::Skipped => Style::Faint,
    };
    let verdict = result.verdict.word();
    let mut heading = format!("{verdict}  {} {}", result.component, result.test);
    if let Some(rate) = &result.rate {
        let _ = write!(
            heading,
            ": {} in {:.1} s, {}, {}",
            counted(result.iterations, "iteration"),
            result.seconds,
            with_unit(rate.mean, &rate.unit),
            counted(result.errors, "error")
        );
    }
    if result.stopped {
        heading += " (stopped)";
    }
    let mut text = screen.line(Style::Plain, 4, &heading).replacen(verdict, &screen.paint(style, verdict), 1);
    let mut line = |name: &str, content: &str| {
        text += &screen.line(Style::Plain, 2, &format!("    {name}: {content}"));
    };
    if let Some(reason) = &result.reason {
        line("reason", reason);
    }
    if let Some(rate) = &result.rate {
        line("rate", &course(rate));
    }
    for mismatch in &result.mismatches {
        let content = format!(
            "iteration {}, {}, {}: expected {}, found {}",
            mismatch.iteration, mismatch.what, mismatch.location, mismatch.expected, mismatch.found
        );
        line("error", &content);
    }
    if result.rate.is_some() {
        let known = [
            ("throttled", throttling(result)),
            ("temperature", ranges(&result.telemetry.temperature_celsius, "°C")),
            ("power", ranges(&result.telemetry.power_watts, "W")),
        ];
        for (name, content) in &known {
            if let Some(content) = content {
                line(name, content);
            }
        }
        let silent: Vec<&str> =
            known.iter().filter(|(_, content)| content.is_none()).map(|(name, _)| *name).collect();
        if !silent.is_empty() {
            line("not reported by this machine", &silent.join(", "));
        }
    }
    for note in &result.notes {
        line("note", note);
    }
    for warning in result.conditions.iter().flat_map(Conditions::warnings) {
        line("warning", &warning);
    }
    text
}

/// So many of a thing: `1 error`, `2 errors`.
fn counted(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// How the rate went: a bar a window, and the end compared with the beginning.
fn course(rate: &Rate) -> String {
    let most = rate.windows.iter().map(|window| window.rate).fold(0.0, f64::max);
    let bar = |rate: f64| BARS[((rate / most * 8.0) as usize).min(BARS.len() - 1)];
    let bars: String =
        if most > 0.0 { rate.windows.iter().map(|window| bar(window.rate)).collect() } else { String::new() };
    let (first, sustained) = (&rate.first, &rate.sustained);
    let compared = match rate.sustained_over_first {
        Some(ratio) => format!("{} of the {}'s", significant(ratio, 3), first.name),
        None => format!("too few iterations to compare with the {}", first.name),
    };
    format!("{bars} {}: {}, {compared}", sustained.name, with_unit(sustained.rate, &rate.unit))
}

fn throttling(result: &TestResult) -> Option<String> {
    if !result.throttled? {
        return Some("no".to_owned());
    }
    let events = result.conditions.as_ref().and_then(|conditions| conditions.throttle_events);
    let events = events.filter(|&events| events > 0).map(|events| format!("processor {events} times"));
    let gpus = result.telemetry.gpu_throttle_reasons.clone().unwrap_or_default();
    Some(format!("yes ({})", events.into_iter().chain(gpus).collect::<Vec<_>>().join(", ")))
}

fn ranges(ranges: &[Range], unit: &str) -> Option<String> {
    let one = |range: &Range| {
        format!("{} {:.1} to {:.1} {unit}, mean {:.1}", range.source, range.min, range.max, range.mean)
    };
    (!ranges.is_empty()).then(|| ranges.iter().map(one).collect::<Vec<_>>().join("; "))
}

//! A profile for people: limits, patterns with their verdicts, and a small roofline.

use warpforge_calibrate::profile::FusionProfile;
use warpforge_calibrate::roofline::Roofline;
use warpforge_calibrate::{Profile, Verdict};
use warpforge_report::{Screen, Style, number, roofline};

use super::tables;

/// Columns of the roofline where lines have no end.
const COLUMNS: usize = 78;
const ROWS: usize = 14;

/// Patterns that are listed one by one; of more, what is slower and the clearest gains.
const MOST_PATTERNS: usize = 60;

/// The whole profile.
pub(super) fn profile(profile: &Profile, screen: Screen) -> String {
    let mut out = String::new();
    for (at, line) in tables::header(profile).iter().enumerate() {
        out += &screen.line(if at == 0 { Style::Plain } else { Style::Faint }, 2, line);
    }
    for device in profile.devices() {
        out += "\n";
        out += &tables::peaks(profile, &device).to_text(screen);
        out += "\n";
        out += &tables::bandwidths(profile, &device).to_text(screen);
        let shape = Roofline::new(profile, &device);
        let roofs: Vec<f64> = shape.highest().iter().map(|roof| roof.gops).collect();
        let slopes: Vec<f64> = shape.slopes.iter().map(|slope| slope.gbps).collect();
        let points: Vec<(f64, f64)> =
            shape.points.iter().map(|point| (point.intensity, point.gops)).collect();
        out += "\n";
        out += &screen.line(Style::Plain, 2, &format!("{device}: GFLOP/s over operations for each byte"));
        out += &roofline(&roofs, &slopes, &points, screen.columns.unwrap_or(COLUMNS).min(120), ROWS);
    }
    if !profile.fusion_profiles.is_empty() {
        out += "\n";
        out += &patterns(profile, screen);
    }
    out += "\n";
    for line in closing(profile) {
        out += &screen.line(Style::Plain, 2, &line);
    }
    out
}

fn patterns(profile: &Profile, screen: Screen) -> String {
    let mut entries: Vec<&FusionProfile> = profile.fusion_profiles.iter().collect();
    let all = entries.len();
    if all > MOST_PATTERNS {
        // What is slower, then the clearest gains.
        entries.sort_by(|a, b| a.speedup_factor.total_cmp(&b.speedup_factor));
        let slower =
            entries.iter().filter(|entry| entry.verdict == Verdict::Slower).count().min(MOST_PATTERNS / 2);
        entries.drain(slower..all - (MOST_PATTERNS - slower));
    }
    let mut out = tables::patterns(&entries).to_text(screen);
    if all > entries.len() {
        let rest = all - entries.len();
        out += &screen.line(Style::Faint, 2, &format!("and {rest} patterns between these: --json has all"));
    }
    out
}

fn closing(profile: &Profile) -> Vec<String> {
    let overheads: Vec<String> = profile
        .overheads
        .iter()
        .map(|overhead| {
            format!("{} {} {} µs", overhead.device, overhead.what, number::significant(overhead.us, 3))
        })
        .collect();
    let mut lines = vec![format!("overheads: {}", overheads.join(", "))];
    let count =
        |verdict: Verdict| profile.fusion_profiles.iter().filter(|entry| entry.verdict == verdict).count();
    let verdicts =
        [Verdict::Strong, Verdict::Moderate, Verdict::Minimal, Verdict::Slower, Verdict::Inconclusive];
    let counted: Vec<String> =
        verdicts.into_iter().map(|verdict| format!("{} {verdict}", count(verdict))).collect();
    lines.push(format!("{} operations; fusion: {}", profile.operations.len(), counted.join(", ")));
    lines.extend(tables::trust(profile));
    if let Some(first) = profile.self_check.skipped.first() {
        lines.push(format!("not measured here: {} cases, such as {first}", profile.self_check.skipped.len()));
    }
    lines
}

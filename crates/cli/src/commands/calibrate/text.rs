//! A profile for people: limits, patterns with their verdicts, and a small roofline.

use warpforge_calibrate::profile::{FusionProfile, Mode, Peak};
use warpforge_calibrate::roofline::Roofline;
use warpforge_calibrate::{Profile, Verdict};
use warpforge_report::{Align, Screen, Style, Table, number, roofline};

/// Columns of the roofline where lines have no end.
const COLUMNS: usize = 78;
const ROWS: usize = 14;

/// Patterns that are listed one by one; of more, those of the seed's sizes and what is slower come first.
const MOST_PATTERNS: usize = 60;

/// The whole profile.
pub(super) fn profile(profile: &Profile, screen: Screen) -> String {
    let mut out = header(profile, screen);
    for device in profile.devices() {
        out += "\n";
        out += &peaks(profile, &device).to_text(screen);
        out += "\n";
        out += &bandwidths(profile, &device).to_text(screen);
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

fn header(profile: &Profile, screen: Screen) -> String {
    let machine = &profile.machine;
    let scale = if profile.quick { "quick" } else { "full" };
    let state = if profile.complete { "" } else { ", not complete: --resume goes on" };
    let line = format!(
        "{} ({}), {scale} calibration of {}{state}",
        machine.hardware_name,
        machine.fingerprint,
        profile.created.strftime("%Y-%m-%d %H:%M")
    );
    let mut out = screen.line(Style::Plain, 2, &line);
    let said = [
        profile.theoretical.peak_gflops.map(|value| format!("{} GFLOP/s", number::significant(value, 4))),
        profile
            .theoretical
            .peak_bandwidth_gbps
            .map(|value| format!("{} GB/s", number::significant(value, 4))),
    ];
    let said: Vec<String> = said.into_iter().flatten().collect();
    if !said.is_empty() {
        out += &screen.line(Style::Faint, 2, &format!("its maker says {}", said.join(" and ")));
    }
    out
}

fn peaks(profile: &Profile, device: &str) -> Table {
    let mut table = Table::new(&[
        ("type", Align::Left),
        ("units", Align::Left),
        ("threads", Align::Right),
        ("burst GFLOP/s", Align::Right),
        ("sustained", Align::Right),
        ("ratio", Align::Right),
    ]);
    let own = |peak: &&Peak| peak.device == device;
    for burst in profile.peaks.iter().filter(own).filter(|peak| peak.mode == Mode::Burst) {
        let same = |peak: &&Peak| {
            peak.mode == Mode::Sustained
                && peak.dtype == burst.dtype
                && peak.isa == burst.isa
                && peak.threads == burst.threads
        };
        let held = profile.peaks.iter().filter(own).find(same);
        let cells = [
            burst.dtype.clone(),
            burst.isa.clone(),
            burst.threads.to_string(),
            number::significant(burst.gops, 4),
            held.map_or_else(String::new, |held| number::significant(held.gops, 4)),
            held.map_or_else(String::new, |held| format!("{:.2}", held.gops / burst.gops)),
        ];
        table.row(Style::Plain, cells);
    }
    table
}

fn bandwidths(profile: &Profile, device: &str) -> Table {
    let mut table = Table::new(&[
        ("level", Align::Left),
        ("access", Align::Left),
        ("stores", Align::Left),
        ("threads", Align::Right),
        ("GB/s", Align::Right),
    ]);
    for found in profile.bandwidth.iter().filter(|found| found.device == device) {
        let cells = [
            found.level.clone(),
            found.access.clone(),
            found.stores.clone(),
            found.threads.to_string(),
            number::significant(found.gbps, 4),
        ];
        table.row(Style::Plain, cells);
    }
    table
}

fn patterns(profile: &Profile, screen: Screen) -> String {
    let mut table = Table::new(&[
        ("pattern", Align::Left),
        ("shape", Align::Left),
        ("type", Align::Left),
        ("speedup", Align::Right),
        ("95 % interval", Align::Right),
        ("bytes saved", Align::Right),
        ("kernels", Align::Right),
        ("verdict", Align::Left),
    ]);
    let mut entries: Vec<&FusionProfile> = profile.fusion_profiles.iter().collect();
    let all = entries.len();
    if all > MOST_PATTERNS {
        // What is slower, then the clearest gains.
        entries.sort_by(|a, b| a.speedup_factor.total_cmp(&b.speedup_factor));
        let slower =
            entries.iter().filter(|entry| entry.verdict == Verdict::Slower).count().min(MOST_PATTERNS / 2);
        entries.drain(slower..all - (MOST_PATTERNS - slower));
    }
    for entry in &entries {
        let style = match entry.verdict {
            Verdict::Strong | Verdict::Moderate => Style::Good,
            Verdict::Slower => Style::Bad,
            Verdict::Inconclusive => Style::Faint,
            Verdict::Minimal => Style::Plain,
        };
        let sizes: Vec<String> = entry.input_shape.iter().map(ToString::to_string).collect();
        let cells = [
            entry.fusion_pattern.clone(),
            sizes.join("x"),
            entry.dtype.clone(),
            format!("{:.2}", entry.speedup_factor),
            format!("{:.2} to {:.2}", entry.speedup_ci[0], entry.speedup_ci[1]),
            format!("{:.1} %", 100.0 * entry.memory_reduction),
            format!("{} to {}", entry.unfused_kernels, entry.fused_kernels),
            entry.verdict.to_string(),
        ];
        table.row(style, cells);
    }
    let mut out = table.to_text(screen);
    if all > entries.len() {
        let rest = all - entries.len();
        out += &screen.line(Style::Faint, 2, &format!("and {rest} patterns between these: --json has all"));
    }
    out
}

fn closing(profile: &Profile) -> Vec<String> {
    let check = &profile.self_check;
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
    lines.push(format!(
        "self-check {}: the reference kernel drifted by {:.1} %, speedups are known to {:.1} % in the median, {:.0} s",
        check.verdict,
        100.0 * check.drift,
        100.0 * check.median_half_width,
        check.seconds
    ));
    lines.extend(check.disturbances.iter().map(|disturbance| format!("note: {disturbance}")));
    if let Some(first) = check.skipped.first() {
        lines.push(format!("not measured here: {} cases, such as {first}", check.skipped.len()));
    }
    lines
}

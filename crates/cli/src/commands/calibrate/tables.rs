//! The tables and lines of a profile, for the terminal and for a page.

use warpforge_calibrate::profile::{FusionProfile, Mode, Peak};
use warpforge_calibrate::{Profile, Verdict};
use warpforge_report::{Align, Style, Table, number};

/// What was measured when, and what the maker of the machine says of it.
pub(super) fn header(profile: &Profile) -> Vec<String> {
    let machine = &profile.machine;
    let scale = if profile.quick { "quick" } else { "full" };
    let state = if profile.complete { "" } else { ", not complete: --resume goes on" };
    let mut lines = vec![format!(
        "{} ({}), {scale} calibration of {}{state}",
        machine.hardware_name,
        machine.fingerprint,
        profile.created.strftime("%Y-%m-%d %H:%M")
    )];
    let said =
        [(profile.theoretical.peak_gflops, "GFLOP/s"), (profile.theoretical.peak_bandwidth_gbps, "GB/s")];
    let said = said.into_iter().filter_map(|(value, unit)| Some(number::with_unit(value?, unit)));
    let said: Vec<String> = said.collect();
    if !said.is_empty() {
        lines.push(format!("its maker says {}", said.join(" and ")));
    }
    lines
}

/// Peaks of a device, bursts beside what is held.
pub(super) fn peaks(profile: &Profile, device: &str) -> Table {
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

/// Bandwidths of a device.
pub(super) fn bandwidths(profile: &Profile, device: &str) -> Table {
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

/// Patterns with their verdicts.
pub(super) fn patterns(entries: &[&FusionProfile]) -> Table {
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
    for entry in entries {
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
    table
}

/// What the self-check found.
pub(super) fn trust(profile: &Profile) -> Vec<String> {
    let check = &profile.self_check;
    let mut lines = vec![format!(
        "self-check {}: the reference kernel drifted by {:.1} %, speedups are known to {:.1} % in the median, {:.0} s",
        check.verdict,
        100.0 * check.drift,
        100.0 * check.median_half_width,
        check.seconds
    )];
    lines.extend(check.disturbances.iter().map(|disturbance| format!("note: {disturbance}")));
    lines
}

//! A profile as a page for a browser: the roofline, limits, verdicts, and how far they can be trusted.

use warpforge_calibrate::Profile;
use warpforge_calibrate::roofline::{Roofline, picture};
use warpforge_report::{Align, Page, Style, Table, number};

use super::tables;

/// The page of a profile.
pub(super) fn page(profile: &Profile) -> String {
    let mut page = Page::new(&format!("Calibration of {}", profile.machine.hardware_name));
    for line in tables::header(profile) {
        page.paragraph(&line);
    }
    for device in profile.devices() {
        page.heading(&format!("Roofline of {device}"));
        page.picture(&picture(&Roofline::new(profile, &device)));
        page.heading(&format!("Peaks of {device}"));
        page.table(&tables::peaks(profile, &device));
        page.heading(&format!("Bandwidth of {device}"));
        page.table(&tables::bandwidths(profile, &device));
    }
    page.heading("Overheads");
    page.table(&overheads(profile));
    page.heading("Fusion patterns");
    page.table(&tables::patterns(&profile.fusion_profiles.iter().collect::<Vec<_>>()));
    page.heading("Self-check");
    for line in tables::trust(profile) {
        page.paragraph(&line);
    }
    page.table(&conditions(profile));
    if !profile.self_check.skipped.is_empty() {
        page.heading("Not measured here");
        page.table(&list("case", &profile.self_check.skipped));
    }
    page.heading("Machine");
    page.table(&machine(profile));
    page.finish()
}

fn overheads(profile: &Profile) -> Table {
    let columns =
        [("device", Align::Left), ("what", Align::Left), ("threads", Align::Right), ("µs", Align::Right)];
    let mut table = Table::new(&columns);
    for overhead in &profile.overheads {
        let cells = [
            overhead.device.clone(),
            overhead.what.clone(),
            overhead.threads.to_string(),
            number::significant(overhead.us, 3),
        ];
        table.row(Style::Plain, cells);
    }
    table
}

/// What the machine did meanwhile, as far as it tells.
fn conditions(profile: &Profile) -> Table {
    let conditions = &profile.conditions;
    let figure = |value: Option<f64>, unit: &str| value.map(|value| number::with_unit(value, unit));
    facts([
        ("load average when it began", figure(conditions.load_average_1m, "")),
        ("processor time of other programs", figure(conditions.foreign_cpu_percent, "%")),
        ("processor time of other guests", figure(conditions.steal_percent, "%")),
        ("lowest clock", figure(conditions.min_mhz, "MHz")),
        ("highest clock", figure(conditions.max_mhz, "MHz")),
        ("times throttled", conditions.throttle_events.map(|events| events.to_string())),
        ("highest temperature", figure(conditions.max_temperature_celsius, "°C")),
        ("frequency governor", conditions.governor.clone()),
        ("fastest pace", figure(profile.self_check.pace_gflops, "GFLOP/s")),
    ])
}

fn machine(profile: &Profile) -> Table {
    let machine = &profile.machine;
    facts([
        ("fingerprint", Some(machine.fingerprint.clone())),
        ("processor", Some(machine.cpu.clone())),
        ("threads", Some(machine.threads.to_string())),
        ("caches", Some(machine.caches.join(", "))),
        ("instruction sets", Some(machine.isa.join(" "))),
        ("GPU", machine.gpu.clone()),
        ("driver", machine.driver.clone()),
        ("measured by", Some(format!("warpt {}", profile.tool_version))),
    ])
}

/// What is known, by name.
fn facts<const COUNT: usize>(known: [(&str, Option<String>); COUNT]) -> Table {
    let mut table = Table::new(&[("what", Align::Left), ("value", Align::Left)]);
    for (name, value) in known {
        if let Some(value) = value {
            table.row(Style::Plain, [name.to_owned(), value]);
        }
    }
    table
}

fn list(header: &str, lines: &[String]) -> Table {
    let mut table = Table::new(&[(header, Align::Left)]);
    for line in lines {
        table.row(Style::Faint, [line.clone()]);
    }
    table
}

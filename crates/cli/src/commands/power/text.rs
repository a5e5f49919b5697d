//! Power and energy for people.

use std::fmt::Write as _;

use warpforge_inventory::live::{Energy, EnergyMethod, SourceEnergy};
use warpforge_report::{Align, Screen, Style, Table};

use super::Report;

/// Joules in the unit that people read: `12.3 J`, `1.50 Wh`.
pub(crate) fn joules(joules: f64) -> String {
    match joules {
        joules if joules < 3600.0 => format!("{joules:.2} J"),
        joules if joules < 3.6e6 => format!("{:.3} Wh", joules / 3600.0),
        joules => format!("{:.3} kWh", joules / 3.6e6),
    }
}

/// Sources, total, command and processes.
pub(super) fn report(report: &Report<'_>, screen: Screen) -> String {
    if let (Some(reason), None, true) =
        (&report.energy.reason, report.command, report.energy.sources.is_empty())
    {
        return screen.line(Style::Plain, 2, reason);
    }
    let mut text = String::new();
    if !report.energy.sources.is_empty() {
        text += &table(&report.energy.sources, screen);
        text.push('\n');
    }
    let line = |content: &str| screen.line(Style::Plain, 2, content);
    text += &line(&format!("energy in {:.2} s: {}", report.energy.seconds, total(report.energy)));
    if let Some(command) = report.command {
        text += &line(&format!("command: {} ({})", command.arguments.join(" "), ended(command.exit_code)));
        text += &line(&match (command.cpu_share, command.attributed_joules) {
            (Some(share), Some(used)) => format!(
                "its part by processor time ({:.1} %) of processors and memory: {}",
                100.0 * share,
                joules(used)
            ),
            _ => "its part by processor time: not known on this machine".to_owned(),
        });
    }
    match (report.processes, report.processes_reason) {
        (Some(processes), _) if !processes.is_empty() => {
            let columns = [
                ("pid", Align::Right),
                ("user", Align::Left),
                ("process", Align::Left),
                ("share", Align::Right),
                ("energy", Align::Right),
            ];
            let mut table = Table::new(&columns);
            for process in processes {
                table.row(
                    Style::Plain,
                    [
                        process.pid.to_string(),
                        process.user.clone().unwrap_or_default(),
                        process.name.clone(),
                        format!("{:.1} %", process.share_percent),
                        joules(process.joules),
                    ],
                );
            }
            let _ = write!(text, "\n{}", table.to_text(screen));
        }
        (_, Some(reason)) => text += &line(&format!("processes: not known ({reason})")),
        _ => {}
    }
    text
}

/// How a command ended.
pub(crate) fn ended(exit_code: Option<i32>) -> String {
    exit_code.map_or("ended by a signal".to_owned(), |code| format!("exit code {code}"))
}

/// The total, or why there is none.
pub(crate) fn total(energy: &Energy) -> String {
    let of = energy.counted().join(", ");
    match energy.total_joules {
        Some(used) if energy.seconds > 0.0 => {
            format!("{} of {of}, mean {:.2} W", joules(used), used / energy.seconds)
        }
        Some(used) => format!("{} of {of}", joules(used)),
        None => format!("not known ({})", energy.reason.as_deref().unwrap_or("not reported")),
    }
}

/// What reports its power here.
pub(super) fn sources(energy: &Energy, screen: Screen) -> String {
    match &energy.reason {
        Some(reason) if energy.sources.is_empty() => screen.line(Style::Plain, 2, reason),
        _ => table(&energy.sources, screen),
    }
}

fn table(sources: &[SourceEnergy], screen: Screen) -> String {
    let columns = [
        ("source", Align::Left),
        ("energy", Align::Right),
        ("mean", Align::Right),
        ("least", Align::Right),
        ("most", Align::Right),
        ("known by", Align::Left),
        ("counts in the total", Align::Left),
    ];
    let mut table = Table::new(&columns);
    for source in sources {
        let watts = |value: Option<f64>| value.map_or("-".to_owned(), |watts| format!("{watts:.2} W"));
        let method = match source.method {
            EnergyMethod::Counter => "counter",
            EnergyMethod::Sampled => "sampled power",
        };
        let style = if source.joules.is_some() { Style::Plain } else { Style::Faint };
        table.row(
            style,
            [
                source.source.clone(),
                source.joules.map_or("-".to_owned(), joules),
                watts(source.mean_watts),
                watts(source.min_watts),
                watts(source.max_watts),
                source.reason.clone().unwrap_or_else(|| method.to_owned()),
                if source.counted { "yes" } else { "no" }.to_owned(),
            ],
        );
    }
    table.to_text(screen)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn energy_has_the_unit_of_its_size() {
        assert_eq!(joules(12.345), "12.35 J");
        assert_eq!(joules(5400.0), "1.500 Wh");
        assert_eq!(joules(7.2e6), "2.000 kWh");
    }
}

//! A fleet's baseline and the nodes that stray from it.

use warpforge_bench::fleet::Fleet;
use warpforge_bench::record::Tags;

use crate::number::{percent, with_unit};
use crate::screen::Screen;
use crate::table::{Align, Style, Table};

/// The values that stray, as a table.
#[must_use]
pub fn table(fleet: &Fleet) -> Table {
    let mut table = Table::new(&[
        ("node", Align::Left),
        ("benchmark", Align::Left),
        ("metric", Align::Left),
        ("value", Align::Right),
        ("median", Align::Right),
        ("away", Align::Right),
    ]);
    for stray in &fleet.strays {
        let style = if stray.worse { Style::Bad } else { Style::Good };
        table.row(
            style,
            [
                stray.node.clone(),
                stray.benchmark.to_string(),
                metric(&stray.name, &stray.tags),
                with_unit(stray.value, &stray.unit),
                with_unit(stray.median, &stray.unit),
                percent(stray.percent),
            ],
        );
    }
    table
}

fn metric(name: &str, tags: &Tags) -> String {
    std::iter::once(name).chain(tags.values().map(String::as_str)).collect::<Vec<_>>().join(" ")
}

/// Renders a fleet for a terminal.
#[must_use]
pub fn text(fleet: &Fleet, screen: Screen) -> String {
    let mut out = String::new();
    if !fleet.strays.is_empty() {
        out += &table(fleet).to_text(screen);
        out.push('\n');
    }
    out += &screen.line(Style::Plain, 2, &summary(fleet));
    out
}

/// Renders a fleet as Markdown.
#[must_use]
pub fn markdown(fleet: &Fleet) -> String {
    let mut out = format!("{}\n", summary(fleet));
    if !fleet.strays.is_empty() {
        out += "\n";
        out += &table(fleet).to_markdown();
    }
    out
}

fn summary(fleet: &Fleet) -> String {
    let (nodes, metrics) = (fleet.nodes.len(), fleet.metrics.len());
    let mut worse: Vec<&str> =
        fleet.strays.iter().filter(|stray| stray.worse).map(|stray| stray.node.as_str()).collect();
    worse.sort_unstable();
    worse.dedup();
    let names = match worse.len() {
        0 => "no node strays to the worse".to_owned(),
        count => format!("{count} stray to the worse: {}", worse.join(", ")),
    };
    format!("{nodes} nodes, {metrics} metrics; {names}")
}

//! The processor: its history, and each core.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Margin, Rect};
use ratatui::text::{Line, Span};
use warpforge_inventory::live::TimelineRecord;

use super::cores;
use super::widgets::{Graph, facts, graph, nothing, panel};
use crate::commands::monitor::format;
use crate::commands::monitor::tui::history::History;
use crate::commands::monitor::tui::theme::Theme;

/// Draws the panel.
pub(super) fn draw(frame: &mut Frame, area: Rect, record: &TimelineRecord, history: &History, theme: &Theme) {
    let title = match record.cpu_utilization_percent {
        Some(percent) => format!("CPU {percent:.1}%"),
        None => "CPU".to_owned(),
    };
    let inner = area.inner(Margin::new(1, 1));
    let plan = cores::Plan::within(&record.cores, inner.width, inner.height);
    let block = panel(area, title, summary(record, &plan, theme), theme);
    frame.render_widget(block, area);
    if record.cores.is_empty() {
        nothing(frame, inner, record, theme);
        return;
    }
    let [left, right] =
        Layout::horizontal([Constraint::Fill(1), Constraint::Length(plan.width)]).spacing(1).areas(inner);
    graph(frame, left, &history.cpu, &Graph::Percent, theme);
    cores::draw(frame, right, &record.cores, &plan, theme);
}

fn summary(record: &TimelineRecord, plan: &cores::Plan, theme: &Theme) -> Line<'static> {
    let load = record
        .load_average
        .map(|[one, five, fifteen]| Span::raw(format!("load {one:.2} {five:.2} {fifteen:.2}")));
    let steal = record.cpu_steal_percent.map(|percent| {
        let text = format!("steal {percent:.1}%");
        if percent > 2.0 { Span::styled(text, theme.alarm()) } else { Span::raw(text) }
    });
    let clock = record.mean_mhz().map(|mhz| Span::raw(format::clock(mhz)));
    let power = record.package_watts().map(|watts| Span::raw(format!("{watts:.1} W")));
    let heat =
        record.cpu_celsius().map(|celsius| Span::styled(format!("{celsius:.0} °C"), theme.heat(celsius)));
    let grouped = plan.cores_per_mark().map(|cores| Span::raw(format!("{cores} cores a mark")));
    facts([grouped, load, steal, clock, power, heat])
}

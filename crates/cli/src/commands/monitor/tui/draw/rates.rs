//! What disks and networks carry, in and out.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use warpforge_inventory::live::TimelineRecord;

use super::widgets::{Graph, cut, graph, lines, nothing, panel};
use crate::commands::monitor::format;
use crate::commands::monitor::tui::history::{History, Series};
use crate::commands::monitor::tui::theme::Theme;

/// `write 12.3 MiB/s`
const LABEL_WIDTH: u16 = 17;

/// From this width on a panel has room for the name of the busiest disk.
const WIDE: u16 = 34;

/// A graph whose highest value is below this stays low, so that a trickle does not look like a flood.
const LEAST_SCALE: f64 = 64.0 * 1024.0;

/// One direction.
struct Flow<'a> {
    name: &'static str,
    rate: Option<f64>,
    series: &'a Series,
    style: Style,
}

/// Draws the panel of disks.
pub(super) fn draw_disk(
    frame: &mut Frame,
    area: Rect,
    record: &TimelineRecord,
    history: &History,
    theme: &Theme,
) {
    let busiest = record
        .disks
        .iter()
        .filter_map(|disk| Some((disk.name.as_str(), disk.busy_percent?)))
        .max_by(|a, b| a.1.total_cmp(&b.1));
    let summary = busiest.map(|(name, busy)| {
        let name = if area.width < WIDE { String::new() } else { format!("{} ", cut(name, 12)) };
        Line::from(vec![Span::raw(name), Span::styled(format!("{busy:.0}% busy"), theme.load(busy))])
    });
    let flows = [
        Flow {
            name: "read",
            rate: record.disk_read_bytes_per_second(),
            series: &history.disk_read,
            style: theme.inward(),
        },
        Flow {
            name: "write",
            rate: record.disk_write_bytes_per_second(),
            series: &history.disk_write,
            style: theme.outward(),
        },
    ];
    let heading = ("Disk", summary.unwrap_or_default());
    draw(frame, area, record, heading, !record.disks.is_empty(), &flows, theme);
}

/// Draws the panel of network interfaces.
pub(super) fn draw_network(
    frame: &mut Frame,
    area: Rect,
    record: &TimelineRecord,
    history: &History,
    theme: &Theme,
) {
    let busiest = record
        .networks
        .iter()
        .filter(|network| !network.is_loopback())
        .max_by_key(|network| network.receive_bytes_total.saturating_add(network.transmit_bytes_total));
    let summary = busiest.map(|network| Line::raw(cut(&network.name, 15))).unwrap_or_default();
    let flows = [
        Flow {
            name: "in",
            rate: record.network_receive_bytes_per_second(),
            series: &history.network_in,
            style: theme.inward(),
        },
        Flow {
            name: "out",
            rate: record.network_transmit_bytes_per_second(),
            series: &history.network_out,
            style: theme.outward(),
        },
    ];
    draw(frame, area, record, ("Network", summary), busiest.is_some(), &flows, theme);
}

fn draw(
    frame: &mut Frame,
    area: Rect,
    record: &TimelineRecord,
    (title, summary): (&str, Line<'_>),
    is_there: bool,
    flows: &[Flow<'_>; 2],
    theme: &Theme,
) {
    let block = panel(area, title, summary, theme);
    let inner = block.inner(area);
    frame.render_widget(block, area);
    if !is_there {
        nothing(frame, inner, record, theme);
        return;
    }
    let halves: [Rect; 2] = Layout::vertical([Constraint::Fill(1); 2]).areas(inner);
    for (flow, half) in flows.iter().zip(halves) {
        let [label, chart] =
            Layout::horizontal([Constraint::Length(LABEL_WIDTH), Constraint::Fill(1)]).areas(half);
        let peak = flow.series.peak(usize::from(chart.width));
        let now = Line::from(vec![
            Span::raw(format!("{:<6}", flow.name)),
            Span::styled(format::or_dash(flow.rate.map(format::rate)), flow.style.patch(theme.strong())),
        ]);
        let highest =
            peak.map(|peak| Line::styled(format!("{:<6}{}", "peak", format::rate(peak)), theme.faint()));
        lines(frame, label, [now].into_iter().chain(highest));
        let scale = peak.unwrap_or(0.0).max(LEAST_SCALE);
        graph(frame, chart, flow.series, &Graph::Scaled(scale, flow.style), theme);
    }
}

//! Memory and swap.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};
use warpforge_inventory::live::TimelineRecord;

use super::widgets::{Graph, bar, graph, lines, nothing, panel};
use crate::commands::monitor::format;
use crate::commands::monitor::tui::history::History;
use crate::commands::monitor::tui::theme::Theme;

/// `Swap `
const NAME_WIDTH: usize = 5;
/// ` 100%`
const PERCENT_WIDTH: usize = 5;
/// A bar this long says more than a percentage beside it.
const LEAST_BAR: usize = 6;

/// Draws the panel.
pub(super) fn draw(frame: &mut Frame, area: Rect, record: &TimelineRecord, history: &History, theme: &Theme) {
    let available =
        record.memory_available_bytes.map(|bytes| format!("{} free", format::bytes(bytes as f64)));
    let block = panel(area, "Memory", Line::raw(available.unwrap_or_default()), theme);
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let [gauges, below] = Layout::vertical([Constraint::Length(2), Constraint::Fill(1)]).areas(inner);
    let width = usize::from(inner.width);
    let memory = gauge("RAM", record.memory_used_bytes, record.total_memory_bytes, width, theme);
    let swap = match record.swap_total_bytes {
        Some(0) => Some(Line::styled("Swap none", theme.faint())),
        total => gauge("Swap", record.swap_used_bytes, total, width, theme),
    };
    if memory.is_none() && swap.is_none() {
        nothing(frame, inner, record, theme);
        return;
    }
    lines(frame, gauges, memory.into_iter().chain(swap));
    if !below.is_empty() {
        graph(frame, below, &history.memory, &Graph::Percent, theme);
    }
}

/// `RAM  ███████··· 3.10/23.5 GiB  13%`; the percentage only where the bar stays long enough without its room.
fn gauge(
    name: &str,
    used: Option<u64>,
    total: Option<u64>,
    width: usize,
    theme: &Theme,
) -> Option<Line<'static>> {
    let (used, total) = used.zip(total)?;
    let percent = 100.0 * used as f64 / total.max(1) as f64;
    let mut text = format!(" {}", format::part_of(used, total));
    if NAME_WIDTH + text.len() > width {
        text = format!(" {}", format::bytes(used as f64));
    }
    let room = width.saturating_sub(NAME_WIDTH + text.len());
    let with_percent = room >= LEAST_BAR + PERCENT_WIDTH;
    if with_percent {
        text += &format!(" {percent:>3.0}%");
    }
    let mut spans = vec![Span::raw(format!("{name:<NAME_WIDTH$}"))];
    spans.extend(bar(percent, if with_percent { room - PERCENT_WIDTH } else { room }, theme));
    spans.push(Span::raw(text));
    Some(Line::from(spans))
}

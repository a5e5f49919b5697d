//! The programs that run.

use ratatui::Frame;
use ratatui::layout::{Constraint, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Cell, Row, Table};
use warpforge_inventory::live::ProcessUsage;

use super::widgets::{cut, not_available, panel};
use crate::commands::monitor::format;
use crate::commands::monitor::tui::state::{Order, State};
use crate::commands::monitor::tui::theme::Theme;

/// The frame and the headings.
const ROWS_WITHOUT_PROGRAMS: u16 = 3;

/// How many programs an area has room for.
pub(super) fn visible(area: Rect) -> usize {
    usize::from(area.height.saturating_sub(ROWS_WITHOUT_PROGRAMS))
}

/// Draws the panel.
pub(super) fn draw(frame: &mut Frame, area: Rect, state: &State, theme: &Theme) {
    let all = state.processes.as_deref().unwrap_or_default();
    let shown = &all[state.scroll.min(all.len())..];
    let shown = &shown[..shown.len().min(visible(area))];
    let place = if all.is_empty() {
        Line::default()
    } else {
        Line::raw(format!("{}-{} of {}", state.scroll + 1, state.scroll + shown.len(), all.len()))
    };
    let block = panel(area, "Programs", place, theme);
    let inner = block.inner(area);
    frame.render_widget(block, area);
    if all.is_empty() {
        if state.record.is_some() {
            not_available(frame, inner, theme);
        }
        return;
    }
    let heading = |name: &'static str, order: Option<Order>| {
        let style = if order == Some(state.order) { theme.inverse() } else { theme.strong() };
        Cell::from(Line::from(Span::styled(name, style)).right_aligned())
    };
    let headings = Row::new([
        heading("PID", None),
        Cell::from(Span::styled("USER", theme.strong())),
        heading("CPU%", Some(Order::Cpu)),
        heading("MEMORY", Some(Order::Memory)),
        Cell::from(Span::styled("NAME", theme.strong())),
    ]);
    let user_width = if inner.width < 60 { 8 } else { 12 };
    let widths = [7, user_width, 6, 9].map(Constraint::Length).into_iter().chain([Constraint::Fill(1)]);
    let rows = shown.iter().map(|process| row(process, usize::from(user_width), theme));
    frame.render_widget(Table::new(rows, widths).header(headings).column_spacing(1), inner);
}

fn row<'a>(process: &ProcessUsage, user_width: usize, theme: &Theme) -> Row<'a> {
    let right = |text: String, style| Cell::from(Line::styled(text, style).right_aligned());
    let cpu = process.cpu_percent;
    let cpu_style = if cpu < 0.05 { theme.faint() } else { theme.load(cpu) };
    Row::new([
        right(process.pid.to_string(), theme.faint()),
        Cell::from(cut(process.user.as_deref().unwrap_or("-"), user_width)),
        right(format!("{cpu:.1}"), cpu_style),
        right(format::bytes(process.memory_bytes as f64), ratatui::style::Style::new()),
        Cell::from(process.name.clone()),
    ])
}

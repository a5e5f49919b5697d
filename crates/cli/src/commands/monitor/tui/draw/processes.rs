//! The programs that run.

use ratatui::Frame;
use ratatui::layout::{Constraint, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Cell, Row, Table};
use warpforge_inventory::live::{ProcessUsage, TimelineRecord};

use super::widgets::{cut, nothing, panel};
use crate::commands::monitor::format;
use crate::commands::monitor::tui::programs::{Listed, Order};
use crate::commands::monitor::tui::state::State;
use crate::commands::monitor::tui::theme::Theme;

/// The frame and the headings.
const ROWS_WITHOUT_PROGRAMS: u16 = 3;

/// A narrower panel has no room for users.
const WIDTH_WITH_USERS: u16 = 44;

/// How many programs an area has room for.
pub(super) fn visible(area: Rect) -> usize {
    usize::from(area.height.saturating_sub(ROWS_WITHOUT_PROGRAMS))
}

/// A column of numbers: its heading, what sorts by it, and its values.
struct Column {
    heading: &'static str,
    order: Option<Order>,
    value: fn(&ProcessUsage) -> String,
}

const PID: Column = Column { heading: "PID", order: None, value: |program| program.pid.to_string() };
const CPU: Column = Column {
    heading: "CPU%",
    order: Some(Order::Cpu),
    value: |program| format!("{:.1}", program.cpu_percent),
};
const MEMORY: Column = Column {
    heading: "MEMORY",
    order: Some(Order::Memory),
    value: |program| format::bytes(program.memory_bytes as f64),
};
const GPU_MEMORY: Column = Column {
    heading: "GPU MEM",
    order: Some(Order::GpuMemory),
    value: |program| format::or_dash(program.gpu_memory_bytes.map(|bytes| format::bytes(bytes as f64))),
};

impl Column {
    /// As wide as its widest value, so that no digit is cut.
    fn width(&self, shown: &[(Listed, &ProcessUsage)]) -> u16 {
        let values = shown.iter().map(|(_, program)| (self.value)(program).chars().count());
        let width = values.chain([self.heading.len()]).max().unwrap_or(0);
        u16::try_from(width).unwrap_or(u16::MAX)
    }
}

/// Draws the panel.
pub(super) fn draw(frame: &mut Frame, area: Rect, state: &State, theme: &Theme) {
    let programs = &state.programs;
    let shown: Vec<(Listed, &ProcessUsage)> = programs.shown().collect();
    let place = if shown.is_empty() {
        Line::default()
    } else {
        let last = programs.scroll + shown.len();
        Line::raw(format!("{}-{last} of {}", programs.scroll + 1, programs.len()))
    };
    let title = match (programs.filter(), state.typing) {
        ("", false) => "Programs".to_owned(),
        (filter, true) => format!("Programs /{filter}▏"),
        (filter, false) => format!("Programs /{filter}"),
    };
    let block = panel(area, title, place, theme);
    let inner = block.inner(area);
    frame.render_widget(block, area);
    if programs.is_unknown() {
        nothing(frame, inner, state.record.as_ref().unwrap_or(&TimelineRecord::default()), theme);
        return;
    }
    let mut columns = vec![PID, CPU, MEMORY];
    if programs.has_gpu_memory() {
        columns.push(GPU_MEMORY);
    }
    let user_width = match inner.width {
        ..WIDTH_WITH_USERS => None,
        WIDTH_WITH_USERS..60 => Some(8),
        _ => Some(12),
    };
    let right = |text: String, style| Cell::from(Line::styled(text, style).right_aligned());
    let user_heading = || Cell::from(Span::styled("USER", theme.strong()));
    let headings = columns.iter().map(|column| {
        let style = if column.order == Some(programs.order) { theme.inverse() } else { theme.strong() };
        right(column.heading.to_owned(), style)
    });
    let mut headings: Vec<Cell<'_>> = headings.collect();
    let mut widths: Vec<Constraint> =
        columns.iter().map(|column| Constraint::Length(column.width(&shown))).collect();
    if let Some(width) = user_width {
        headings.insert(1, user_heading());
        widths.insert(1, Constraint::Length(width));
    }
    let name = if programs.commands { "COMMAND" } else { "NAME" };
    headings.push(Cell::from(Span::styled(name, theme.strong())));
    widths.push(Constraint::Fill(1));
    let rows = shown.iter().map(|(row, program)| {
        let mut cells: Vec<Cell<'_>> = columns
            .iter()
            .map(|column| right((column.value)(program), style(column, program, theme)))
            .collect();
        if let Some(width) = user_width {
            cells.insert(1, Cell::from(cut(program.user.as_deref().unwrap_or("-"), usize::from(width))));
        }
        cells.push(Cell::from(label(program, row.depth, programs.commands)));
        let row = Row::new(cells);
        if programs.is_selected(program) { row.style(theme.inverse()) } else { row }
    });
    frame.render_widget(Table::new(rows, widths).header(Row::new(headings)).column_spacing(1), inner);
}

fn style(column: &Column, program: &ProcessUsage, theme: &Theme) -> ratatui::style::Style {
    match column.order {
        None => theme.faint(),
        Some(Order::Cpu) if program.cpu_percent < 0.05 => theme.faint(),
        Some(Order::Cpu) => theme.load(program.cpu_percent),
        Some(_) => ratatui::style::Style::new(),
    }
}

/// The name or the command line, below those that started it.
fn label(program: &ProcessUsage, depth: usize, command: bool) -> String {
    let text = program.command.as_ref().filter(|_| command).unwrap_or(&program.name);
    let text = text.replace(|c: char| c.is_control(), " ");
    match depth {
        0 => text,
        _ => format!("{}└ {text}", "  ".repeat(depth - 1)),
    }
}

//! GPUs, a line each, with their history where there is room.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};
use warpforge_inventory::live::{GpuUsage, TimelineRecord};

use super::widgets::{Graph, bar, cut, graph, lines, panel};
use crate::commands::monitor::format;
use crate::commands::monitor::tui::history::History;
use crate::commands::monitor::tui::theme::Theme;

/// The width of everything on a line that is neither the model nor a bar.
const FIXED_WIDTH: usize = 3 + 6 + 15 + 12 + 6 + 9;

/// Draws the panel.
pub(super) fn draw(frame: &mut Frame, area: Rect, record: &TimelineRecord, history: &History, theme: &Theme) {
    let gpus = &record.gpu_usage;
    let watts: Option<f64> = gpus.iter().map(|gpu| gpu.power_watts).sum();
    let summary = watts.filter(|_| gpus.len() > 1).map(|watts| Line::raw(format!("{watts:.0} W together")));
    let title = if gpus.len() == 1 { "GPU".to_owned() } else { format!("{} GPUs", gpus.len()) };
    let block = panel(area, title, summary.unwrap_or_default(), theme);
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let each = if usize::from(inner.height) >= 2 * gpus.len() { 2 } else { 1 };
    let rows = Layout::vertical(vec![Constraint::Length(each); gpus.len().min(usize::from(inner.height))])
        .split(inner);
    for ((gpu, row), series) in gpus.iter().zip(rows.iter()).zip(&history.gpus) {
        let [first, rest] = Layout::vertical([Constraint::Length(1), Constraint::Fill(1)]).areas(*row);
        lines(frame, first, [line(gpu, usize::from(inner.width), theme)]);
        if !rest.is_empty() {
            graph(frame, rest, series, &Graph::Percent, theme);
        }
    }
}

/// `0 NVIDIA H200  █████···  84%  ████···  91.2/140 GiB   310/700 W  61 °C  1.98 GHz`
fn line<'a>(gpu: &GpuUsage, width: usize, theme: &Theme) -> Line<'a> {
    let room = width.saturating_sub(FIXED_WIDTH);
    let model = gpu.model.as_deref().unwrap_or("unknown model");
    let model_width = model.chars().count().min(room / 2).min(28);
    let bar_width = ((room.saturating_sub(model_width)) / 2).min(30);
    let known = |value: Option<String>, width: usize| format!("{:>width$}", format::or_dash(value));
    let memory =
        gpu.memory_used_bytes.zip(gpu.memory_total_bytes).map(|(used, total)| format::part_of(used, total));
    let mut spans = vec![Span::raw(format!("{:>2} {:<model_width$}", gpu.index, cut(model, model_width)))];
    spans.push(Span::raw(" "));
    spans.extend(bar(gpu.utilization_percent.unwrap_or(0.0), bar_width, theme));
    spans.push(Span::raw(known(gpu.utilization_percent.map(|percent| format!("{percent:.0}%")), 5)));
    spans.push(Span::raw(" "));
    spans.extend(bar(gpu.memory_utilization_percent.unwrap_or(0.0), bar_width.saturating_sub(1), theme));
    spans.push(Span::raw(known(memory, 15)));
    spans.push(Span::raw(known(power(gpu), 12)));
    let heat = gpu.temperature_celsius;
    let style = heat.map_or(theme.faint(), |celsius| theme.heat(celsius));
    spans.push(Span::styled(known(heat.map(|celsius| format!("{celsius:.0} °C")), 6), style));
    let throttled = gpu.throttle_reasons.as_ref().is_some_and(|reasons| !reasons.is_empty());
    let style = if throttled { theme.alarm() } else { theme.faint() };
    spans.push(Span::styled(known(gpu.graphics_mhz.map(format::clock), 9), style));
    Line::from(spans)
}

fn power(gpu: &GpuUsage) -> Option<String> {
    let watts = gpu.power_watts?;
    Some(match gpu.power_limit_watts {
        Some(limit) => format!("{watts:.0}/{limit:.0} W"),
        None => format!("{watts:.0} W"),
    })
}

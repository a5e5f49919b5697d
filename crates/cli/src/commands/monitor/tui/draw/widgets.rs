//! Pieces that several panels are made of.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, BorderType, Paragraph, RenderDirection, Sparkline, SparklineBar, Wrap};
use warpforge_inventory::live::TimelineRecord;

use crate::commands::monitor::tui::history::Series;
use crate::commands::monitor::tui::theme::Theme;

/// What a section says, once, when the machine does not tell its values.
const NOT_AVAILABLE: &str = "not available on this machine";

/// What it says before the first sample.
const MEASURING: &str = "measuring …";

/// Why a section has nothing to show.
pub(super) fn absent(record: &TimelineRecord) -> &'static str {
    if *record == TimelineRecord::default() { MEASURING } else { NOT_AVAILABLE }
}

/// Graphs count in steps of this many to the unit, because their widget takes whole numbers.
const STEPS: f64 = 100.0;

/// A frame with a title on the left and a summary on the right, which gives way where there is no room for both.
pub(super) fn panel<'a>(area: Rect, title: impl Into<String>, summary: Line<'a>, theme: &Theme) -> Block<'a> {
    let title = title.into();
    let room = usize::from(area.width).saturating_sub(title.chars().count() + 5);
    let block = Block::bordered()
        .border_type(BorderType::Rounded)
        .border_style(theme.faint())
        .title(Span::styled(format!(" {title} "), theme.title()));
    if summary.width() == 0 || summary.width() + 2 > room {
        return block;
    }
    let mut spans = vec![Span::raw(" ")];
    spans.extend(summary.spans);
    spans.push(Span::raw(" "));
    block.title(Line::from(spans).right_aligned())
}

/// A horizontal bar of the given width, to an eighth of a column.
pub(super) fn bar(percent: f64, width: usize, theme: &Theme) -> Vec<Span<'static>> {
    const PARTS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (percent.clamp(0.0, 100.0) / 100.0 * width as f64 * 8.0).round() as usize;
    let filled = "█".repeat(eighths / 8) + PARTS[eighths % 8];
    let empty = "·".repeat(width.saturating_sub(filled.chars().count()));
    vec![Span::styled(filled, theme.load(percent)), Span::styled(empty, theme.faint())]
}

/// How a graph is scaled and coloured.
pub(super) enum Graph {
    /// Up to 100, each value in the colour of its load.
    Percent,
    /// Up to the given value, in one colour.
    Scaled(f64, Style),
}

/// The history of a quantity, newest on the right.
pub(super) fn graph(frame: &mut Frame, area: Rect, series: &Series, kind: &Graph, theme: &Theme) {
    let (top, style) = match kind {
        Graph::Percent => (100.0, None),
        Graph::Scaled(top, style) => (top.max(1.0), Some(*style)),
    };
    let bars = series.newest_first().take(usize::from(area.width)).map(|value| {
        let steps = value.map(|value| (value / top * 100.0 * STEPS).round().max(0.0) as u64);
        SparklineBar::from(steps).style(style.or_else(|| value.map(|value| theme.load(value))))
    });
    let sparkline = Sparkline::default()
        .data(bars.collect::<Vec<_>>())
        .max((100.0 * STEPS) as u64)
        .direction(RenderDirection::RightToLeft);
    frame.render_widget(sparkline, area);
}

/// Says that a section has nothing to show.
pub(super) fn nothing(frame: &mut Frame, area: Rect, record: &TimelineRecord, theme: &Theme) {
    let text = Paragraph::new(absent(record)).style(theme.faint()).wrap(Wrap { trim: true });
    frame.render_widget(text, area);
}

/// Lines from the top of an area.
pub(super) fn lines<'a>(frame: &mut Frame, area: Rect, lines: impl IntoIterator<Item = Line<'a>>) {
    frame.render_widget(Paragraph::new(lines.into_iter().collect::<Vec<_>>()), area);
}

/// Spans one after the other.
pub(super) fn joined<'a>(parts: impl IntoIterator<Item = Vec<Span<'a>>>) -> Line<'a> {
    Line::from(parts.into_iter().flatten().collect::<Vec<_>>())
}

/// Known facts, separated by dots.
pub(super) fn facts<'a>(facts: impl IntoIterator<Item = Option<Span<'a>>>) -> Line<'a> {
    let mut spans = Vec::new();
    for fact in facts.into_iter().flatten() {
        if !spans.is_empty() {
            spans.push(Span::raw(" · "));
        }
        spans.push(fact);
    }
    Line::from(spans)
}

/// A text cut to a width, with a mark where something is missing.
pub(super) fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width.saturating_sub(1)).chain(['…']).take(width).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(spans: &[Span<'_>]) -> String {
        spans.iter().map(|span| span.content.as_ref()).collect()
    }

    #[test]
    fn bars_fill_by_eighths_and_keep_their_width() {
        let theme = Theme::new(false);
        assert_eq!(text(&bar(50.0, 4, &theme)), "██··");
        assert_eq!(text(&bar(56.25, 2, &theme)), "█▏");
        assert_eq!(text(&bar(0.0, 3, &theme)), "···");
        assert_eq!(text(&bar(250.0, 3, &theme)), "███");
        assert_eq!(text(&bar(50.0, 0, &theme)), "");
    }

    #[test]
    fn long_texts_are_cut_where_one_sees_it() {
        assert_eq!(cut("short", 5), "short");
        assert_eq!(cut("longer", 5), "long…");
        assert_eq!(cut("x", 0), "");
    }
}

//! Power, temperatures, clocks and throttling.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use warpforge_inventory::live::TimelineRecord;

use super::widgets::{absent, cut, lines, panel};
use crate::commands::monitor::format;
use crate::commands::monitor::tui::theme::Theme;

/// A heading and what stands under it.
struct Section {
    heading: &'static str,
    rows: Vec<Row>,
    /// What stands there in place of rows.
    absent: &'static str,
}

/// A name on the left and a value on the right.
struct Row {
    name: String,
    value: Span<'static>,
}

impl Row {
    fn new(name: impl Into<String>, value: impl Into<Span<'static>>) -> Self {
        Self { name: name.into(), value: value.into() }
    }
}

/// Draws the panel.
pub(super) fn draw(frame: &mut Frame, area: Rect, record: &TimelineRecord, theme: &Theme) {
    let block = panel(area, "Sensors", Line::default(), theme);
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let section = |heading, rows| Section { heading, rows, absent: absent(record) };
    let mut sections = vec![
        section("Power", power(record, theme)),
        section("Temperature", temperatures(record, theme)),
        section("Clocks", clocks(record, theme)),
    ];
    if record.gpu_usage.is_empty() {
        sections.push(section("GPUs", Vec::new()));
    }
    lines(frame, inner, layout(&sections, usize::from(inner.width), usize::from(inner.height), theme));
}

/// Gives every section its heading and shares the other lines out, one at a time.
fn layout(sections: &[Section], width: usize, height: usize, theme: &Theme) -> Vec<Line<'static>> {
    let mut shown = vec![0; sections.len()];
    let mut left = height.saturating_sub(sections.len());
    let wanted = |section: &Section| section.rows.len().max(1);
    while left > 0 && sections.iter().zip(&shown).any(|(section, &shown)| shown < wanted(section)) {
        for (section, shown) in sections.iter().zip(&mut shown) {
            if left > 0 && *shown < wanted(section) {
                *shown += 1;
                left -= 1;
            }
        }
    }
    sections.iter().zip(shown).flat_map(|(section, shown)| section.lines(shown, width, theme)).collect()
}

impl Section {
    fn lines(&self, shown: usize, width: usize, theme: &Theme) -> Vec<Line<'static>> {
        let hidden = self.rows.len().saturating_sub(shown);
        let heading =
            if hidden > 0 { format!("{} ({hidden} more)", self.heading) } else { self.heading.to_owned() };
        let mut lines = vec![Line::styled(heading, theme.strong())];
        if self.rows.is_empty() && shown > 0 {
            lines.push(Line::styled(format!("  {}", self.absent), theme.faint()));
        }
        lines.extend(self.rows.iter().take(shown).map(|row| {
            let room = width.saturating_sub(row.value.width() + 3);
            let name = format!("  {:<room$} ", cut(&row.name, room));
            Line::from(vec![Span::styled(name, theme.faint()), row.value.clone()])
        }));
        lines
    }
}

fn power(record: &TimelineRecord, theme: &Theme) -> Vec<Row> {
    let domains = record.power.iter().map(|power| {
        let value = power.watts.map_or_else(
            || Span::styled("needs root to read", theme.faint()),
            |watts| Span::raw(format!("{watts:.1} W")),
        );
        Row::new(&power.domain, value)
    });
    domains.collect()
}

/// The hottest first, because only those may fit.
fn temperatures(record: &TimelineRecord, theme: &Theme) -> Vec<Row> {
    let mut sensors: Vec<_> = record.temperatures.iter().collect();
    sensors.sort_by(|a, b| b.is_cpu.cmp(&a.is_cpu).then(b.celsius.total_cmp(&a.celsius)));
    let rows = sensors.into_iter().map(|sensor| {
        let name = match &sensor.label {
            Some(label) => format!("{} {label}", sensor.chip),
            None => sensor.chip.clone(),
        };
        Row::new(name, Span::styled(format!("{:.0} °C", sensor.celsius), theme.heat(sensor.celsius)))
    });
    rows.collect()
}

fn clocks(record: &TimelineRecord, theme: &Theme) -> Vec<Row> {
    let all = || record.cores.iter().filter_map(|core| core.mhz);
    let lowest = all().reduce(f64::min).zip(all().reduce(f64::max));
    let range = lowest.map(|(lowest, highest)| {
        let text = if highest - lowest < 1.0 {
            format::clock(highest)
        } else {
            format!("{} to {}", format::clock(lowest), format::clock(highest))
        };
        Row::new("cores", text)
    });
    let throttled = record.throttle_events.map(|events| {
        let style = if events > 0 { theme.alarm() } else { theme.faint() };
        Row::new("throttled since start", Span::styled(events.to_string(), style))
    });
    range.into_iter().chain(throttled).collect()
}

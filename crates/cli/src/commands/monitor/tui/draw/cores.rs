//! The load of each core: bars where they fit, one mark a core where they do not.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use warpforge_inventory::live::CoreUsage;

use super::widgets::{bar, joined, lines};
use crate::commands::monitor::format;
use crate::commands::monitor::tui::theme::Theme;

/// A bar shorter than this says too little.
const LEAST_BAR: usize = 3;
/// A bar longer than this says no more.
const MOST_BAR: usize = 24;
/// ` 100%`
const PERCENT_WIDTH: usize = 5;
/// ` 2.40 GHz`
const CLOCK_WIDTH: usize = 9;

/// How the cores are laid out.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Plan {
    /// The columns of the screen it takes.
    pub(super) width: u16,
    kind: Kind,
    rows: usize,
    /// The width of a core's number.
    index: usize,
}

#[derive(Debug, PartialEq, Eq)]
enum Kind {
    Bars { columns: usize, bar: usize, clocks: bool },
    Marks { per_row: usize, cores_per_mark: usize },
}

impl Plan {
    /// The most telling layout that leaves a part of the panel to the graph beside it.
    pub(super) fn within(cores: &[CoreUsage], width: u16, height: u16) -> Self {
        let rows = usize::from(height.max(1));
        let index = cores.iter().map(|core| core.index).max().unwrap_or(0).to_string().len();
        let columns = cores.len().div_ceil(rows).max(1);
        let part = |percent: usize| usize::from(width) * percent / 100;
        let knows_clocks = cores.iter().any(|core| core.mhz.is_some());
        for (percent, clocks) in [(50, true), (60, false), (72, false)] {
            if clocks && !knows_clocks {
                continue;
            }
            let fixed = index + 1 + PERCENT_WIDTH + if clocks { CLOCK_WIDTH } else { 0 } + 1;
            let bar = (part(percent) / columns).saturating_sub(fixed).min(MOST_BAR);
            // With clocks there must be a good bar too, otherwise the bar matters more.
            if bar >= if clocks { 2 * LEAST_BAR } else { LEAST_BAR } {
                let width = columns * (bar + fixed);
                return Self { width: width as u16, kind: Kind::Bars { columns, bar, clocks }, rows, index };
            }
        }
        let room = part(72).saturating_sub(index + 1).max(1);
        let cores_per_mark = cores.len().div_ceil(room * rows).max(1);
        let per_row = cores.len().div_ceil(cores_per_mark).div_ceil(rows).max(1);
        let width = (index + 1 + per_row) as u16;
        Self { width, kind: Kind::Marks { per_row, cores_per_mark }, rows, index }
    }

    /// How many cores share a mark, where they must.
    pub(super) fn cores_per_mark(&self) -> Option<usize> {
        match self.kind {
            Kind::Marks { cores_per_mark, .. } if cores_per_mark > 1 => Some(cores_per_mark),
            _ => None,
        }
    }
}

/// Draws the cores as planned.
pub(super) fn draw(frame: &mut Frame, area: Rect, cores: &[CoreUsage], plan: &Plan, theme: &Theme) {
    let drawn: Vec<Line> = match plan.kind {
        Kind::Bars { columns, bar, clocks } => (0..plan.rows)
            .map(|row| {
                let in_row = (0..columns).filter_map(|column| cores.get(column * plan.rows + row));
                joined(in_row.map(|core| cell(core, plan.index, bar, clocks, theme)))
            })
            .collect(),
        Kind::Marks { per_row, cores_per_mark } => cores
            .chunks(per_row * cores_per_mark)
            .map(|row| {
                let first = row.first().map_or(0, |core| core.index);
                let number = Span::styled(format!("{first:>width$} ", width = plan.index), theme.faint());
                let marks = row.chunks(cores_per_mark).map(|cores| mark(cores, theme));
                Line::from([number].into_iter().chain(marks).collect::<Vec<_>>())
            })
            .collect(),
    };
    lines(frame, area, drawn);
}

/// ` 3 █████···· 45% 2.40 GHz`
fn cell<'a>(core: &CoreUsage, index: usize, width: usize, clocks: bool, theme: &Theme) -> Vec<Span<'a>> {
    let mut spans = vec![Span::styled(format!("{:>index$} ", core.index), theme.faint())];
    spans.extend(bar(core.utilization_percent.unwrap_or(0.0), width, theme));
    spans.push(Span::raw(
        core.utilization_percent.map_or("    -".to_owned(), |percent| format!(" {percent:>3.0}%")),
    ));
    if clocks {
        let clock = core.mhz.map(format::clock).unwrap_or_default();
        spans.push(Span::styled(format!(" {clock:>width$}", width = CLOCK_WIDTH - 1), theme.faint()));
    }
    spans.push(Span::raw(" "));
    spans
}

/// One character for the mean load of some cores.
fn mark<'a>(cores: &[CoreUsage], theme: &Theme) -> Span<'a> {
    const LEVELS: [&str; 9] = ["·", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];
    let loads: Vec<f64> = cores.iter().filter_map(|core| core.utilization_percent).collect();
    if loads.is_empty() {
        return Span::styled("?", theme.faint());
    }
    let load = loads.iter().sum::<f64>() / loads.len() as f64;
    let level = (load / 100.0 * 8.0).round().clamp(0.0, 8.0) as usize;
    if level == 0 {
        Span::styled(LEVELS[0], theme.faint())
    } else {
        Span::styled(LEVELS[level], theme.load(load))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cores(count: u32, mhz: Option<f64>) -> Vec<CoreUsage> {
        (0..count).map(|index| CoreUsage { index, utilization_percent: Some(50.0), mhz }).collect()
    }

    #[test]
    fn every_core_has_a_place_and_the_graph_keeps_its_own() {
        for count in [1, 2, 7, 16, 64, 256, 1024] {
            for (width, height) in [(78, 4), (118, 8), (198, 14)] {
                let plan = Plan::within(&cores(count, None), width, height);
                let places = match plan.kind {
                    Kind::Bars { columns, .. } => columns * plan.rows,
                    Kind::Marks { per_row, cores_per_mark } => per_row * cores_per_mark * plan.rows,
                };
                assert!(places >= count as usize, "{count} cores in {width}x{height}: {plan:?}");
                assert!(plan.width * 100 <= width * 75, "{count} cores in {width}x{height}: {plan:?}");
            }
        }
    }

    #[test]
    fn clocks_are_shown_where_there_is_room() {
        let kind = |mhz, width| Plan::within(&cores(4, mhz), width, 4).kind;
        assert!(matches!(kind(Some(2400.0), 100), Kind::Bars { clocks: true, .. }));
        assert!(matches!(kind(None, 100), Kind::Bars { clocks: false, .. }));
        assert!(matches!(kind(Some(2400.0), 30), Kind::Bars { clocks: false, .. }));
    }
}

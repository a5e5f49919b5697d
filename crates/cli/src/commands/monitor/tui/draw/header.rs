//! The first and the last line of the screen.

use jiff::tz::TimeZone;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};

use super::widgets::{cut, facts};
use crate::commands::monitor::format;
use crate::commands::monitor::tui::state::State;
use crate::commands::monitor::tui::theme::Theme;

/// The most important first: where there is not room for all, the last ones go.
const KEYS: [(&str, &str); 9] = [
    ("q", "leave"),
    ("?", "help"),
    ("p", "pause"),
    ("/", "filter"),
    ("↑↓", "select"),
    ("t", "tree"),
    ("f", "command"),
    ("c/m/g", "sort"),
    ("+/-", "interval"),
];

/// Which machine, how often it is looked at, and what time it is. Where there is not room for all, the least important
/// goes first.
pub(super) fn draw(frame: &mut Frame, area: Rect, state: &State, theme: &Theme) {
    let variants = [(true, true, true), (true, true, false), (false, true, false), (true, false, false)];
    let lines =
        variants.map(|(cores, url, date)| (left(state, cores, url, theme), right(state, date, theme)));
    let fits = |(left, right): &(Line, Line)| left.width() + right.width() + 2 <= usize::from(area.width);
    let [.., last] = &lines;
    let (left, right) = lines.iter().find(|lines| fits(lines)).unwrap_or(last);
    let right_width = u16::try_from(right.width() + 1).unwrap_or(area.width);
    let [left_area, right_area] =
        Layout::horizontal([Constraint::Fill(1), Constraint::Length(right_width)]).areas(area);
    frame.render_widget(left, left_area);
    frame.render_widget(right, right_area);
}

fn left<'a>(state: &'a State, cores: bool, url: bool, theme: &Theme) -> Line<'a> {
    let record = state.record.as_ref().filter(|_| cores);
    let url = state.url.as_deref().filter(|_| url);
    facts([
        Some(Span::styled(" warpt monitor", theme.title())),
        Some(Span::styled(state.host.as_str(), theme.strong())),
        record.map(|record| Span::raw(format!("{} cores", record.cores.len()))),
        url.map(|url| Span::styled(url, theme.faint())),
    ])
}

fn right<'a>(state: &State, date: bool, theme: &Theme) -> Line<'a> {
    let time = state.record.as_ref().map(|record| {
        let format = if date { "%Y-%m-%d %H:%M:%S" } else { "%H:%M:%S" };
        Span::raw(record.timestamp.to_zoned(TimeZone::system()).strftime(format).to_string())
    });
    facts([
        state.paused.then(|| Span::styled(" PAUSED ", theme.inverse())),
        Some(Span::styled(format!("every {}", format::seconds(state.interval)), theme.faint())),
        time,
    ])
}

/// What came of the last key, or the keys worth knowing.
pub(super) fn draw_keys(frame: &mut Frame, area: Rect, note: Option<&str>, theme: &Theme) {
    if let Some(note) = note {
        let note = cut(note, usize::from(area.width).saturating_sub(1));
        frame.render_widget(Line::styled(format!(" {note}"), theme.strong()), area);
        return;
    }
    let mut line = Line::default();
    for (key, meaning) in KEYS {
        let spans = [
            Span::styled(format!(" {key} "), theme.inverse()),
            Span::styled(format!(" {meaning}  "), theme.faint()),
        ];
        if line.width() + spans.iter().map(Span::width).sum::<usize>() > usize::from(area.width) {
            break;
        }
        line.spans.extend(spans);
    }
    frame.render_widget(line, area);
}

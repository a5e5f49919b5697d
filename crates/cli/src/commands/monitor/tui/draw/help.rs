//! The help that lies over the screen.

use ratatui::Frame;
use ratatui::layout::{Constraint, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, BorderType, Clear, Padding, Paragraph};

use crate::commands::monitor::tui::keys::KEYS;
use crate::commands::monitor::tui::theme::Theme;

const NOTES: [&str; 4] = [
    "Processor time of a program is in percent of one core.",
    "Memory in use is what programs cannot have any more.",
    "Network totals leave loopback out.",
    "Graphs have one column a sample, the newest on the right.",
];

/// Draws the help in the middle of the screen.
pub(super) fn draw(frame: &mut Frame, screen: Rect, theme: &Theme) {
    let keys = KEYS.iter().map(|(keys, meaning)| {
        Line::from(vec![Span::styled(format!("{keys:<16}"), theme.strong()), Span::raw(*meaning)])
    });
    let notes = [Line::default()].into_iter().chain(NOTES.map(|note| Line::styled(note, theme.faint())));
    // The keys matter more than the notes.
    let mut text: Vec<Line> = keys.chain(notes).collect();
    text.truncate(usize::from(screen.height.saturating_sub(2)).max(KEYS.len()));
    let height = u16::try_from(text.len() + 2).unwrap_or(u16::MAX);
    let area = screen.centered(Constraint::Length(60), Constraint::Length(height));
    let block = Block::bordered()
        .border_type(BorderType::Rounded)
        .padding(Padding::horizontal(1))
        .title(Span::styled(" Help ", theme.title()));
    frame.render_widget(Clear, area);
    frame.render_widget(Paragraph::new(text).block(block), area);
}

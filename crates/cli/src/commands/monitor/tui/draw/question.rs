//! A question that lies over the screen.

use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, BorderType, Clear, Paragraph};

use super::widgets::cut;
use crate::commands::monitor::tui::theme::Theme;

/// Draws the question and its answers in the middle of the screen.
pub(super) fn draw(frame: &mut Frame, screen: Rect, question: &str, theme: &Theme) {
    let question = cut(question, usize::from(screen.width.saturating_sub(4)));
    let width = u16::try_from(question.chars().count()).unwrap_or(u16::MAX).saturating_add(4);
    let area = screen.centered(Constraint::Length(width.max(24)), Constraint::Length(4));
    let answers = [("y", "yes"), ("n", "no")].into_iter().flat_map(|(key, meaning)| {
        [Span::styled(format!(" {key} "), theme.inverse()), Span::raw(format!(" {meaning}  "))]
    });
    let text = vec![Line::styled(question, theme.alarm()), Line::from(answers.collect::<Vec<_>>())];
    let block = Block::bordered().border_type(BorderType::Rounded);
    frame.render_widget(Clear, area);
    frame.render_widget(Paragraph::new(text).alignment(Alignment::Center).block(block), area);
}

//! What keys do.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::state::{Order, State};

/// Keys and their meaning, as the help shows them.
pub(super) const KEYS: [(&str, &str); 8] = [
    ("q, Esc, Ctrl-C", "leave"),
    ("p, Space", "pause and go on"),
    ("c", "sort programs by processor time"),
    ("m", "sort programs by memory"),
    ("Up, Down, k, j", "scroll programs"),
    ("PgUp, PgDn", "scroll by a screen"),
    ("Home, End", "first and last program"),
    ("?, h", "this help"),
];

/// Whether to go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reaction {
    Continue,
    Quit,
}

/// Changes the state as a key asks for.
pub(super) fn press(state: &mut State, key: KeyEvent) -> Reaction {
    if key.kind == KeyEventKind::Release {
        return Reaction::Continue;
    }
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        return if key.code == KeyCode::Char('c') { Reaction::Quit } else { Reaction::Continue };
    }
    match key.code {
        KeyCode::Esc if state.help => state.help = false,
        KeyCode::Char('q') | KeyCode::Esc => return Reaction::Quit,
        KeyCode::Char('?' | 'h') => state.help = !state.help,
        KeyCode::Char('p' | ' ') => state.paused = !state.paused,
        KeyCode::Char('c') => state.order_by(Order::Cpu),
        KeyCode::Char('m') => state.order_by(Order::Memory),
        KeyCode::Up | KeyCode::Char('k') => state.scroll_by(-1),
        KeyCode::Down | KeyCode::Char('j') => state.scroll_by(1),
        KeyCode::PageUp => state.page_by(-1),
        KeyCode::PageDown => state.page_by(1),
        KeyCode::Home => state.scroll_by(isize::MIN),
        KeyCode::End => state.scroll_by(isize::MAX),
        _ => {}
    }
    Reaction::Continue
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn press_code(state: &mut State, code: KeyCode, modifiers: KeyModifiers) -> Reaction {
        press(state, KeyEvent::new(code, modifiers))
    }

    #[test]
    fn keys_change_the_state() {
        let mut state = State::new("host".to_owned(), Duration::from_secs(1), None);
        let none = KeyModifiers::NONE;
        assert_eq!(press_code(&mut state, KeyCode::Char('p'), none), Reaction::Continue);
        assert!(state.paused);
        press_code(&mut state, KeyCode::Char('m'), none);
        assert_eq!(state.order, Order::Memory);
        press_code(&mut state, KeyCode::Char('?'), KeyModifiers::SHIFT);
        assert!(state.help);
        assert_eq!(
            press_code(&mut state, KeyCode::Esc, none),
            Reaction::Continue,
            "it closes the help first"
        );
        assert!(!state.help);
        press_code(&mut state, KeyCode::End, none);
        assert_eq!(state.scroll, 0, "nothing to scroll");
    }

    #[test]
    fn several_keys_leave() {
        let mut state = State::new("host".to_owned(), Duration::from_secs(1), None);
        assert_eq!(press_code(&mut state, KeyCode::Char('q'), KeyModifiers::NONE), Reaction::Quit);
        assert_eq!(press_code(&mut state, KeyCode::Esc, KeyModifiers::NONE), Reaction::Quit);
        assert_eq!(press_code(&mut state, KeyCode::Char('c'), KeyModifiers::CONTROL), Reaction::Quit);
        assert_eq!(press_code(&mut state, KeyCode::Char('q'), KeyModifiers::CONTROL), Reaction::Continue);
    }
}

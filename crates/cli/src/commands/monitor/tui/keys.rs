//! What keys do.

use std::time::Duration;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use rustix::process::Signal;

use super::programs::Order;
use super::signals::Question;
use super::state::State;

/// Keys and their meaning, as the help shows them.
pub(super) const KEYS: [(&str, &str); 14] = [
    ("q, Esc, Ctrl-C", "leave"),
    ("Ctrl-Z", "suspend; fg in the shell comes back"),
    ("Ctrl-L", "draw the screen again"),
    ("p, Space", "pause and go on"),
    ("+, -", "longer and shorter interval"),
    ("c, m, g", "sort by CPU time, memory, GPU memory"),
    ("/", "filter programs; Esc clears the filter"),
    ("t", "programs as a tree"),
    ("f", "full command lines"),
    ("Up, Down, k, j", "select a program"),
    ("PgUp, PgDn", "select a screen further"),
    ("Home, End", "first and last program"),
    ("T, K, I", "send it SIGTERM, SIGKILL, SIGINT"),
    ("?, h", "this help"),
];

/// What the dashboard does about a key beyond its state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reaction {
    Continue,
    Quit,
    Suspend,
    /// Draw everything again, whatever others wrote on the terminal.
    Redraw,
    /// Samples are wanted this far apart.
    Interval(Duration),
}

/// Changes the state as a key asks for.
pub(super) fn press(state: &mut State, key: KeyEvent) -> Reaction {
    if key.kind == KeyEventKind::Release {
        return Reaction::Continue;
    }
    state.note = None;
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        return match key.code {
            KeyCode::Char('c') => Reaction::Quit,
            KeyCode::Char('z') => Reaction::Suspend,
            KeyCode::Char('l') => Reaction::Redraw,
            _ => Reaction::Continue,
        };
    }
    if state.question.is_some() {
        answer(state, key.code);
        return Reaction::Continue;
    }
    if state.typing {
        type_filter(state, key.code);
        return Reaction::Continue;
    }
    match key.code {
        KeyCode::Esc if state.help => state.help = false,
        KeyCode::Esc if !state.programs.filter().is_empty() => state.programs.filter_by(String::new()),
        KeyCode::Esc if state.programs.selected().is_some() => state.programs.deselect(),
        KeyCode::Char('q') | KeyCode::Esc => return Reaction::Quit,
        KeyCode::Char('?' | 'h') => state.help = !state.help,
        KeyCode::Char('p' | ' ') => state.paused = !state.paused,
        KeyCode::Char('+' | '=') => return pace(state, state.slower()),
        KeyCode::Char('-') => return pace(state, state.faster()),
        KeyCode::Char('c') => state.programs.order_by(Order::Cpu),
        KeyCode::Char('m') => state.programs.order_by(Order::Memory),
        KeyCode::Char('g') => state.programs.order_by(Order::GpuMemory),
        KeyCode::Char('/') => state.typing = true,
        KeyCode::Char('t') => state.programs.toggle_tree(),
        KeyCode::Char('f') => state.programs.commands = !state.programs.commands,
        KeyCode::Char('T') => ask(state, Signal::TERM),
        KeyCode::Char('K') => ask(state, Signal::KILL),
        KeyCode::Char('I') => ask(state, Signal::INT),
        KeyCode::Up | KeyCode::Char('k') => state.programs.move_by(-1),
        KeyCode::Down | KeyCode::Char('j') => state.programs.move_by(1),
        KeyCode::PageUp => state.programs.page_by(-1),
        KeyCode::PageDown => state.programs.page_by(1),
        KeyCode::Home => state.programs.move_by(isize::MIN),
        KeyCode::End => state.programs.move_by(isize::MAX),
        _ => {}
    }
    Reaction::Continue
}

fn pace(state: &mut State, interval: Duration) -> Reaction {
    state.interval = interval;
    Reaction::Interval(interval)
}

/// Asks whether to send a signal to the selected program.
fn ask(state: &mut State, signal: Signal) {
    match state.programs.selected().map(|program| Question::new(signal, program)) {
        None => state.note = Some("select a program first, with the arrows".to_owned()),
        Some(Ok(question)) => state.question = Some(question),
        Some(Err(reason)) => state.note = Some(reason),
    }
}

/// Yes sends the signal, every other key does not.
fn answer(state: &mut State, code: KeyCode) {
    if let Some(question) = state.question.take()
        && matches!(code, KeyCode::Char('y' | 'Y'))
    {
        state.note = Some(question.send());
    }
}

fn type_filter(state: &mut State, code: KeyCode) {
    let mut filter = state.programs.filter().to_owned();
    match code {
        KeyCode::Enter => state.typing = false,
        KeyCode::Esc => {
            state.typing = false;
            state.programs.filter_by(String::new());
        }
        KeyCode::Backspace => {
            filter.pop();
            state.programs.filter_by(filter);
        }
        KeyCode::Char(letter) => {
            filter.push(letter);
            state.programs.filter_by(filter);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::{Child, Command, Stdio};

    use warpforge_inventory::live::ProcessUsage;

    use super::*;

    fn new() -> State {
        State::new("host".to_owned(), Duration::from_secs(1), None)
    }

    fn press_code(state: &mut State, code: KeyCode, modifiers: KeyModifiers) -> Reaction {
        press(state, KeyEvent::new(code, modifiers))
    }

    fn type_all(state: &mut State, keys: &str) {
        for key in keys.chars() {
            assert_eq!(press_code(state, KeyCode::Char(key), KeyModifiers::NONE), Reaction::Continue);
        }
    }

    fn program(pid: u32, name: &str) -> ProcessUsage {
        ProcessUsage {
            pid,
            name: name.to_owned(),
            user: None,
            cpu_percent: 0.0,
            memory_bytes: 0,
            parent: None,
            command: None,
            gpu_memory_bytes: None,
        }
    }

    #[test]
    fn keys_change_the_state() {
        let mut state = new();
        type_all(&mut state, "pmf");
        assert!(state.paused && state.programs.commands);
        assert_eq!(state.programs.order, Order::Memory);
        press_code(&mut state, KeyCode::Char('?'), KeyModifiers::SHIFT);
        assert!(state.help);
        let escape = press_code(&mut state, KeyCode::Esc, KeyModifiers::NONE);
        assert_eq!(escape, Reaction::Continue, "it closes the help first");
        assert!(!state.help);
    }

    #[test]
    fn several_keys_leave_and_one_suspends() {
        let mut state = new();
        assert_eq!(press_code(&mut state, KeyCode::Char('q'), KeyModifiers::NONE), Reaction::Quit);
        assert_eq!(press_code(&mut state, KeyCode::Esc, KeyModifiers::NONE), Reaction::Quit);
        assert_eq!(press_code(&mut state, KeyCode::Char('c'), KeyModifiers::CONTROL), Reaction::Quit);
        assert_eq!(press_code(&mut state, KeyCode::Char('q'), KeyModifiers::CONTROL), Reaction::Continue);
        assert_eq!(press_code(&mut state, KeyCode::Char('z'), KeyModifiers::CONTROL), Reaction::Suspend);
        assert_eq!(press_code(&mut state, KeyCode::Char('l'), KeyModifiers::CONTROL), Reaction::Redraw);
    }

    #[test]
    fn letters_of_the_filter_are_no_commands() {
        let mut state = new();
        state.programs.take(vec![program(1, "quartz"), program(2, "other")]);
        type_all(&mut state, "/qua");
        assert_eq!((state.programs.filter(), state.programs.len()), ("qua", 1));
        press_code(&mut state, KeyCode::Backspace, KeyModifiers::NONE);
        press_code(&mut state, KeyCode::Enter, KeyModifiers::NONE);
        type_all(&mut state, "p");
        assert_eq!((state.programs.filter(), state.paused), ("qu", true));
        assert_eq!(press_code(&mut state, KeyCode::Esc, KeyModifiers::NONE), Reaction::Continue);
        assert_eq!(state.programs.filter(), "");
    }

    #[test]
    fn the_interval_goes_to_the_sampler() {
        let mut state = new();
        let press = |state: &mut State, key| press_code(state, KeyCode::Char(key), KeyModifiers::NONE);
        assert_eq!(press(&mut state, '+'), Reaction::Interval(Duration::from_secs(2)));
        assert_eq!(press(&mut state, '-'), Reaction::Interval(Duration::from_secs(1)));
        assert_eq!(state.interval, Duration::from_secs(1));
    }

    fn child() -> Child {
        Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap()
    }

    #[test]
    fn a_signal_is_sent_after_a_yes_and_not_before() {
        for (key, signal) in [('T', Signal::TERM), ('K', Signal::KILL), ('I', Signal::INT)] {
            let (mut state, mut child) = (new(), child());
            type_all(&mut state, &key.to_string());
            assert!(state.question.is_none() && state.note.is_some(), "nothing is selected");
            state.programs.take(vec![program(child.id(), "cat")]);
            state.programs.move_by(1);
            type_all(&mut state, &format!("{key}n"));
            assert!(state.question.is_none() && child.try_wait().unwrap().is_none());
            type_all(&mut state, &key.to_string());
            let text = state.question.as_ref().map(Question::text).unwrap();
            assert!(text.contains(&child.id().to_string()) && text.contains("cat"), "{text}");
            type_all(&mut state, "y");
            // Started by a shell in the background, a child may ignore interrupts.
            if key == 'I' {
                let _ = child.kill();
                child.wait().unwrap();
            } else {
                assert_eq!(child.wait().unwrap().signal(), Some(signal.as_raw()));
            }
            assert!(state.note.as_ref().is_some_and(|note| note.contains("sent to")), "{:?}", state.note);
        }
    }

    #[test]
    fn a_process_that_has_ended_is_said_to_have() {
        let (mut state, mut child) = (new(), child());
        child.kill().unwrap();
        child.wait().unwrap();
        state.programs.take(vec![program(child.id(), "cat")]);
        state.programs.move_by(1);
        type_all(&mut state, "T");
        assert!(state.question.is_none() && state.note.as_ref().is_some_and(|note| note.contains("cat")));
    }
}

//! The dashboard: events in, screens out.

mod draw;
mod history;
mod keys;
mod programs;
mod signals;
mod state;
mod suspend;
mod theme;

use std::io;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::event::Event as Input;
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{Clear, ClearType, EnterAlternateScreen, enable_raw_mode};
use ratatui::{DefaultTerminal, Terminal};

use super::FIRST_LOOK;
use super::feed::{Event, Feed};
use super::metrics::Endpoint;
use super::schedule::Schedule;
use crate::exit::{Exit, Failure, Outcome};
use crate::term;
use keys::Reaction;
use state::State;
use theme::Theme;

/// Shows the dashboard until the user leaves it or the duration is over.
pub(super) fn run(interval: Duration, duration: Option<Duration>, endpoint: Option<&Endpoint>) -> Outcome {
    let schedule = Schedule::new(FIRST_LOOK.min(interval), interval, duration);
    let state = State::new(host_name(), interval, endpoint.map(Endpoint::url));
    // This also makes a panic give the terminal back before it is reported.
    let terminal = ratatui::try_init()
        .context("cannot use this terminal for the dashboard; try --no-tui")
        .map_err(Failure::not_possible)?;
    let outcome =
        Feed::start(schedule, Some(ratatui::restore), endpoint).and_then(|feed| show(terminal, &feed, state));
    ratatui::restore();
    outcome.map(|()| Exit::Pass).map_err(Failure::not_possible)
}

fn show(mut terminal: DefaultTerminal, feed: &Feed, mut state: State) -> anyhow::Result<()> {
    let theme = Theme::new(term::colour());
    loop {
        terminal
            .draw(|frame| draw::draw(frame, &mut state, &theme))
            .context("cannot draw on the terminal")?;
        match feed.next() {
            Event::Sample(sample) => state.take(*sample),
            Event::Input(Input::Key(key)) => match keys::press(&mut state, key) {
                Reaction::Continue => {}
                Reaction::Quit => return Ok(()),
                Reaction::Redraw => clear(&mut terminal)?,
                Reaction::Interval(interval) => feed.set_interval(interval),
                Reaction::Suspend if !suspend::is_possible() => {
                    state.note = Some("there is no shell to return to".to_owned());
                }
                Reaction::Suspend => {
                    ratatui::restore();
                    suspend::suspend().context("cannot suspend")?;
                    // The stop comes now or in a moment; nothing may be drawn until it is over.
                    if !wait_for_return(feed, &mut state)? {
                        return Ok(());
                    }
                    come_back(&mut terminal)?;
                }
            },
            Event::Resumed => come_back(&mut terminal)?,
            Event::Input(_) => {}
            Event::NoInput(error) => return Err(no_keyboard(error)),
            Event::Stop | Event::Finished => return Ok(()),
            Event::Broken => return Err(anyhow!("sampling failed")),
        }
    }
}

/// Waits until the program goes on after a stop; false if it is to end instead.
fn wait_for_return(feed: &Feed, state: &mut State) -> anyhow::Result<bool> {
    loop {
        match feed.next() {
            Event::Sample(sample) => state.take(*sample),
            Event::Resumed => return Ok(true),
            Event::Input(_) | Event::NoInput(_) => {}
            Event::Stop | Event::Finished => return Ok(false),
            Event::Broken => return Err(anyhow!("sampling failed")),
        }
    }
}

/// Takes the terminal again after the program was stopped.
fn come_back(terminal: &mut DefaultTerminal) -> anyhow::Result<()> {
    enable_raw_mode()
        .and_then(|()| execute!(io::stdout(), EnterAlternateScreen))
        .context("cannot use this terminal again")?;
    clear(terminal)
}

/// Has everything drawn again. The terminal's own way to do so asks where the cursor is, and the thread that reads keys
/// would get the answer.
fn clear(terminal: &mut DefaultTerminal) -> anyhow::Result<()> {
    execute!(io::stdout(), Clear(ClearType::All))
        .and_then(|()| Terminal::new(CrosstermBackend::new(io::stdout())))
        .map(|fresh| *terminal = fresh)
        .context("cannot draw on the terminal")
}

fn no_keyboard(error: io::Error) -> anyhow::Error {
    anyhow::Error::from(error).context("cannot read the keyboard; try --no-tui")
}

fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

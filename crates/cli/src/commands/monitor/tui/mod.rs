//! The dashboard: events in, screens out.

mod draw;
mod history;
mod keys;
mod state;
mod theme;

use std::io;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::Event as Input;

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
            Event::Input(Input::Key(key)) => {
                if keys::press(&mut state, key) == Reaction::Quit {
                    return Ok(());
                }
            }
            Event::Input(_) => {}
            Event::NoInput(error) => return Err(no_keyboard(error)),
            Event::Stop | Event::Finished => return Ok(()),
            Event::Broken => return Err(anyhow!("sampling failed")),
        }
    }
}

fn no_keyboard(error: io::Error) -> anyhow::Error {
    anyhow::Error::from(error).context("cannot read the keyboard; try --no-tui")
}

fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

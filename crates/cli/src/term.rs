//! What the terminal can do, and output that ends quietly when nobody reads it any more.

use std::io::{self, IsTerminal as _, Write as _};

use warpforge_diag::printable;
use warpforge_report::Screen;
use warpforge_runtime::Fallback;

use crate::exit::Failure;

/// Writes a line to standard error; a closed pipe is no error.
macro_rules! tell {
    ($($argument:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), $($argument)*);
    }};
}

pub(crate) use tell;

/// What text on standard output is laid out for; where that is taken by a file, text goes to standard error as it is.
pub(crate) fn screen(taken: bool) -> Screen {
    if taken { Screen::PLAIN } else { Screen { colour: colour(), columns: columns() } }
}

/// The columns of a line: those that `COLUMNS` says, or the terminal's. What is neither has lines of any length.
pub(crate) fn columns() -> Option<usize> {
    let asked = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    let own = || rustix::termios::tcgetwinsize(io::stdout()).ok().map(|size| usize::from(size.ws_col));
    asked.or_else(own).filter(|columns| *columns > 0)
}

/// Whether to colour what goes to standard output.
pub(crate) fn colour() -> bool {
    io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Writes text to standard output; a closed pipe is no error.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    write(text.as_bytes())
}

/// Writes a remark to standard error. Names of models and files in it cannot command the terminal.
pub(crate) fn remark(text: &str) {
    tell!("{}", printable(text));
}

/// Writes text for people: to standard output, or to standard error where that is taken by a file.
pub(crate) fn print_beside(taken: bool, text: &str) -> Result<(), Failure> {
    if taken {
        let _ = write!(io::stderr(), "{text}");
        return Ok(());
    }
    print(text)
}

/// Writes data to standard output; a closed pipe is no error.
pub(crate) fn write(bytes: &[u8]) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::not_possible(anyhow::Error::from(error).context("cannot write to standard output")))
        }
        _ => Ok(()),
    }
}

/// Writes a value to standard output as JSON for programs.
pub(crate) fn print_json(value: &impl serde::Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value).map_err(Failure::not_possible)?;
    print(&(text + "\n"))
}

/// Says on standard error what runs on the reference interpreter, and what it costs, in one line.
pub(crate) fn warn_of_fallbacks(fallbacks: &[Fallback]) {
    if let Some(summary) = Fallback::summary(fallbacks) {
        tell!("warpt: {summary}; --no-fallback refuses it");
    }
}

/// The longest time that an option takes.
const MOST_SECONDS: f64 = 86_400.0;

/// Parses a number of seconds for clap.
pub(crate) fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.0..=MOST_SECONDS).contains(&seconds) => Ok(seconds),
        _ => Err(format!("expected a number of seconds from 0 to {MOST_SECONDS}")),
    }
}

/// Parses a number of seconds above zero for clap.
pub(crate) fn positive_seconds(text: &str) -> Result<f64, String> {
    let wanted = || format!("expected a number of seconds above 0, up to {MOST_SECONDS}");
    seconds(text).ok().filter(|seconds| *seconds > 0.0).ok_or_else(wanted)
}

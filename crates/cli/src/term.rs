//! What the terminal can do, and output that ends quietly when nobody reads it any more.

use std::io::{self, IsTerminal as _, Write as _};

use crate::exit::Failure;

/// Whether to colour what goes to standard output.
pub(crate) fn colour() -> bool {
    io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Writes data to standard output; a closed pipe is no error.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
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

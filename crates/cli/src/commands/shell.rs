//! Shell completions and manual pages, generated from the argument definitions.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Args, CommandFactory as _};

use super::Arguments;
use crate::exit::{Exit, Failure, Outcome};
use crate::term;

/// Arguments of `warpt completions`.
#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    shell: clap_complete::Shell,
}

/// Arguments of `warpt man`.
#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// The folder to write the pages to; it is made if it does not exist
    folder: PathBuf,
}

/// Writes the completions of one shell to standard output.
pub(crate) fn completions(args: &CompletionsArgs) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Arguments::command(), "warpt", &mut script);
    term::print(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Pass)
}

/// Writes a page for the program and one for each command.
pub(crate) fn man(args: &ManArgs) -> Outcome {
    std::fs::create_dir_all(&args.folder)
        .and_then(|()| clap_mangen::generate_to(Arguments::command(), &args.folder))
        .with_context(|| format!("cannot write manual pages to {}", args.folder.display()))
        .map_err(Failure::not_possible)?;
    Ok(Exit::Pass)
}

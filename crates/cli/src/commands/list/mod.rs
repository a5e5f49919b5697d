//! `warpt list`: the inventory, for people and for programs.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use warpforge_inventory::{ListOutput, export};

use crate::exit::{Exit, Failure, Outcome};
use crate::term;

/// Arguments of the command.
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Print JSON for programs instead of text for people
    #[arg(long)]
    json: bool,
    /// Also write the inventory as JSON to `warpt_list_<TIMESTAMP>_<RANDOM>.json` in the current folder
    #[arg(long, conflicts_with = "export_file")]
    export: bool,
    /// Also write the inventory as JSON to this file
    #[arg(long, value_name = "FILE")]
    export_file: Option<PathBuf>,
}

/// Runs the command.
pub(crate) fn run(args: &ListArgs) -> Outcome {
    let inventory = warpforge_inventory::list();
    term::print_json(&inventory)?;
    let file = args.export_file.clone().or_else(|| args.export.then(|| export::default_file_name("list")));
    if let Some(file) = file {
        write(&inventory, &file)?;
        eprintln!("inventory written to {}", file.display());
    }
    Ok(Exit::Pass)
}

fn write(inventory: &ListOutput, file: &Path) -> Result<(), Failure> {
    let mut text = serde_json::to_vec_pretty(inventory).map_err(Failure::not_possible)?;
    text.push(b'\n');
    export::write_atomically(file, &text)
        .with_context(|| format!("cannot write the inventory to {}", file.display()))
        .map_err(Failure::not_possible)
}

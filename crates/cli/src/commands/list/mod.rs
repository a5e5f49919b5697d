//! `warpt list`: the inventory, for people and for programs.

mod hardware;
mod page;
mod software;
mod units;

use std::path::{Path, PathBuf};

use clap::Args;
use warpforge_inventory::{ListOutput, export};
use warpforge_report::Screen;

use crate::exit::{Exit, Failure, Outcome};
use crate::{output, term};
use page::Page;

/// Arguments of the command.
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Print JSON for programs instead of text for people
    #[arg(long)]
    json: bool,
    /// Also write the inventory as JSON to `warpt_list_<TIMESTAMP>_<RANDOM>.json` in the current folder
    #[arg(long, conflicts_with = "export_file")]
    export: bool,
    /// Also write the inventory as JSON to this file; `-` is standard output
    #[arg(long, value_name = "FILE")]
    export_file: Option<PathBuf>,
}

/// Runs the command.
pub(crate) fn run(args: &ListArgs) -> Outcome {
    let taken = output::takes_stdout([("--export-file", args.export_file.as_deref())], args.json)?;
    let file = args.export_file.clone().or_else(|| args.export.then(|| export::default_file_name("list")));
    output::check([file.as_deref()])?;
    let inventory = warpforge_inventory::list();
    // The file first: a reader that closes the output early does not cost it.
    if let Some(file) = file {
        write(&inventory, &file)?;
        crate::term::tell!("inventory written to {}", file.display());
    }
    if args.json {
        term::print_json(&inventory)?;
    } else {
        term::print_beside(taken, &text(&inventory, term::screen(taken)))?;
    }
    Ok(Exit::Pass)
}

fn write(inventory: &ListOutput, file: &Path) -> Result<(), Failure> {
    let mut text = serde_json::to_vec_pretty(inventory).map_err(Failure::not_possible)?;
    text.push(b'\n');
    output::write(file, &text)
}

/// The inventory on a page or two.
fn text(inventory: &ListOutput, screen: Screen) -> String {
    let mut page = Page::new(screen);
    hardware::render(&mut page, &inventory.hardware);
    software::render(&mut page, &inventory.software);
    if !inventory.warnings.is_empty() {
        page.heading("Warnings");
        for warning in &inventory.warnings {
            page.line(warning);
        }
    }
    page.finish()
}

#[cfg(test)]
mod tests {
    use warpforge_inventory::hardware::{Gpu, Hardware};
    use warpforge_inventory::software::Software;

    use super::*;

    fn inventory() -> ListOutput {
        let gpu = Gpu {
            index: 3,
            vendor: "NVIDIA".to_owned(),
            model: Some("NVIDIA H200".to_owned()),
            ..Gpu::default()
        };
        ListOutput {
            hardware: Hardware { gpus: vec![gpu], ..Hardware::default() },
            software: Software::default(),
            warnings: vec!["0000:01:00.0: no driver serves it".to_owned()],
        }
    }

    #[test]
    fn what_is_unknown_is_not_shown_as_zero() {
        let text = text(&inventory(), Screen::PLAIN);
        assert!(text.contains("NVIDIA H200") && text.contains("no driver serves it"), "{text}");
        assert!(!text.contains(" 0 ") && !text.contains("None") && !text.contains('\u{1b}'), "{text}");
    }

    #[test]
    fn the_file_is_the_json_that_is_printed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("list.json");
        write(&inventory(), &file).unwrap();
        let read: ListOutput = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        assert_eq!(read, inventory());
        assert!(write(&inventory(), &folder.path().join("missing/list.json")).is_err());
    }

    #[test]
    fn records_of_an_older_version_are_read() {
        let old = r#"{"hardware": {"cpu": {"model": "X"}}, "software": {"os": {}}}"#;
        let read: ListOutput = serde_json::from_str(old).unwrap();
        assert_eq!(read.hardware.cpu.model.as_deref(), Some("X"));
    }
}

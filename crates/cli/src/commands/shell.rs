//! Shell completions and manual pages, generated from the argument definitions.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, Command, CommandFactory as _};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

use super::Arguments;
use super::pages::{ENVIRONMENT, EXAMPLES, EXIT_STATUS, FILES};
use crate::exit::{Exit, Failure, Outcome};
use crate::{output, term};

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
        .with_context(|| format!("cannot write manual pages to {}", args.folder.display()))
        .map_err(Failure::not_possible)?;
    let mut command = Arguments::command().disable_help_subcommand(true);
    command.build();
    pages(&command, &args.folder)?;
    Ok(Exit::Pass)
}

fn pages(command: &Command, folder: &Path) -> Result<(), Failure> {
    let man = Man::new(command.clone());
    let path = folder.join(man.get_filename());
    let name = command.get_display_name().unwrap_or_else(|| command.get_name());
    let mut page = Vec::new();
    let rendered = man.render(&mut page).and_then(|()| sections(name).to_writer(&mut page));
    output::written(&path, rendered)?;
    output::write(&path, &page)?;
    let subcommands = command.get_subcommands().filter(|command| !command.is_hide_set());
    subcommands.into_iter().try_for_each(|command| pages(command, folder))
}

/// The sections that the arguments do not tell.
fn sections(name: &str) -> Roff {
    let mut roff = Roff::default();
    for (title, entries) in
        [("EXIT STATUS", &EXIT_STATUS[..]), ("ENVIRONMENT", &ENVIRONMENT), ("FILES", &FILES)]
    {
        roff.control("SH", [title]);
        for (term, text) in entries {
            roff.control("TP", []).text([bold(*term)]).text([roman(*text)]);
        }
    }
    roff.control("SH", ["EXAMPLES"]);
    for (_, command, what) in EXAMPLES.iter().filter(|(page, ..)| *page == name) {
        roff.control("TP", []).text([bold(*command)]).text([roman(*what)]);
    }
    roff
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An example that the program would refuse is none.
    #[test]
    fn examples_are_commands() {
        for (_, example, _) in EXAMPLES {
            let command = example.rsplit("| ").next().unwrap_or(example);
            let words = command.split_whitespace().take_while(|word| *word != ">");
            let parsed = Arguments::command().try_get_matches_from(words);
            assert!(parsed.is_ok(), "{example}: {}", parsed.unwrap_err());
        }
    }

    /// The lines of the documents that are commands can be typed as they stand.
    #[test]
    fn documented_commands_are_commands() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut files = vec![root.join("README.md"), root.join("python/README.md")];
        for folder in ["docs", "docs/benchmarks"] {
            let entries = std::fs::read_dir(root.join(folder)).unwrap().map(|entry| entry.unwrap().path());
            files.extend(entries.filter(|path| path.extension().is_some_and(|ending| ending == "md")));
        }
        let mut count = 0;
        for file in files {
            let text = std::fs::read_to_string(&file).unwrap().replace("\\\n", " ");
            for line in text.lines().filter_map(|line| line.strip_prefix("    ")) {
                let line = line.strip_prefix("$ ").unwrap_or(line);
                // What is left out stands for anything, and a diagram is no command.
                if !line.starts_with("warpt ") || line.contains(['…', '─', '[']) {
                    continue;
                }
                let parsed = Arguments::command().try_get_matches_from(words(line));
                assert!(parsed.is_ok(), "{}: {line}: {}", file.display(), parsed.unwrap_err());
                count += 1;
            }
        }
        assert!(count > 60, "{count} commands");
    }

    /// The words of a command up to a comment or what follows in a pipe, as a shell takes them apart.
    fn words(line: &str) -> Vec<String> {
        let (mut words, mut word, mut quoted) = (Vec::new(), String::new(), false);
        for letter in line.chars() {
            match letter {
                '\'' => quoted = !quoted,
                ' ' if !quoted => {
                    words.extend(Some(std::mem::take(&mut word)).filter(|word| !word.is_empty()));
                }
                letter => word.push(letter),
            }
        }
        words.push(word);
        let end = words.iter().position(|word| ["#", "|", ">", "&&"].contains(&word.as_str()));
        words.truncate(end.unwrap_or(words.len()));
        words
    }

    #[test]
    fn every_page_has_examples_and_all_examples_a_page() {
        let mut command = Arguments::command().disable_help_subcommand(true);
        command.build();
        let mut names = Vec::new();
        collect(&command, &mut names);
        for (page, ..) in EXAMPLES {
            assert!(names.iter().any(|name| name == page), "{page} is not among {names:?}");
        }
        for name in &names {
            assert!(EXAMPLES.iter().any(|(page, ..)| page == name), "{name} has no examples");
        }
    }

    fn collect(command: &Command, names: &mut Vec<String>) {
        names.push(command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned());
        let shown = command.get_subcommands().filter(|command| !command.is_hide_set());
        shown.for_each(|command| collect(command, names));
    }
}

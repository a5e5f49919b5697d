//! The configuration file: defaults for options, below flags and environment.
//!
//! Tables are named as the commands, keys as the long options: `rounds = 7` under `[benchmark.run]` is `--rounds 7`
//! for `warpt benchmark run`.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow, bail};
use clap::Command;
use toml::{Table, Value};
use warpforge_bench::selection::nearest;

/// Where the file is: `warpt/config.toml` under the XDG configuration directory.
fn path() -> Option<PathBuf> {
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let folder = absolute("XDG_CONFIG_HOME").or_else(|| Some(absolute("HOME")?.join(".config")))?;
    Some(folder.join("warpt/config.toml"))
}

/// The command with the file's values as its defaults; the same command if there is no file.
pub(crate) fn apply(command: Command) -> anyhow::Result<Command> {
    let Some(path) = path() else { return Ok(command) };
    match std::fs::read_to_string(&path) {
        Ok(text) => with_defaults(command, &text).with_context(|| path.display().to_string()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(command),
        Err(error) => Err(anyhow!(error).context(path.display().to_string())),
    }
}

fn with_defaults(command: Command, text: &str) -> anyhow::Result<Command> {
    let table: Table = text.parse()?;
    set(command, table, Path::new(""))
}

fn set(mut command: Command, table: Table, place: &Path) -> anyhow::Result<Command> {
    for (key, value) in table {
        let here = place.join(&key);
        command = match value {
            Value::Table(inner) => {
                if command.find_subcommand(&key).is_none() {
                    let known = command.get_subcommands().map(Command::get_name);
                    bail!("there is no command `{}`{}", named(&here), hint(&key, known));
                }
                let mut result = Ok(());
                let command = command.mut_subcommand(&key, |sub| {
                    set(sub.clone(), inner, &here).unwrap_or_else(|error| {
                        result = Err(error);
                        sub
                    })
                });
                result?;
                command
            }
            value => set_option(command, &key, &value, &here)?,
        };
    }
    Ok(command)
}

fn set_option(command: Command, key: &str, value: &Value, here: &Path) -> anyhow::Result<Command> {
    let found = command.get_arguments().find(|argument| argument.get_long() == Some(key));
    let Some(id) = found.map(|argument| argument.get_id().clone()) else {
        let known = command.get_arguments().filter_map(clap::Arg::get_long);
        bail!("there is no option `{}`{}", named(here), hint(key, known));
    };
    let values = match value {
        Value::Array(values) => values.iter().map(|value| text(value, here)).collect::<Result<_, _>>()?,
        value => vec![text(value, here)?],
    };
    Ok(command.mut_arg(id, |argument| argument.default_values(values)))
}

fn text(value: &Value, here: &Path) -> anyhow::Result<String> {
    Ok(match value {
        Value::String(text) => text.clone(),
        Value::Integer(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        Value::Boolean(flag) => flag.to_string(),
        other => bail!("`{}` cannot be a {}", named(here), other.type_str()),
    })
}

fn named(place: &Path) -> String {
    place.iter().map(|part| part.to_string_lossy()).collect::<Vec<_>>().join(".")
}

fn hint<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    nearest(name, known).map_or(String::new(), |nearest| format!(", did you mean `{nearest}`?"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Arg, ArgAction};

    fn command() -> Command {
        let options = [
            Arg::new("rounds").long("rounds").default_value("5"),
            Arg::new("json").long("json").action(ArgAction::SetTrue),
            Arg::new("param").long("param").action(ArgAction::Append),
        ];
        Command::new("warpt")
            .subcommand(Command::new("benchmark").subcommand(Command::new("run").args(options)))
    }

    fn matches(config: &str, arguments: &[&str]) -> clap::ArgMatches {
        let command = with_defaults(command(), config).unwrap();
        let matches = command.get_matches_from([&["warpt", "benchmark", "run"], arguments].concat());
        matches.subcommand().unwrap().1.subcommand().unwrap().1.clone()
    }

    #[test]
    fn the_file_sets_defaults_and_flags_beat_it() {
        let config = "[benchmark.run]\nrounds = 7\njson = true\nparam = ['a=1', 'b=2']";
        let found = matches(config, &[]);
        assert_eq!(found.get_one::<String>("rounds").unwrap(), "7");
        assert!(found.get_flag("json"));
        assert_eq!(found.get_many::<String>("param").unwrap().collect::<Vec<_>>(), ["a=1", "b=2"]);
        assert_eq!(matches(config, &["--rounds", "3"]).get_one::<String>("rounds").unwrap(), "3");
    }

    #[test]
    fn a_mistake_names_its_place_and_the_nearest_name() {
        let error = |config: &str| format!("{:#}", with_defaults(command(), config).unwrap_err());
        assert!(
            error("[benchmark.run]\nround = 7").contains("`benchmark.run.round`, did you mean `rounds`?")
        );
        assert!(error("[benchmrak]\nx = 7").contains("`benchmrak`, did you mean `benchmark`?"));
        assert!(
            error("[benchmark.run]\nrounds = 2020-01-01")
                .contains("`benchmark.run.rounds` cannot be a datetime")
        );
        assert!(error("[benchmark").contains("line 1"));
    }
}

//! The configuration file: defaults for options, below flags and environment.
//!
//! Tables are named as the commands, keys as the long options: `rounds = 7` under `[benchmark.run]` is `--rounds 7`
//! for `warpt benchmark run`. Where an option excludes another, the one on the command line counts.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow, bail};
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command, Id};
use toml::{Table, Value};
use warpforge_bench::selection::nearest;
use warpforge_tensor::io::input;

/// Where the file is: `warpt/config.toml` under the XDG configuration directory.
fn path() -> Option<PathBuf> {
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let folder = absolute("XDG_CONFIG_HOME").or_else(|| Some(absolute("HOME")?.join(".config")))?;
    Some(folder.join("warpt/config.toml"))
}

/// The command with the file's values as its defaults; the same command if there is no file.
pub(crate) fn apply(command: Command) -> anyhow::Result<Command> {
    let Some(path) = path() else { return Ok(command) };
    match input::read_text(&path) {
        Ok(text) => {
            let given = given(&command);
            with_defaults(command, &text, &given).with_context(|| path.display().to_string())
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(command),
        Err(error) => Err(anyhow!(error).context(path.display().to_string())),
    }
}

/// What the command line and the environment set.
fn given(command: &Command) -> Vec<Id> {
    let Ok(matches) = command.clone().ignore_errors(true).try_get_matches() else { return Vec::new() };
    let levels = std::iter::successors(Some(&matches), |level| level.subcommand().map(|(_, inner)| inner));
    let of_level = |level: &ArgMatches| {
        let is_given = |id: &&Id| {
            // Options of a command are among the matches of those above it too, which do not know them.
            level.try_contains_id(id.as_str()).is_ok()
                && matches!(
                    level.value_source(id.as_str()),
                    Some(ValueSource::CommandLine | ValueSource::EnvVariable)
                )
        };
        level.ids().filter(is_given).cloned().collect::<Vec<_>>()
    };
    levels.flat_map(of_level).collect()
}

fn with_defaults(command: Command, text: &str, given: &[Id]) -> anyhow::Result<Command> {
    let table: Table = text.parse()?;
    set(command, table, Path::new(""), given)
}

fn set(mut command: Command, table: Table, place: &Path, given: &[Id]) -> anyhow::Result<Command> {
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
                    set(sub.clone(), inner, &here, given).unwrap_or_else(|error| {
                        result = Err(error);
                        sub
                    })
                });
                result?;
                command
            }
            value => set_option(command, &key, &value, &here, given)?,
        };
    }
    Ok(command)
}

fn set_option(
    command: Command,
    key: &str,
    value: &Value,
    here: &Path,
    given: &[Id],
) -> anyhow::Result<Command> {
    let Some(argument) = command.get_arguments().find(|argument| argument.get_long() == Some(key)) else {
        let known = command.get_arguments().filter_map(Arg::get_long);
        bail!("there is no option `{}`{}", named(here), hint(key, known));
    };
    let values = match value {
        Value::Array(values) => values.iter().map(|value| text(value, here)).collect::<Result<_, _>>()?,
        value => vec![text(value, here)?],
    };
    if !argument.get_action().takes_values() {
        if !value.is_bool() {
            bail!("`{}` is true or false, not {value}", named(here));
        }
    } else if let Some(reason) = refused(&command, key, &values) {
        bail!("`{}`: {reason}", named(here));
    }
    if given.iter().any(|id| excludes(&command, id, argument)) {
        return Ok(command);
    }
    let id = argument.get_id().clone();
    Ok(command.mut_arg(id, |argument| argument.default_values(values)))
}

/// Whether an argument that was given and this one cannot be used together.
fn excludes(command: &Command, given: &Id, argument: &Arg) -> bool {
    let Some(given) = command.get_arguments().find(|other| other.get_id() == given) else { return false };
    let lists = |one: &Arg, other: &Arg| {
        command.get_arg_conflicts_with(one).iter().any(|excluded| excluded.get_id() == other.get_id())
    };
    lists(given, argument) || lists(argument, given)
}

/// Why an option does not take these values.
fn refused(command: &Command, key: &str, values: &[String]) -> Option<String> {
    let flags = values.iter().map(|value| format!("--{key}={value}"));
    let parsed = command.clone().no_binary_name(true).try_get_matches_from(flags);
    let error = parsed.err().filter(|error| {
        // Whatever else the command needs is not for the file to give.
        use ErrorKind::{
            ArgumentConflict, InvalidValue, TooManyValues, ValueValidation, WrongNumberOfValues,
        };
        matches!(
            error.kind(),
            ArgumentConflict | InvalidValue | TooManyValues | ValueValidation | WrongNumberOfValues
        )
    })?;
    let text = error.to_string();
    let paragraph = text.split("\n\n").next().unwrap_or_default();
    Some(paragraph.strip_prefix("error: ").unwrap_or(paragraph).trim_end().to_owned())
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
    use clap::ArgAction;

    fn command() -> Command {
        let options = [
            Arg::new("rounds").long("rounds").default_value("5").value_parser(clap::value_parser!(u32)),
            Arg::new("seconds").long("seconds").conflicts_with("rounds"),
            Arg::new("json").long("json").action(ArgAction::SetTrue),
            Arg::new("param").long("param").action(ArgAction::Append),
        ];
        Command::new("warpt")
            .subcommand(Command::new("benchmark").subcommand(Command::new("run").args(options)))
    }

    fn matches(config: &str, arguments: &[&str]) -> clap::ArgMatches {
        let line = [&["warpt", "benchmark", "run"], arguments].concat();
        let given: Vec<Id> =
            arguments.iter().filter_map(|word| Some(word.strip_prefix("--")?.to_owned().into())).collect();
        let command = with_defaults(command(), config, &given).unwrap();
        let matches = command.get_matches_from(line);
        matches.subcommand().unwrap().1.subcommand().unwrap().1.clone()
    }

    #[test]
    fn the_file_sets_defaults_and_flags_beat_it() {
        let config = "[benchmark.run]\nrounds = 7\njson = true\nparam = ['a=1', 'b=2']";
        let found = matches(config, &[]);
        assert_eq!(found.get_one::<u32>("rounds"), Some(&7));
        assert!(found.get_flag("json"));
        assert_eq!(found.get_many::<String>("param").unwrap().collect::<Vec<_>>(), ["a=1", "b=2"]);
        assert_eq!(matches(config, &["--rounds", "3"]).get_one::<u32>("rounds"), Some(&3));
    }

    #[test]
    fn a_flag_beats_what_it_excludes() {
        let config = "[benchmark.run]\nseconds = '9'";
        assert!(matches(config, &[]).contains_id("seconds"));
        assert!(!matches(config, &["--rounds", "3"]).contains_id("seconds"));
    }

    #[test]
    fn a_mistake_names_its_place_and_the_nearest_name() {
        let error = |config: &str| format!("{:#}", with_defaults(command(), config, &[]).unwrap_err());
        assert!(
            error("[benchmark.run]\nround = 7").contains("`benchmark.run.round`, did you mean `rounds`?")
        );
        assert!(error("[benchmrak]\nx = 7").contains("`benchmrak`, did you mean `benchmark`?"));
        assert!(
            error("[benchmark.run]\nrounds = 2020-01-01")
                .contains("`benchmark.run.rounds` cannot be a datetime")
        );
        assert!(error("[benchmark").contains("line 1"));
        let value = error("[benchmark.run]\nrounds = 'many'");
        assert!(value.starts_with("`benchmark.run.rounds`: invalid value 'many'"), "{value}");
        assert!(error("[benchmark.run]\nrounds = [1, 2]").contains("`benchmark.run.rounds`"));
        assert!(error("[benchmark.run]\njson = 1").contains("`benchmark.run.json` is true or false, not 1"));
    }
}

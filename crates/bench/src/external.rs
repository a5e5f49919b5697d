//! External programs that a benchmark wraps: where they are, and what they print.

use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::benchmark::BenchmarkError;

/// A program that takes longer has failed: the runner gives a round five minutes beside its time.
pub(crate) const LONGEST_RUN: Duration = Duration::from_secs(280);
/// Longer output is cut.
const LONGEST_OUTPUT: u64 = 16 << 20;
/// How long a program may take to say its version.
const LONGEST_ANSWER: Duration = Duration::from_secs(20);
/// Between two looks at the program and at the user's wish to stop.
const NAP: Duration = Duration::from_millis(2);
/// What is shown of what a failed program printed last.
const LAST_WORDS: usize = 300;

/// A program that exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tool {
    path: PathBuf,
}

impl Tool {
    /// The program at `path`, or where that is empty the first of `names` on the search path.
    ///
    /// # Errors
    /// [`BenchmarkError::BadInput`] if `path` is not a program; [`BenchmarkError::NotPossible`] with the Debian package
    /// that has it if none of the names is on the search path.
    pub fn find(path: &str, names: &[&str], package: &str) -> Result<Self, BenchmarkError> {
        Self::find_in(path, names, package, std::env::var_os("PATH").as_deref())
    }

    /// The first of `names` on the search path, for a program that no parameter names.
    ///
    /// # Errors
    /// [`BenchmarkError::NotPossible`] with the Debian package that has it.
    pub fn on_path(names: &[&str], package: &str) -> Result<Self, BenchmarkError> {
        Self::search(names, std::env::var_os("PATH").as_deref()).ok_or_else(|| {
            BenchmarkError::NotPossible(format!("{}: install the Debian package `{package}`", missing(names)))
        })
    }

    fn find_in(
        path: &str,
        names: &[&str],
        package: &str,
        search: Option<&std::ffi::OsStr>,
    ) -> Result<Self, BenchmarkError> {
        if !path.is_empty() {
            let given = std::path::absolute(path).unwrap_or_else(|_| PathBuf::from(path));
            return match is_program(&given) {
                true => Ok(Self { path: given }),
                false => Err(BenchmarkError::BadInput(format!("path={path}: there is no such program"))),
            };
        }
        Self::search(names, search).ok_or_else(|| {
            BenchmarkError::NotPossible(format!(
                "{}: install the Debian package `{package}`, or name the program by --param path=FILE",
                missing(names)
            ))
        })
    }

    fn search(names: &[&str], search: Option<&std::ffi::OsStr>) -> Option<Self> {
        let folders: Vec<PathBuf> =
            search.map(|search| std::env::split_paths(search).collect()).unwrap_or_default();
        let mut candidates =
            names.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
        candidates.find(|candidate| is_program(candidate)).map(|path| Self { path })
    }

    /// What it prints when asked for its version: the first word of the first line that begins with a digit, such as
    /// `2.24-r1122`, else the last one.
    ///
    /// # Errors
    /// If it cannot be asked.
    pub fn version(&self, argument: &str) -> Result<String, BenchmarkError> {
        let mut command = Command::new(&self.path);
        command.arg(argument);
        let printed = execute(command, LONGEST_ANSWER, &|| false)?;
        let line = printed.lines().next().unwrap_or_default();
        let number =
            line.split_whitespace().find(|word| word.starts_with(|first: char| first.is_ascii_digit()));
        Ok(number.or(line.split_whitespace().last()).unwrap_or("unknown").to_owned())
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

fn missing(names: &[&str]) -> String {
    match names {
        [name] => format!("{name} is not on the search path"),
        _ => format!("none of {} is on the search path", names.join(", ")),
    }
}

fn is_program(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|facts| facts.is_file() && facts.permissions().mode() & 0o111 != 0)
}

/// Runs a program to its end and returns what it printed on standard output. It has a process group of its own, which is
/// killed when `stop` says so or the time is over.
///
/// # Errors
/// If it cannot be started, fails, is stopped or takes too long.
pub fn execute(
    mut command: Command,
    limit: Duration,
    stop: &dyn Fn() -> bool,
) -> Result<String, BenchmarkError> {
    let name = command.get_program().to_string_lossy().into_owned();
    let failed = |what: &str| BenchmarkError::Failed(format!("{name} {what}"));
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .env("LC_ALL", "C")
        .process_group(0);
    let child = command.spawn().map_err(|error| failed(&format!("cannot be started: {error}")))?;
    let mut child = Group(child);
    let (printed, complained) = (reader(child.0.stdout.take()), reader(child.0.stderr.take()));
    let begin = Instant::now();
    let status = loop {
        match child.0.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if stop() => return Err(BenchmarkError::Stopped),
            Ok(None) if begin.elapsed() > limit => {
                return Err(failed(&format!("gave no result in {} s", limit.as_secs())));
            }
            Ok(None) => std::thread::sleep(NAP),
            Err(error) => return Err(failed(&format!("cannot be waited for: {error}"))),
        }
    };
    // A process that it left behind may hold its output open: it goes with the group.
    child.kill();
    let (printed, complained) = (printed.recv().unwrap_or_default(), complained.recv().unwrap_or_default());
    if status.success() {
        return Ok(printed);
    }
    let said = if complained.trim().is_empty() { &printed } else { &complained };
    Err(failed(&format!("failed ({status}): {}", last_words(said))))
}

/// The end of what a program printed, for messages.
pub(crate) fn last_words(said: &str) -> &str {
    let said = said.trim();
    let from = said.char_indices().rev().nth(LAST_WORDS).map_or(0, |(at, _)| at);
    said[from..].trim()
}

/// Collects what comes from a pipe, in a thread of its own so that neither pipe blocks the program.
fn reader<R: std::io::Read + Send + 'static>(pipe: Option<R>) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    if let Some(mut pipe) = pipe {
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            // What was read before an error is still worth having.
            let _ = pipe.by_ref().take(LONGEST_OUTPUT).read_to_end(&mut bytes);
            let _ = sender.send(String::from_utf8_lossy(&bytes).into_owned());
            let _ = std::io::copy(&mut pipe, &mut std::io::sink());
        });
    }
    receiver
}

/// The process group of a child that leads one; it is gone when this is dropped.
pub(crate) struct Group(pub(crate) Child);

impl Group {
    /// Ends all its processes.
    pub(crate) fn kill(&self) {
        if let Some(pid) = Pid::from_raw(self.0.id().cast_signed()) {
            // Those that are gone already need no signal.
            let _ = kill_process_group(pid, Signal::KILL);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(text: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", text]);
        command
    }

    const LIMIT: Duration = Duration::from_secs(60);

    #[test]
    fn a_missing_tool_is_not_possible_and_names_its_package() {
        let empty = tempfile::tempdir().unwrap();
        let search = Some(empty.path().as_os_str());
        let error = Tool::find_in("", &["hpcc", "xhpl"], "hpcc", search).unwrap_err();
        assert!(
            matches!(&error, BenchmarkError::NotPossible(text) if text.contains("Debian package `hpcc`")),
            "{error}"
        );
        let error = Tool::find_in("/no/such/file", &["hpcc"], "hpcc", search).unwrap_err();
        assert!(
            matches!(&error, BenchmarkError::BadInput(text) if text.contains("/no/such/file")),
            "{error}"
        );
        std::fs::write(empty.path().join("xhpl"), "text, not a program").unwrap();
        assert!(Tool::find_in("", &["hpcc", "xhpl"], "hpcc", search).is_err());
    }

    #[test]
    fn the_first_name_on_the_path_is_taken() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["xhpl", "hpcc"] {
            let file = folder.path().join(name);
            std::fs::write(&file, "#!/bin/sh\n").unwrap();
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        let found = Tool::find_in("", &["hpcc", "xhpl"], "hpcc", Some(folder.path().as_os_str())).unwrap();
        assert_eq!(found.path(), folder.path().join("hpcc"));
        let given = folder.path().join("xhpl");
        assert_eq!(Tool::find_in(given.to_str().unwrap(), &[], "", None).unwrap().path(), given);
    }

    #[test]
    fn a_version_is_a_word_of_the_first_line() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tool");
        std::fs::write(&file, "#!/bin/sh\necho likwid-bench -- Version 5.2.2 of today\necho more\n").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(Tool { path: file }.version("-v").unwrap(), "5.2.2");
        assert!(Tool { path: "/no/such".into() }.version("-v").is_err());
    }

    #[test]
    fn output_comes_back_and_failures_say_what_the_program_said() {
        assert_eq!(execute(script("echo here; echo not here >&2"), LIMIT, &|| false).unwrap(), "here\n");
        let error =
            execute(script("echo out of memory >&2; exit 3"), LIMIT, &|| false).unwrap_err().to_string();
        assert!(error.contains("out of memory") && error.contains('3'), "{error}");
        let error = execute(Command::new("/no/such/program"), LIMIT, &|| false).unwrap_err().to_string();
        assert!(error.contains("cannot be started"), "{error}");
        // More than a pipe holds.
        assert_eq!(execute(script("head -c 300000 /dev/zero"), LIMIT, &|| false).unwrap().len(), 300_000);
    }

    #[test]
    fn a_program_is_ended_with_what_it_started() {
        assert_eq!(execute(script("sleep 1000 & sleep 1000"), LIMIT, &|| true), Err(BenchmarkError::Stopped));
        let error = execute(script("sleep 1000"), Duration::ZERO, &|| false).unwrap_err();
        assert!(error.to_string().contains("no result in 0 s"), "{error}");
        // One that leaves a process behind which holds its output.
        assert_eq!(execute(script("sleep 1000 & echo done"), LIMIT, &|| false).unwrap(), "done\n");
    }
}

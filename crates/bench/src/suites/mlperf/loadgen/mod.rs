//! LoadGen: a process that owns it, the tests that it runs, and what it says about them.

mod protocol;
mod summary;

use std::collections::VecDeque;
use std::fs::File;
use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::json;

use self::protocol::{Connection, Message, Query};
pub(super) use self::summary::{ACCURACY, Summary};
use super::log::Log;
use super::settings::{Mode, Scenario};
use super::system::System;
use crate::benchmark::BenchmarkError;
use crate::external::{Group, last_words};
use crate::python::Python;

const DRIVER: &str = include_str!("driver.py");
/// The package that has LoadGen.
const PACKAGE: &str = "mlcommons-loadgen";
/// What the process prints.
const OUTPUT: &str = "loadgen_output.txt";
/// How long a process that closed its socket may take to end.
const GRACE: Duration = Duration::from_secs(2);

/// The Python that has LoadGen.
///
/// # Errors
/// [`BenchmarkError::NotPossible`] with the package's name.
pub(super) fn python() -> Result<Python, BenchmarkError> {
    Python::with(&[PACKAGE])
}

/// The version of LoadGen.
pub(super) fn version(python: &Python) -> &str {
    python.version(PACKAGE)
}

/// A test.
#[derive(Debug, Clone)]
pub(super) struct Test<'a> {
    /// The model's name in `mlperf.conf`.
    pub(super) model: &'a str,
    pub(super) scenario: Scenario,
    pub(super) mode: Mode,
    /// What differs from `mlperf.conf`: lines of `user.conf`.
    pub(super) conf: String,
    /// The folder of LoadGen's logs.
    pub(super) logs: PathBuf,
}

/// Runs a test to its end, in a process of its own: LoadGen reads its settings once in a process. What was seen until then is in
/// `log` whatever happens.
///
/// # Errors
/// What the system says, that LoadGen failed or was killed, or that the user stopped it.
pub(super) fn run(
    python: &Python,
    test: &Test<'_>,
    system: &mut dyn System,
    log: &mut Log,
    stop: &dyn Fn() -> bool,
) -> Result<Summary, BenchmarkError> {
    let failed = |error: std::io::Error| BenchmarkError::Failed(format!("{}: {error}", test.logs.display()));
    std::fs::create_dir_all(&test.logs).map_err(failed)?;
    let conf = test.logs.join("user.conf");
    std::fs::write(&conf, &test.conf).map_err(failed)?;
    let wanted = json!({
        "model": test.model,
        "scenario": test.scenario.name(),
        "mode": test.mode.loadgen(),
        "user_conf": conf,
        "logs": test.logs,
        "samples": system.samples(),
    });
    let mut process = Process::start(python, &test.logs)?;
    let asked = process.connection.ask(&wanted.to_string());
    asked.map_err(|error| process.died(&error))?;
    process.serve(test, system, log, stop)?;
    let summary = Summary::read(&test.logs)?;
    if summary.has_errors() {
        return Err(BenchmarkError::Failed(format!(
            "LoadGen reports errors: see mlperf_log_detail.txt in {}",
            test.logs.display()
        )));
    }
    Ok(summary)
}

/// A process with LoadGen.
struct Process {
    process: Group,
    connection: Connection,
    output: PathBuf,
}

impl Process {
    /// Starts the process; what it prints goes to a file in the folder.
    fn start(python: &Python, folder: &Path) -> Result<Self, BenchmarkError> {
        let failed = |error: std::io::Error| BenchmarkError::Failed(format!("cannot start LoadGen: {error}"));
        let output = folder.join(OUTPUT);
        let file = File::create(&output).map_err(failed)?;
        let (ours, theirs) = UnixStream::pair().map_err(failed)?;
        let mut command = python.command();
        command
            .args(["-c", DRIVER])
            .current_dir(folder)
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(file.try_clone().map_err(failed)?)
            .stderr(file)
            .process_group(0);
        let process = Group(command.spawn().map_err(failed)?);
        Ok(Self { process, connection: Connection::new(ours).map_err(failed)?, output })
    }

    /// Answers queries until the end of the test.
    fn serve(
        &mut self,
        test: &Test<'_>,
        system: &mut dyn System,
        log: &mut Log,
        stop: &dyn Fn() -> bool,
    ) -> Result<(), BenchmarkError> {
        let mut waiting: VecDeque<(u64, usize, usize)> = VecDeque::new();
        loop {
            // In the scenario Server all that has come by now may share a batch; in others nothing more comes.
            let look =
                waiting.is_empty() || (test.scenario == Scenario::Server && waiting.len() < system.batch());
            let message = match look {
                true => self.connection.next(waiting.is_empty()).map_err(|error| self.died(&error))?,
                false => None,
            };
            match message {
                Some(Message::Query(Query { issued, ids, samples })) => {
                    let count = samples.len();
                    if let Some(sample) = samples.iter().find(|&&sample| sample >= system.samples()) {
                        return Err(BenchmarkError::Failed(format!("LoadGen asks for sample {sample}")));
                    }
                    let query = log.issued(issued, &samples);
                    let mut list: Vec<_> =
                        ids.into_iter().zip(samples).map(|(id, sample)| (id, sample, query)).collect();
                    if count > system.batch() {
                        list.sort_by_key(|(_, sample, _)| system.size(*sample));
                    }
                    waiting.extend(list);
                    continue;
                }
                Some(Message::End) => {
                    return self.connection.echo(&Message::End).map_err(|error| self.died(&error));
                }
                Some(message) => {
                    self.connection.echo(&message).map_err(|error| self.died(&error))?;
                    continue;
                }
                None => {}
            }
            if stop() {
                return Err(BenchmarkError::Stopped);
            }
            if !waiting.is_empty() {
                let count = waiting.len().min(system.batch());
                let batch: Vec<_> = waiting.drain(..count).collect();
                self.answer(test, system, log, &batch)?;
            }
        }
    }

    /// Has a batch answered, and passes the answers on.
    fn answer(
        &mut self,
        test: &Test<'_>,
        system: &mut dyn System,
        log: &mut Log,
        batch: &[(u64, usize, usize)],
    ) -> Result<(), BenchmarkError> {
        let samples: Vec<usize> = batch.iter().map(|entry| entry.1).collect();
        let ids: Vec<u64> = batch.iter().map(|entry| entry.0).collect();
        let queries = || batch.iter().map(|entry| entry.2);
        let data = test.mode == Mode::Accuracy;
        let connection = &mut self.connection;
        // Kept until the closure is gone: only then the process can be looked at.
        let mut lost = None;
        let answers = system.answer(&samples, &mut |first| {
            queries().for_each(|query| log.first(query));
            connection.answer(&ids, first, true, data).map_err(|error| {
                lost = Some(error);
                BenchmarkError::Stopped
            })
        });
        if let Some(error) = lost {
            return Err(self.died(&error));
        }
        let answers = answers?;
        self.connection.answer(&ids, &answers, false, data).map_err(|error| self.died(&error))?;
        queries().zip(&answers).for_each(|(query, answer)| log.done(query, answer.tokens));
        log.batch(samples);
        Ok(())
    }

    /// Why the process is gone.
    fn died(&mut self, error: &std::io::Error) -> BenchmarkError {
        if !matches!(
            error.kind(),
            ErrorKind::UnexpectedEof | ErrorKind::BrokenPipe | ErrorKind::ConnectionReset
        ) {
            return BenchmarkError::Failed(format!("LoadGen's process cannot be spoken to: {error}"));
        }
        let began = Instant::now();
        let status = loop {
            match self.process.0.try_wait() {
                Ok(Some(status)) => break status.to_string(),
                Ok(None) if began.elapsed() < GRACE => std::thread::sleep(Duration::from_millis(10)),
                _ => break "it closed its socket".to_owned(),
            }
        };
        let said = std::fs::read_to_string(&self.output).unwrap_or_default();
        let said = last_words(&said);
        let said = if said.is_empty() { String::new() } else { format!(": {said}") };
        BenchmarkError::Failed(format!("LoadGen's process ended before its test ({status}){said}"))
    }
}

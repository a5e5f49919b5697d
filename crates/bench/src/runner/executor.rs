//! Where a round is executed: in a fresh child process, or in this one.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::child::{Hooks, Line, run_here};
use crate::benchmark::{BenchmarkError, Round};

/// How long a child that was asked to stop may take before it is killed.
const GRACE: Duration = Duration::from_secs(5);

/// How much longer than its measuring time a round may take before it counts as hung.
const SETUP_ALLOWANCE: Duration = Duration::from_secs(300);

/// Executes rounds.
pub trait Executor {
    /// Executes one round, passing on its events, until it ends or is told to stop.
    ///
    /// # Errors
    /// What the benchmark reported, or that its process could not be started, died or hung.
    fn execute(&self, round: &Round, hooks: Hooks<'_>) -> Result<(), BenchmarkError>;
}

/// Executes rounds in this process: for tests and for embedding.
#[derive(Debug)]
pub struct InProcess;

impl Executor for InProcess {
    fn execute(&self, round: &Round, hooks: Hooks<'_>) -> Result<(), BenchmarkError> {
        run_here(round, hooks)
    }
}

/// Executes each round in a fresh process of a program that answers with [`super::answer_round`].
#[derive(Debug, Clone)]
pub struct ChildProcess {
    /// The program.
    pub program: PathBuf,
    /// The arguments that make it answer a round.
    pub arguments: Vec<String>,
}

impl Executor for ChildProcess {
    fn execute(&self, round: &Round, hooks: Hooks<'_>) -> Result<(), BenchmarkError> {
        let mut child = Reaped(self.start(round)?);
        let lines = read_lines(&mut child.0)?;
        let deadline = Instant::now() + Duration::from_secs_f64(round.seconds) + SETUP_ALLOWANCE;
        let mut kill_at = None;
        loop {
            match lines.recv_timeout(Duration::from_millis(50)) {
                Ok(Line::Event(event)) => (hooks.on_event)(event),
                Ok(Line::End { error: None }) => return Ok(()),
                Ok(Line::End { error: Some(error) }) => return Err(error),
                // One that was told to stop before it could listen dies of that.
                Err(RecvTimeoutError::Disconnected) if kill_at.is_some() => {
                    return Err(BenchmarkError::Stopped);
                }
                Err(RecvTimeoutError::Disconnected) => return Err(child.died()),
                Err(RecvTimeoutError::Timeout) => {}
            }
            let now = Instant::now();
            if kill_at.is_none() && (hooks.stop)() {
                child.terminate();
                kill_at = Some(now + GRACE);
            }
            if kill_at.is_some_and(|at| now > at) {
                return Err(BenchmarkError::Stopped);
            }
            if now > deadline {
                let limit = SETUP_ALLOWANCE.as_secs_f64() + round.seconds;
                return Err(BenchmarkError::Failed(format!("no result after {limit:.0} s, given up")));
            }
        }
    }
}

impl ChildProcess {
    /// Starts the program in a process group of its own, so that Ctrl-C reaches us and we decide what the child does.
    fn start(&self, round: &Round) -> Result<Child, BenchmarkError> {
        let failed = |what: &str, error: &dyn std::fmt::Display| {
            BenchmarkError::Failed(format!("{what} {}: {error}", self.program.display()))
        };
        let mut request = serde_json::to_vec(round).map_err(|error| failed("cannot ask", &error))?;
        request.push(b'\n');
        let mut child = Command::new(&self.program)
            .args(&self.arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(|error| failed("cannot start", &error))?;
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(&request).map_err(|error| failed("cannot ask", &error))?;
        }
        Ok(child)
    }
}

/// Passes on what the child says, line by line; ends when the child closes its output.
fn read_lines(child: &mut Child) -> Result<mpsc::Receiver<Line>, BenchmarkError> {
    let stdout =
        child.stdout.take().ok_or_else(|| BenchmarkError::Failed("the child has no output".to_owned()))?;
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            let line = serde_json::from_str(&line).unwrap_or_else(|error| Line::End {
                error: Some(BenchmarkError::Failed(format!("the child said something unreadable: {error}"))),
            });
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    Ok(receiver)
}

/// A child that is gone, and waited for, when this is dropped.
struct Reaped(Child);

impl Reaped {
    fn terminate(&self) {
        if let Some(pid) = Pid::from_raw(self.0.id().cast_signed()) {
            // A child that is gone already has nothing left to stop.
            let _ = kill_process(pid, Signal::TERM);
        }
    }

    /// The error of a child that closed its output without a last word.
    fn died(&mut self) -> BenchmarkError {
        let status = self.0.wait().map_or_else(|error| error.to_string(), |status| status.to_string());
        BenchmarkError::Failed(format!("its process died: {status}"))
    }
}

impl Drop for Reaped {
    fn drop(&mut self) {
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(1) {
            if !matches!(self.0.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

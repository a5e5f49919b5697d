//! The far side of a round: the child process reads the request, runs it, and answers line by line.

use std::io::{BufRead, Write};

use serde::{Deserialize, Serialize};

use crate::benchmark::{BenchmarkError, Event, Round, RunContext};
use crate::suites::get_suite;

/// One line of a child's answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Line {
    /// Something happened.
    Event(Event),
    /// The last line.
    End {
        /// What went wrong, if anything.
        error: Option<BenchmarkError>,
    },
}

/// Reads one round from `input`, runs it in this process and writes what happens to `output`.
///
/// # Errors
/// If the request is not one, or the answer cannot be written.
pub fn answer_round(
    input: &mut dyn BufRead,
    output: &mut dyn Write,
    stop: &dyn Fn() -> bool,
) -> std::io::Result<()> {
    let mut request = String::new();
    input.read_line(&mut request)?;
    let round: Round = serde_json::from_str(&request)?;

    let mut written = Ok(());
    let mut write = |line: &Line| {
        if written.is_ok() {
            written = serde_json::to_vec(line).map_err(Into::into).and_then(|mut bytes| {
                bytes.push(b'\n');
                output.write_all(&bytes)?;
                output.flush()
            });
        }
    };
    let mut on_event = |event: Event| write(&Line::Event(event));
    let error = run_here(&round, Hooks { on_event: &mut on_event, stop }).err();
    write(&Line::End { error });
    written
}

/// What is done while a round runs.
pub struct Hooks<'a> {
    /// Takes its events.
    pub on_event: &'a mut dyn FnMut(Event),
    /// Says whether it shall stop.
    pub stop: &'a dyn Fn() -> bool,
}

/// Runs a round in this process.
pub(super) fn run_here(round: &Round, hooks: Hooks<'_>) -> Result<(), BenchmarkError> {
    let benchmark = get_suite(&round.id.suite)
        .and_then(|suite| suite.get_benchmark(&round.id.name))
        .ok_or_else(|| BenchmarkError::BadInput(format!("there is no benchmark {}", round.id)))?;
    let Hooks { on_event, stop } = hooks;
    let mut context = RunContext::new(round, stop, on_event);
    match &round.beside {
        None => {
            benchmark.prepare(&round.params)?;
            benchmark.run(&mut context)
        }
        Some(name) => {
            let peer = benchmark
                .peers()
                .iter()
                .find(|peer| peer.name() == name)
                .ok_or_else(|| BenchmarkError::BadInput(format!("{} has no peer {name}", round.id)))?;
            peer.prepare(&round.params)?;
            peer.run(&mut context)
        }
    }
}

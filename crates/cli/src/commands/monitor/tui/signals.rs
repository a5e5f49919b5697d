//! Signals to programs: asked about first, and sent to the very process that was asked about.

use std::os::fd::OwnedFd;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use warpforge_inventory::live::ProcessUsage;

/// A signal that waits for a yes.
#[derive(Debug)]
pub(super) struct Question {
    signal: Signal,
    pid: u32,
    name: String,
    /// The process itself: its number may be another's by the time of the answer.
    process: OwnedFd,
}

impl Question {
    /// Whether to send a signal to a program; an error where there is no such process any more.
    pub(super) fn new(signal: Signal, program: &ProcessUsage) -> Result<Self, String> {
        let failed = |reason: String| format!("{} ({}): {reason}", program.pid, program.name);
        let pid = i32::try_from(program.pid).ok().and_then(Pid::from_raw);
        let pid = pid.ok_or_else(|| failed("it is no process".to_owned()))?;
        let process = pidfd_open(pid, PidfdFlags::empty()).map_err(|error| failed(error.to_string()))?;
        Ok(Self { signal, pid: program.pid, name: program.name.clone(), process })
    }

    /// The question, for people.
    pub(super) fn text(&self) -> String {
        format!("Send {} to {} ({})?", name(self.signal), self.pid, self.name)
    }

    /// Sends the signal, and says what came of it.
    pub(super) fn send(self) -> String {
        let (signal, pid, program) = (name(self.signal), self.pid, &self.name);
        match pidfd_send_signal(&self.process, self.signal) {
            Ok(()) => format!("{signal} sent to {pid} ({program})"),
            Err(error) => format!("{signal} not sent to {pid} ({program}): {error}"),
        }
    }
}

/// The signals that keys send.
fn name(signal: Signal) -> &'static str {
    match signal {
        Signal::TERM => "SIGTERM",
        Signal::KILL => "SIGKILL",
        Signal::INT => "SIGINT",
        _ => "a signal",
    }
}

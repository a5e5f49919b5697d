//! Ctrl-Z: back to the shell, and on where one was when it brings the program to the foreground again.

use rustix::process::{Signal, kill_current_process_group};

/// Stops the program and all that run with it in a pipeline.
pub(super) fn suspend() -> std::io::Result<()> {
    Ok(kill_current_process_group(Signal::TSTP)?)
}

/// Whether somebody outside the process group, in the same session, started it. The kernel ignores a stop of a group
/// that has nobody like that.
pub(super) fn is_possible() -> bool {
    let Some(own) = Process::of("self") else { return false };
    let mut parent = own.parent;
    while let Some(process) = Process::of(&parent.to_string()) {
        if process.group != own.group {
            return process.session == own.session;
        }
        parent = process.parent;
    }
    false
}

/// What the kernel tells of a process.
struct Process {
    parent: u32,
    group: u32,
    session: u32,
}

impl Process {
    fn of(pid: &str) -> Option<Self> {
        let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name in parentheses may have spaces and parentheses of its own.
        let mut fields = text.rsplit_once(')')?.1.split_whitespace().skip(1).map(str::parse);
        let mut next = || fields.next()?.ok();
        Some(Self { parent: next()?, group: next()?, session: next()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_knows_its_parent_group_and_session() {
        let own = Process::of("self").unwrap();
        assert_eq!(own.parent, std::os::unix::process::parent_id());
        let number = |pid: rustix::process::Pid| u32::try_from(pid.as_raw_nonzero().get()).unwrap();
        assert_eq!(own.group, number(rustix::process::getpgrp()));
        assert_eq!(own.session, number(rustix::process::getsid(None).unwrap()));
        assert!(Process::of("0").is_none());
    }
}

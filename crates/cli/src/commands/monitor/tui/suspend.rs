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

/// What the kernel tells of a process. A group or session that began outside its process namespace is 0.
struct Process {
    parent: u32,
    group: u32,
    session: u32,
}

impl Process {
    fn of(pid: &str) -> Option<Self> {
        Self::parse(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    fn parse(stat: &str) -> Option<Self> {
        // The name in parentheses may have spaces and parentheses of its own.
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(1).map(str::parse);
        let mut next = || fields.next()?.ok();
        Some(Self { parent: next()?, group: next()?, session: next()? })
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    use super::*;

    #[test]
    fn a_name_may_have_spaces_and_parentheses() {
        let process = Process::parse("812 (tmux: (a) b) S 640 812 77 34816 812 4194304").unwrap();
        assert_eq!((process.parent, process.group, process.session), (640, 812, 77));
        assert!(Process::parse("812 (cut").is_none());
    }

    #[test]
    fn a_process_knows_its_parent_and_group() {
        let mut child = Command::new("sleep").arg("10").process_group(0).spawn().unwrap();
        let seen = Process::of(&child.id().to_string()).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!((seen.parent, seen.group), (std::process::id(), child.id()));
        assert_eq!(seen.session, Process::of("self").unwrap().session);
        assert!(Process::of("0").is_none());
    }
}

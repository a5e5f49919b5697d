//! Asking programs for their version, without waiting long for any.

use std::io::Read as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Longer output is cut.
const LONGEST_OUTPUT: u64 = 1 << 20;

/// When an inventory stops waiting for the programs it asks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deadline(Instant);

impl Deadline {
    pub(super) fn after(time: Duration) -> Self {
        Self(Instant::now() + time)
    }

    fn left(self) -> Duration {
        self.0.saturating_duration_since(Instant::now())
    }
}

/// What a program prints; `None` if it fails or is not done at the deadline, and it is then ended.
pub(super) fn output(program: &Path, arguments: &[&str], deadline: Deadline) -> Option<String> {
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .current_dir("/")
        .env("LC_ALL", "C")
        // The proxies of rustup would otherwise download a toolchain that is asked for but not there.
        .env("RUSTUP_AUTO_INSTALL", "0")
        .process_group(0)
        .spawn()
        .ok()?;
    let stdout = child.stdout.take()?;
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if stdout.take(LONGEST_OUTPUT).read_to_end(&mut bytes).is_ok() {
            // The receiver has given up if this fails.
            let _ = sender.send(bytes);
        }
    });
    let bytes = receiver.recv_timeout(deadline.left()).ok();
    let success = bytes.is_some() && wait(&mut child, deadline);
    if !success {
        end(&mut child);
    }
    let text = String::from_utf8_lossy(&bytes?).into_owned();
    (success && !text.trim().is_empty()).then_some(text)
}

/// Whether the program ends well before the deadline.
fn wait(child: &mut Child, deadline: Deadline) -> bool {
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return status.success(),
            Ok(None) if !deadline.left().is_zero() => std::thread::sleep(Duration::from_millis(1)),
            _ => return false,
        }
    }
}

/// Ends the program and those it has started; one that has ended already needs no more than the wait.
fn end(child: &mut Child) {
    if matches!(child.try_wait(), Ok(None))
        && let Some(group) = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw)
    {
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        let _ = child.wait();
    }
}

/// The version in what a program prints: on the first line that has one, behind the word "version" or "release", else
/// the last on the line.
pub(super) fn version_in(text: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let words: Vec<_> = line.split_whitespace().collect();
        let named = words.iter().skip_while(|word| !names_a_version(word)).find_map(|word| version(word));
        named.or_else(|| words.iter().rev().find_map(|word| version(word)))
    })
}

fn names_a_version(word: &str) -> bool {
    let word = word.trim_end_matches(':').to_ascii_lowercase();
    word == "version" || word == "cli-version"
}

/// The version in a word such as `(12.2.0-14)`, `V12.4.131` or `27.3.1,`.
fn version(word: &str) -> Option<String> {
    let word = word.trim_start_matches(['(', 'v', 'V']);
    let end = word.find(|c: char| !(c.is_ascii_alphanumeric() || ".+~-".contains(c))).unwrap_or(word.len());
    let version = word[..end].trim_end_matches(['.', '-', '+']);
    let numeric = version.starts_with(|c: char| c.is_ascii_digit());
    let parts =
        version.split_once('.').is_some_and(|(_, rest)| rest.starts_with(|c: char| c.is_ascii_digit()));
    (numeric && parts).then(|| version.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{program, programs};

    #[test]
    fn versions_of_real_programs() {
        for (text, expected) in [
            ("gcc (Debian 12.2.0-14+deb12u1) 12.2.0\nCopyright (C) 2022", "12.2.0"),
            ("Ubuntu clang version 18.1.3 (1ubuntu1)\nTarget: x86_64", "18.1.3"),
            ("clang version 19.0.0git (https://example.org/llvm 1.2.3)", "19.0.0git"),
            (
                "nvcc: NVIDIA (R) Cuda compiler driver\nCopyright (c) 2005-2024 NVIDIA\nrelease 12.4, V12.4.131",
                "12.4.131",
            ),
            ("rustc 1.95.0 (59807616e 2026-04-14)", "1.95.0"),
            ("Docker version 27.3.1, build ce12230", "27.3.1"),
            ("HIP version: 6.2.41133-dd7f95766\nAMD clang version 18.0.0", "6.2.41133-dd7f95766"),
            ("ifx (IFX) 2024.0.0 20231017", "2024.0.0"),
            ("NVIDIA Container Toolkit CLI version 1.16.2\ncommit: a5a5833", "1.16.2"),
            ("Python 3.11.2", "3.11.2"),
        ] {
            assert_eq!(version_in(text).as_deref(), Some(expected), "{text}");
        }
        assert_eq!(version_in("no version at all, sorry"), None);
        assert_eq!(version_in("v. 7 …"), None);
    }

    #[test]
    fn output_of_a_program_that_succeeds_only() {
        let root = programs(&[("good", "echo 1.2.3"), ("bad", "echo 1.2.3; exit 1"), ("silent", "true")]);
        let run = |name: &str| output(&root.path().join(name), &[], Deadline::after(Duration::from_secs(60)));
        assert_eq!(run("good").as_deref(), Some("1.2.3\n"));
        assert_eq!((run("bad"), run("silent"), run("missing")), (None, None, None));
    }

    #[test]
    fn a_program_that_hangs_is_ended_with_its_children() {
        let root = programs(&[]);
        let marker = root.path().join("pid");
        program(&root, "slow", &format!("sleep 600 & echo $! > {}; wait", marker.display()));
        let text = output(&root.path().join("slow"), &[], Deadline::after(Duration::from_millis(500)));
        assert_eq!(text, None);
        let pid = std::fs::read_to_string(&marker).unwrap_or_default();
        let state = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
        assert!(!state.contains(") S "), "the child still sleeps: {state}");
    }
}

//! The dashboard of `warpt monitor`, on a terminal.

use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, Stdio};

use crate::terminal::Terminal;
use crate::warpt::Warpt;

const ENTER_SCREEN: &str = "\u{1b}[?1049h";
const LEAVE_SCREEN: &str = "\u{1b}[?1049l";

fn dashboard(warpt: &Warpt) -> Terminal {
    let command = warpt.command(&["monitor", "--interval", "0.1"]);
    Terminal::start(command, 120, 40)
}

/// A program that waits until it is ended, with a word in its command line that no other has.
fn waiting(word: &str) -> Child {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("read line # {word}")]).stdin(Stdio::piped()).spawn().unwrap()
}

#[test]
fn a_program_is_found_and_ended() {
    let warpt = Warpt::new();
    let mut child = waiting("wf-waits");
    // Waiting for its end would close its input, which ends it too.
    let input = child.stdin.take();
    let mut terminal = dashboard(&warpt);
    // Before that, the terminal would not pass on keys as they are.
    terminal.wait_for(ENTER_SCREEN, 0);
    terminal.press("/wf-waits\r");
    terminal.wait_for_on_screen(&child.id().to_string());
    terminal.press("jT");
    terminal.wait_for_on_screen("Send SIGTERM to");
    assert!(child.try_wait().unwrap().is_none(), "ended without a yes");
    terminal.press("y");
    assert_eq!(child.wait().unwrap().signal(), Some(15));
    drop(input);
    terminal.press("\u{3}");
    assert!(terminal.end().success());
}

#[test]
fn ctrl_z_gives_the_terminal_back_and_takes_it_again() {
    let warpt = Warpt::new();
    let mut terminal = dashboard(&warpt);
    let entered = terminal.wait_for(ENTER_SCREEN, 0);
    terminal.wait_for("Programs", entered);
    terminal.press("\u{1a}");
    let left = terminal.wait_for(LEAVE_SCREEN, entered);
    terminal.wait_until_stopped();
    terminal.resume();
    let back = terminal.wait_for(ENTER_SCREEN, left);
    terminal.wait_for("Programs", back);
    terminal.press("q");
    assert!(terminal.end().success());
    terminal.wait_for(LEAVE_SCREEN, back);
}

#[test]
fn keys_for_the_interval_command_lines_and_the_help_are_heard() {
    let warpt = Warpt::new();
    let mut terminal = Terminal::start(warpt.command(&["monitor", "--interval", "1"]), 60, 18);
    terminal.wait_for(ENTER_SCREEN, 0);
    terminal.wait_for_on_screen("every 1 s");
    terminal.press("+");
    terminal.wait_for_on_screen("every 2 s");
    terminal.press("f");
    terminal.wait_for_on_screen("COMMAND");
    terminal.press("?");
    terminal.wait_for_on_screen("SIGTERM,");
    terminal.press("?q");
    assert!(terminal.end().success());
}

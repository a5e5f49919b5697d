//! `warpt` on a terminal: a pseudo-terminal that the test reads and types on.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

/// A program on a terminal of its own. It ends with the test.
pub(crate) struct Terminal {
    child: Child,
    keyboard: File,
    shown: Arc<Shown>,
}

/// What the program wrote so far.
#[derive(Default)]
struct Shown {
    text: Mutex<Vec<u8>>,
    grew: Condvar,
}

/// A program that shows nothing for so long has failed. Nothing is measured by it.
const PATIENCE: Duration = Duration::from_secs(120);

impl Terminal {
    /// Starts a program on a terminal of this size.
    pub(crate) fn start(mut command: Command, columns: u16, rows: u16) -> Self {
        let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&controller).unwrap();
        unlockpt(&controller).unwrap();
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&controller, size).unwrap();
        let name = ptsname(&controller, Vec::new()).unwrap().into_string().unwrap();
        let terminal = || File::options().read(true).write(true).open(&name).unwrap();
        command.env("TERM", "xterm-256color").process_group(0);
        let child = command.stdin(terminal()).stdout(terminal()).stderr(terminal()).spawn().unwrap();
        // The command holds the terminal open; only the program may, so that its end is the end of the output.
        drop(command);
        let keyboard = File::from(controller);
        let (mut screen, shown) = (keyboard.try_clone().unwrap(), Arc::new(Shown::default()));
        let writer = Arc::clone(&shown);
        std::thread::spawn(move || {
            let mut chunk = [0; 4096];
            while let Ok(count @ 1..) = screen.read(&mut chunk) {
                writer.text.lock().unwrap().extend_from_slice(&chunk[..count]);
                writer.grew.notify_all();
            }
        });
        Self { child, keyboard, shown }
    }

    /// Types on the keyboard.
    pub(crate) fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits until the program has written some text after the first `after` bytes; gives where it ends.
    pub(crate) fn wait_for(&self, text: &str, after: usize) -> usize {
        let find = |shown: &[u8]| {
            let rest = shown.get(after..)?;
            let found = rest.windows(text.len()).position(|window| window == text.as_bytes())?;
            Some(after + found + text.len())
        };
        let shown = self.shown.text.lock().unwrap();
        let absent = |shown: &mut Vec<u8>| find(shown).is_none();
        let (shown, waited) = self.shown.grew.wait_timeout_while(shown, PATIENCE, absent).unwrap();
        assert!(!waited.timed_out(), "no {text:?} in {:?}", String::from_utf8_lossy(&shown));
        find(&shown).unwrap()
    }

    /// How much the program has written.
    fn len(&self) -> usize {
        self.shown.text.lock().unwrap().len()
    }

    /// Has a dashboard draw its screen again and again, until some text is on it.
    pub(crate) fn wait_for_on_screen(&mut self, text: &str) {
        const CLEAR: &str = "\u{1b}[2J";
        let began = Instant::now();
        loop {
            let mut ends = [self.len(); 2];
            for at in 0..2 {
                self.press("\u{c}");
                ends[at] = self.wait_for(CLEAR, ends[0]);
            }
            let [begin, end] = ends;
            let screen = self.shown.text.lock().unwrap()[begin..end].to_vec();
            let screen = String::from_utf8_lossy(&screen);
            if screen.contains(text) {
                return;
            }
            assert!(began.elapsed() < PATIENCE, "no {text:?} in {screen:?}");
        }
    }

    /// Everything that the program has written.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.shown.text.lock().unwrap()).into_owned()
    }

    /// Waits until the program is stopped.
    pub(crate) fn wait_until_stopped(&self) {
        let stat = format!("/proc/{}/stat", self.child.id());
        while !std::fs::read_to_string(&stat).unwrap().contains(") T ") {
            std::thread::yield_now();
        }
    }

    /// Lets a stopped program go on.
    pub(crate) fn resume(&self) {
        rustix::process::kill_process(Pid::from_child(&self.child), Signal::CONT).unwrap();
    }

    /// Waits for the program's end.
    pub(crate) fn end(&mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

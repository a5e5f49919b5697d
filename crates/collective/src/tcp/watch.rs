//! Who is alive: a line between rank 0 and each other rank, on which both say so every second.
//!
//! A process that ends closes its line, a machine that vanishes falls silent. Rank 0 tells the others.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::Lost;
use crate::Error;

const BEAT: Duration = Duration::from_secs(1);

/// A rank that is silent for so long is gone.
const SILENCE: Duration = Duration::from_secs(6);

/// How long to wait for the cause of a connection that broke.
const CAUSE: Duration = Duration::from_secs(2);

/// What is said on a line.
const ALIVE: u8 = 0;
const BYE: u8 = 1;
/// Followed by the rank that is gone.
const GONE: u8 = 2;

/// What all threads of a rank share.
struct Shared {
    lines: Vec<(usize, Mutex<TcpStream>)>,
    ring: [TcpStream; 2],
    cause: Mutex<Option<Error>>,
    found: Condvar,
    /// Whether this rank ends: nobody is missed any more.
    closing: AtomicBool,
    lost: Lost,
}

pub(super) struct Watch {
    shared: Arc<Shared>,
    left: bool,
}

impl Watch {
    pub(super) fn start(
        rank: usize,
        lines: Vec<(usize, TcpStream)>,
        ring: [TcpStream; 2],
        lost: Lost,
    ) -> Result<Self, Error> {
        let failed = |error: std::io::Error| Error::Lost { rank, reason: error.to_string() };
        let mut readers = Vec::new();
        for (other, line) in &lines {
            line.set_read_timeout(Some(BEAT)).map_err(failed)?;
            line.set_write_timeout(Some(SILENCE)).map_err(failed)?;
            readers.push((*other, line.try_clone().map_err(failed)?));
        }
        let lines = lines.into_iter().map(|(other, line)| (other, Mutex::new(line))).collect();
        let (cause, found, closing) = (Mutex::new(None), Condvar::new(), AtomicBool::new(false));
        let shared = Arc::new(Shared { lines, ring, cause, found, closing, lost });
        for (other, line) in readers {
            let shared = Arc::clone(&shared);
            let watch = move || shared.watch(other, line);
            std::thread::Builder::new().name(format!("watch {other}")).spawn(watch).map_err(failed)?;
        }
        Ok(Self { shared, left: false })
    }

    /// Why a connection broke, where that becomes known soon.
    pub(super) fn cause(&self) -> Option<Error> {
        let cause = self.shared.cause.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.shared.found.wait_timeout_while(cause, CAUSE, |cause| cause.is_none());
        waited.unwrap_or_else(PoisonError::into_inner).0.clone()
    }

    /// Why a rank is gone, where that is known already.
    pub(super) fn known(&self) -> Option<Error> {
        self.shared.cause.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Tells the others that this rank ends, and that this is right.
    pub(super) fn leave(&mut self) {
        self.left = true;
        self.shared.say(&[BYE]);
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.shared.closing.store(true, Ordering::SeqCst);
        // The threads that listen end with their lines; a line that ends without a word says that this rank is gone.
        for (_, line) in &self.shared.lines {
            let line = line.lock().unwrap_or_else(PoisonError::into_inner);
            let _ = line.shutdown(if self.left { Shutdown::Read } else { Shutdown::Both });
        }
    }
}

impl Shared {
    /// Says something to all who are still there.
    fn say(&self, message: &[u8]) {
        for (_, line) in &self.lines {
            let _ = line.lock().unwrap_or_else(PoisonError::into_inner).write_all(message);
        }
    }

    /// Listens to a rank until it leaves, and says every second that this one is alive.
    fn watch(&self, other: usize, mut line: TcpStream) {
        let (mut heard, mut said) = (Instant::now(), None::<Instant>);
        let own = self.lines.iter().find(|(rank, _)| *rank == other).map(|(_, line)| line);
        loop {
            if said.is_none_or(|said| said.elapsed() >= BEAT)
                && let Some(own) = own
            {
                // An error shows when the line is read.
                let _ = own.lock().unwrap_or_else(PoisonError::into_inner).write_all(&[ALIVE]);
                said = Some(Instant::now());
            }
            let mut message = [0];
            match line.read_exact(&mut message).map(|()| message[0]) {
                Ok(BYE) => return,
                Ok(GONE) => {
                    let mut rank = [0; 4];
                    let _ = line.read_exact(&mut rank);
                    return self.gone(u32::from_le_bytes(rank) as usize, "rank 0 says so".to_owned());
                }
                Ok(_) => heard = Instant::now(),
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    if heard.elapsed() > SILENCE {
                        let silent = format!("nothing was heard of it for {} s", SILENCE.as_secs());
                        return self.gone(other, silent);
                    }
                }
                Err(_) => return self.gone(other, "its process has ended".to_owned()),
            }
        }
    }

    /// A rank is gone: what waits for it ends, and all others are told.
    fn gone(&self, rank: usize, reason: String) {
        let error = Error::Lost { rank, reason };
        let mut cause = self.cause.lock().unwrap_or_else(PoisonError::into_inner);
        if cause.is_some() || self.closing.load(Ordering::SeqCst) {
            return;
        }
        *cause = Some(error.clone());
        drop(cause);
        self.found.notify_all();
        let mut message = vec![GONE];
        message.extend_from_slice(&(rank as u32).to_le_bytes());
        self.say(&message);
        for stream in &self.ring {
            let _ = stream.shutdown(Shutdown::Both);
        }
        (self.lost)(&error);
    }
}

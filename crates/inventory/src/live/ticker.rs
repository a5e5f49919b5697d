//! A background thread that does something again and again until it is stopped.

use std::io;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The thread, and the way to stop it. Dropping it lets the thread end by itself.
#[derive(Debug)]
pub(super) struct Ticker<T> {
    stop: Sender<()>,
    thread: JoinHandle<T>,
}

impl<T: Send + 'static> Ticker<T> {
    /// Calls `tick` after every interval. A tick that comes late does not shift the later ones.
    pub(super) fn start(
        name: &str,
        interval: Duration,
        mut state: T,
        mut tick: impl FnMut(&mut T) + Send + 'static,
    ) -> io::Result<Self> {
        let (stop, stopped) = mpsc::channel();
        let thread = thread::Builder::new().name(name.to_owned()).spawn(move || {
            let mut due = Instant::now() + interval;
            while stopped.recv_timeout(due.saturating_duration_since(Instant::now()))
                == Err(RecvTimeoutError::Timeout)
            {
                tick(&mut state);
                let now = Instant::now();
                while due <= now {
                    due += interval;
                }
            }
            state
        })?;
        Ok(Self { stop, thread })
    }

    /// Stops the thread and takes what it gathered.
    pub(super) fn stop(self) -> T {
        drop(self.stop);
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_ticks_until_stopped_and_gives_back_its_state() {
        let (ticked, wait) = mpsc::channel();
        let ticker = Ticker::start("test", Duration::from_millis(1), 0_u32, move |count| {
            *count += 1;
            let _ = ticked.send(*count);
        })
        .unwrap();
        assert_eq!(wait.iter().take(3).last(), Some(3));
        assert!(ticker.stop() >= 3);
    }

    #[test]
    fn stopping_does_not_wait_for_the_next_tick() {
        let ticker = Ticker::start("test", Duration::from_secs(3600), "kept", |_| {}).unwrap();
        assert_eq!(ticker.stop(), "kept");
    }
}

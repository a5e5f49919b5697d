//! Everything that can happen to a running monitor, through one channel: samples, keys, signals.

use std::io;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, SyncSender};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use ratatui::crossterm::event::Event as Input;
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use warpforge_inventory::live::{ProcessSampler, ProcessUsage, Sampler, TimelineRecord};

use super::metrics::Endpoint;
use super::schedule::Schedule;

/// A reader that stands still may let this many events wait; then sampling waits too, and memory stays bounded.
const MOST_WAITING: usize = 64;

/// Listing programs costs more than all the rest, so it is done no more often than this.
const PROCESS_INTERVAL: Duration = Duration::from_millis(950);

/// How long after a signal the program may still take to end by itself.
const GRACE: Duration = Duration::from_secs(2);

/// Something that happened.
#[derive(Debug)]
pub(super) enum Event {
    /// A sample was taken.
    Sample(Box<Sample>),
    /// A key was pressed or the terminal changed its size.
    Input(Input),
    /// The keyboard cannot be read any more.
    NoInput(io::Error),
    /// The user or the system wants the program to end.
    Stop,
    /// The program was stopped and goes on.
    Resumed,
    /// The duration is over.
    Finished,
    /// The sampling thread panicked.
    Broken,
}

/// A record, and the programs where they are shown and were listed this time.
#[derive(Debug)]
pub(super) struct Sample {
    pub(super) record: TimelineRecord,
    pub(super) processes: Option<Vec<ProcessUsage>>,
}

/// Gives a dashboard's terminal back if the program must end at once.
pub(super) type Restore = fn();

/// The events of a running monitor.
pub(super) struct Feed {
    events: Receiver<Event>,
    intervals: Sender<Duration>,
}

impl Feed {
    /// Starts the threads behind the events; they end with the program. A dashboard also gets keys and programs.
    pub(super) fn start(
        schedule: Schedule,
        dashboard: Option<Restore>,
        endpoint: Option<&Endpoint>,
    ) -> anyhow::Result<Self> {
        let (sender, events) = mpsc::sync_channel(MOST_WAITING);
        spawn("warpt-signals", watch_signals(sender.clone(), dashboard)?)?;
        if dashboard.is_some() {
            let sender = sender.clone();
            spawn("warpt-input", move || read_input(&sender))?;
        }
        let publisher = endpoint.map(Endpoint::publisher);
        let with_processes = dashboard.is_some();
        let (intervals, asked) = mpsc::channel();
        spawn("warpt-sampler", move || {
            let ending = Ending(sender);
            let mut source = Source::new(with_processes);
            let mut schedule = schedule;
            let start = Instant::now();
            while let Some(due) = schedule.next_after(start.elapsed()) {
                match asked.recv_timeout(due.saturating_sub(start.elapsed())) {
                    Ok(interval) => {
                        schedule = schedule.with_interval(start.elapsed(), interval);
                        continue;
                    }
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => return,
                }
                let sample = source.sample();
                if let Some(publisher) = &publisher {
                    publisher.publish(&sample.record);
                }
                if ending.0.send(Event::Sample(Box::new(sample))).is_err() {
                    return;
                }
            }
        })?;
        Ok(Self { events, intervals })
    }

    /// Waits for the next event.
    pub(super) fn next(&self) -> Event {
        self.events.recv().unwrap_or(Event::Stop)
    }

    /// Samples come this far apart from now on.
    pub(super) fn set_interval(&self, interval: Duration) {
        // A sampler that has ended needs none.
        let _ = self.intervals.send(interval);
    }
}

/// Tells how the sampling thread ended, whichever way it does.
struct Ending(SyncSender<Event>);

impl Drop for Ending {
    fn drop(&mut self) {
        let _ = self.0.send(if thread::panicking() { Event::Broken } else { Event::Finished });
    }
}

struct Source {
    sampler: Sampler,
    processes: Option<ProcessSampler>,
    listed: Option<Instant>,
}

impl Source {
    fn new(with_processes: bool) -> Self {
        let processes = with_processes.then(ProcessSampler::new).and_then(|processes| {
            processes.inspect_err(|error| tracing::warn!("programs cannot be listed: {error}")).ok()
        });
        Self { processes, sampler: Sampler::new(), listed: None }
    }

    fn sample(&mut self) -> Sample {
        let record = self.sampler.sample();
        let due = self.listed.is_none_or(|listed| listed.elapsed() >= PROCESS_INTERVAL);
        let processes = self.processes.as_mut().filter(|_| due).map(ProcessSampler::sample);
        if processes.is_some() {
            self.listed = Some(Instant::now());
        }
        Sample { record, processes }
    }
}

fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> anyhow::Result<()> {
    thread::Builder::new()
        .name(name.to_owned())
        .spawn(body)
        .with_context(|| format!("cannot start {name}"))?;
    Ok(())
}

fn watch_signals(
    sender: SyncSender<Event>,
    restore: Option<Restore>,
) -> anyhow::Result<impl FnOnce() + Send> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP, SIGCONT]).context("cannot watch for signals")?;
    Ok(move || {
        for signal in signals.forever() {
            if signal != SIGCONT {
                break;
            }
            let _ = sender.send(Event::Resumed);
        }
        // Someone who reads our output but has stopped doing so must not keep us from ending.
        let _ = thread::Builder::new().spawn(move || {
            thread::sleep(GRACE);
            if let Some(restore) = restore {
                restore();
            }
            std::process::exit(0);
        });
        let _ = sender.send(Event::Stop);
    })
}

fn read_input(sender: &SyncSender<Event>) {
    loop {
        let event = ratatui::crossterm::event::read();
        let failed = event.is_err();
        if sender.send(event.map_or_else(Event::NoInput, Event::Input)).is_err() || failed {
            return;
        }
    }
}

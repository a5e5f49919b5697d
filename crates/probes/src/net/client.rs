//! The asking side: throughput and round trips to a server.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

use super::wire::{PATIENCE, Request, SUMMARY_BYTES, Service, Summary, read_reply};
use super::{NetError, flow};
use crate::affinity;
use crate::latency::Latencies;

/// The share of the time that passes before anything is recorded, while windows and buffers grow.
const WARM_UP: f64 = 0.2;

/// Rates taken in one measurement.
const SLICES: u32 = 8;

/// Round trips after the warm-up that a median needs.
const FEWEST_ROUND_TRIPS: u64 = 2;

/// Bytes of a message that goes there and back.
const ROUND_TRIP_BYTES: usize = 64;

/// Which way data flows, seen from the asking side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// To the server.
    Send,
    /// From the server.
    Receive,
    /// Both at the same time, on connections of their own.
    Both,
}

impl Direction {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Send, Self::Receive, Self::Both];

    /// The name used in results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Send => "send",
            Self::Receive => "receive",
            Self::Both => "both",
        }
    }

    fn services(self) -> &'static [Service] {
        match self {
            Self::Send => &[Service::Take],
            Self::Receive => &[Service::Send],
            Self::Both => &[Service::Take, Service::Send],
        }
    }
}

/// What to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Load {
    /// Which way.
    pub direction: Direction,
    /// Connections for each way.
    pub streams: usize,
    /// Bytes given to the system at a time.
    pub block_bytes: u32,
    /// The processor for this side's threads, if the system should not choose.
    pub cpu: Option<usize>,
}

/// Finds out whether a server answers at one of these addresses, and which.
///
/// # Errors
/// Of the last address, if none does.
pub fn check(addresses: &[SocketAddr]) -> Result<SocketAddr, NetError> {
    let request =
        Request { service: Service::Return, block_bytes: ROUND_TRIP_BYTES as u32, time: Duration::ZERO };
    let mut outcome = Err(NetError::BadHost { text: String::new() });
    for &address in addresses {
        outcome = open(address, request).map(|_| address);
        if outcome.is_ok() {
            break;
        }
    }
    outcome
}

/// Bytes a second of payload over all connections, a value for each slice of the time. A machine too busy to take even
/// one slice gives one value, over the whole time. Empty if `stop` said so before the first slice was over.
///
/// # Errors
/// If the server does not answer, falls silent, or counts other than this side.
pub fn measure_throughput(
    address: SocketAddr,
    load: &Load,
    time: Duration,
    stop: &dyn Fn() -> bool,
) -> Result<Vec<f64>, NetError> {
    let mut connections = Vec::new();
    for _ in 0..load.streams {
        for &service in load.direction.services() {
            let request = Request { service, block_bytes: load.block_bytes, time };
            connections.push((open(address, request)?, service));
        }
    }
    let (moved, halt) = (AtomicU64::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        let mut threads = Vec::new();
        for (stream, service) in &connections {
            let (moved, halt) = (&moved, &halt);
            let run = move || {
                if let Some(cpu) = load.cpu {
                    // Placement makes figures steadier; without it they are still figures.
                    let _ = affinity::pin_to(cpu);
                }
                transfer(stream, *service, load.block_bytes as usize, time, halt, moved)
            };
            let thread = thread::Builder::new().name("net-client".to_owned()).spawn_scoped(scope, run);
            threads.push(thread.map_err(|cause| {
                abandon(&connections, halt);
                NetError::System { what: "start a thread for a connection", cause }
            })?);
        }
        let begin = Instant::now();
        let mut rates = watch(&moved, time, &|| stop() || threads.iter().any(ScopedJoinHandle::is_finished));
        let stopped = stop();
        if stopped {
            abandon(&connections, &halt);
        }
        for thread in threads {
            let outcome = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            // Connections cut off on purpose have nothing to complain about.
            if !stopped {
                outcome?;
            }
        }
        if rates.is_empty() && !stopped {
            rates.push(moved.load(Ordering::Relaxed) as f64 / begin.elapsed().as_secs_f64());
        }
        Ok(rates)
    })
}

/// Ends connections before their time.
fn abandon(connections: &[(TcpStream, Service)], halt: &AtomicBool) {
    halt.store(true, Ordering::Release);
    for (stream, _) in connections {
        // It may be closed already.
        let _ = stream.shutdown(Shutdown::Both);
    }
}

/// Moves the payload of one connection, and makes sure that both sides counted the same.
fn transfer(
    mut stream: &TcpStream,
    service: Service,
    block_bytes: usize,
    time: Duration,
    halt: &AtomicBool,
    moved: &AtomicU64,
) -> Result<(), NetError> {
    if service == Service::Send {
        return flow::receive(stream, block_bytes, time, moved).map(drop);
    }
    let sent = flow::send(stream, block_bytes, time, &|| halt.load(Ordering::Acquire), moved)?.payload_bytes;
    let mut answer = [0; SUMMARY_BYTES];
    stream.read_exact(&mut answer).map_err(NetError::lost("waiting for the summary"))?;
    let summary = Summary::from_bytes(&answer)
        .ok_or_else(|| NetError::Foreign { found: "something else in place of a summary".to_owned() })?;
    if summary.payload_bytes != sent {
        return Err(NetError::Miscounted { sent, received: summary.payload_bytes });
    }
    Ok(())
}

/// Looks at a counter in regular intervals and makes a rate of each, until the time or something else is over.
fn watch(moved: &AtomicU64, time: Duration, over: &dyn Fn() -> bool) -> Vec<f64> {
    let start = Instant::now();
    let slice = time.mul_f64(1.0 - WARM_UP) / (SLICES + 1);
    let mut due = start + time.mul_f64(WARM_UP);
    let (mut opened, mut before) = (None, 0);
    let mut rates = Vec::new();
    while rates.len() < SLICES as usize && wait_until(due, over) {
        let (now, count) = (Instant::now(), moved.load(Ordering::Relaxed));
        if let Some(opened) = opened {
            rates.push((count - before) as f64 / now.duration_since(opened).as_secs_f64());
        }
        (opened, before) = (Some(now), count);
        due += slice;
    }
    rates
}

/// Sleeps until the given time; false if it was over before.
fn wait_until(due: Instant, over: &dyn Fn() -> bool) -> bool {
    const NAP: Duration = Duration::from_millis(50);
    loop {
        if over() {
            return false;
        }
        let left = due.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return true;
        }
        thread::sleep(left.min(NAP));
    }
}

/// How long small messages take to the server and back, one after the other, for some time. It goes on until there are
/// enough for a median, unless `stop` says so.
///
/// # Errors
/// If the server does not answer or falls silent.
pub fn measure_round_trips(
    address: SocketAddr,
    time: Duration,
    cpu: Option<usize>,
    stop: &dyn Fn() -> bool,
) -> Result<Latencies, NetError> {
    let request = Request { service: Service::Return, block_bytes: ROUND_TRIP_BYTES as u32, time };
    let stream = open(address, request)?;
    let (over, stopped) = (AtomicBool::new(false), AtomicBool::new(false));
    // A thread of its own, so that the caller's keeps its processors.
    thread::scope(|scope| {
        let body = || {
            if let Some(cpu) = cpu {
                // As for throughput.
                let _ = affinity::pin_to(cpu);
            }
            let enough = |count| over.load(Ordering::Acquire) && count >= FEWEST_ROUND_TRIPS;
            exchange(&stream, time, &|count| stopped.load(Ordering::Acquire) || enough(count))
        };
        let thread = thread::Builder::new().name("net-client".to_owned()).spawn_scoped(scope, body);
        let thread =
            thread.map_err(|cause| NetError::System { what: "start a thread for a connection", cause })?;
        wait_until(Instant::now() + time, &|| stop() || thread.is_finished());
        over.store(true, Ordering::Release);
        while !thread.is_finished() && !stop() {
            thread::sleep(Duration::from_millis(1));
        }
        stopped.store(true, Ordering::Release);
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Sends messages and waits for each to come back, until `over` says so of their number after the warm-up.
fn exchange(
    mut stream: &TcpStream,
    time: Duration,
    over: &dyn Fn(u64) -> bool,
) -> Result<Latencies, NetError> {
    let lost = NetError::lost("exchanging messages");
    stream.set_nodelay(true).map_err(&lost)?;
    let start = Instant::now();
    let warm = start + time.mul_f64(WARM_UP);
    let mut latencies = Latencies::new();
    let mut message = [0; ROUND_TRIP_BYTES];
    while !over(latencies.count()) {
        fastrand::fill(&mut message);
        let mut echo = [0; ROUND_TRIP_BYTES];
        let sent = Instant::now();
        stream.write_all(&message).map_err(&lost)?;
        stream.read_exact(&mut echo).map_err(&lost)?;
        let took = sent.elapsed();
        if echo != message {
            return Err(NetError::Foreign { found: "a message came back changed".to_owned() });
        }
        if sent >= warm {
            latencies.add(took);
        }
    }
    stream.shutdown(Shutdown::Write).map_err(&lost)?;
    Ok(latencies)
}

/// A connection whose server returns every block: what comes back can be compared with what was sent.
#[derive(Debug)]
pub struct Echo {
    stream: TcpStream,
    block_bytes: usize,
}

impl Echo {
    /// Connects to a server that will return blocks of this size for so long.
    ///
    /// # Errors
    /// If the server does not answer or does not agree.
    pub fn open(address: SocketAddr, block_bytes: u32, time: Duration) -> Result<Self, NetError> {
        let stream = open(address, Request { service: Service::Return, block_bytes, time })?;
        stream.set_nodelay(true).map_err(NetError::lost("setting up the connection"))?;
        Ok(Self { stream, block_bytes: block_bytes as usize })
    }

    /// Sends the payload while what comes back is read, so that both directions are in use at the same time.
    ///
    /// # Errors
    /// If the server falls silent, or a thread cannot be started.
    ///
    /// # Panics
    /// If the payload is not a whole number of blocks, or the echo has another size.
    pub fn exchange(&mut self, payload: &[u8], echo: &mut [u8]) -> Result<Duration, NetError> {
        assert!(payload.len().is_multiple_of(self.block_bytes), "the payload is a whole number of blocks");
        assert_eq!(payload.len(), echo.len(), "as much comes back as was sent");
        let lost = NetError::lost("exchanging blocks");
        let (mut outward, mut inward) = (&self.stream, &self.stream);
        let start = Instant::now();
        thread::scope(|scope| {
            let send = move || outward.write_all(payload);
            let sender = thread::Builder::new().name("net-client".to_owned()).spawn_scoped(scope, send);
            let sender = sender
                .map_err(|cause| NetError::System { what: "start a thread for a connection", cause })?;
            let received = inward.read_exact(echo).map_err(&lost);
            if received.is_err() {
                // The sender must not wait for a server that is gone.
                let _ = inward.shutdown(Shutdown::Both);
            }
            let sent = sender.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            received.and(sent.map_err(&lost))
        })?;
        Ok(start.elapsed())
    }
}

/// Connects and makes a request that is agreed to.
fn open(address: SocketAddr, request: Request) -> Result<TcpStream, NetError> {
    let connect = |cause| NetError::Connect { address, cause };
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE).map_err(connect)?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(connect)?;
    stream.set_write_timeout(Some(PATIENCE)).map_err(connect)?;
    request.write(&mut stream)?;
    read_reply(&mut stream)?;
    Ok(stream)
}

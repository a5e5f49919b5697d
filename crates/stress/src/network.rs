//! Loads of the network: blocks that a server returns.

use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use warpforge_probes::net::{Echo, LocalServer, check, resolve};

use crate::error::StressError;
use crate::load::{Iteration, Load, Work};
use crate::pattern::Pattern;
use crate::settings::Settings;

/// Bytes of a block.
const BLOCK_BYTES: u32 = 64 << 10;

/// Payload of a connection in one iteration.
const PAYLOAD_BYTES: usize = 4 << 20;

/// Connections of the bidirectional load.
const CONNECTIONS: usize = 4;

/// How long a server is asked to answer one connection; a new one is opened well before.
const LEASE: Duration = Duration::from_secs(600);

pub(crate) fn loopback(_: &Settings) -> Result<Box<dyn Load>, StressError> {
    let server = LocalServer::start(None)?;
    Ok(Box::new(Exchange::new(server.address(), 1, Some(server))?))
}

pub(crate) fn point_to_point(settings: &Settings) -> Result<Box<dyn Load>, StressError> {
    let Some(target) = &settings.target else {
        let reason =
            "no --target HOST:PORT; run `warpt serve --listen 0.0.0.0:5210` on another host and name it";
        return Err(StressError::Missing(reason.to_owned()));
    };
    Ok(Box::new(Exchange::with(target, 1)?))
}

pub(crate) fn bidirectional(settings: &Settings) -> Result<Box<dyn Load>, StressError> {
    if let Some(target) = &settings.target {
        return Ok(Box::new(Exchange::with(target, CONNECTIONS)?));
    }
    let server = LocalServer::start(None)?;
    Ok(Box::new(Exchange::new(server.address(), CONNECTIONS, Some(server))?))
}

struct Exchange {
    connections: Vec<Connection>,
    address: SocketAddr,
    /// A server of our own lives as long as its connections.
    server: Option<LocalServer>,
}

struct Connection {
    echo: Echo,
    opened: Instant,
    number: usize,
    payload: Vec<u8>,
    returned: Vec<u8>,
}

impl Exchange {
    /// Connections to the server that was named.
    fn with(target: &str, count: usize) -> Result<Self, StressError> {
        let address = resolve(target).and_then(|addresses| check(&addresses));
        Self::new(address.map_err(StressError::Unreachable)?, count, None)
    }

    fn new(address: SocketAddr, count: usize, server: Option<LocalServer>) -> Result<Self, StressError> {
        let connections =
            (0..count).map(|number| Connection::open(address, number)).collect::<Result<_, _>>()?;
        Ok(Self { connections, address, server })
    }
}

impl Load for Exchange {
    fn iterate(&mut self, iteration: Iteration) -> Result<Work, StressError> {
        let address = self.address;
        let parts: Vec<Result<Work, StressError>> = thread::scope(|scope| {
            let run = |connection| scope.spawn(move || Connection::exchange(connection, address, iteration));
            let threads: Vec<_> = self.connections.iter_mut().map(run).collect();
            let joined = threads.into_iter().map(thread::ScopedJoinHandle::join);
            joined.map(|outcome| outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
        });
        let mut work = Work::default();
        for part in parts {
            work.add(part?);
        }
        Ok(work)
    }

    fn notes(&self) -> Vec<String> {
        let (count, address) = (self.connections.len(), self.address);
        let where_to = if self.server.is_some() { "a server in this process" } else { "another program" };
        let connections = if count == 1 { "connection" } else { "connections" };
        vec![format!("{count} {connections} to {address} ({where_to}); bytes are counted in both directions")]
    }
}

impl Connection {
    fn open(address: SocketAddr, number: usize) -> Result<Self, StressError> {
        Ok(Self {
            echo: Echo::open(address, BLOCK_BYTES, LEASE)?,
            opened: Instant::now(),
            number,
            payload: vec![0; PAYLOAD_BYTES],
            returned: vec![0; PAYLOAD_BYTES],
        })
    }

    fn exchange(&mut self, address: SocketAddr, iteration: Iteration) -> Result<Work, StressError> {
        if self.opened.elapsed() > LEASE / 2 {
            (self.echo, self.opened) = (Echo::open(address, BLOCK_BYTES, LEASE)?, Instant::now());
        }
        let pattern = Pattern::new((iteration.number << 8) | self.number as u64);
        pattern.fill(&mut self.payload, 0);
        self.echo.exchange(&self.payload, &mut self.returned)?;
        if iteration.falsify && self.number == 0 {
            self.returned[PAYLOAD_BYTES / 2] ^= 1;
        }
        let mut work = Work::of(2.0 * PAYLOAD_BYTES as f64 / 1e6);
        pattern.check(&mut work, "payload returned by the server", &self.returned, 0, |byte| {
            format!("connection {} to {address}, byte {byte} of {PAYLOAD_BYTES}", self.number)
        });
        Ok(work)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(target: Option<String>) -> Settings {
        Settings { target, ..Settings::new(Duration::ZERO) }
    }

    #[test]
    fn what_comes_back_is_checked() {
        let server = LocalServer::start(None).unwrap();
        let target = settings(Some(server.address().to_string()));
        for (prepare, settings) in [
            (loopback as fn(&Settings) -> Result<Box<dyn Load>, StressError>, &settings(None)),
            (bidirectional, &settings(None)),
            (bidirectional, &target),
            (point_to_point, &target),
        ] {
            let mut load = prepare(settings).unwrap();
            for number in 1..=3 {
                let work = load.iterate(Iteration { number, falsify: number == 2 }).unwrap();
                assert_eq!(work.errors, u64::from(number == 2), "{:?}", work.mismatches);
                for mismatch in &work.mismatches {
                    assert!(mismatch.location.contains("connection 0"), "{mismatch:?}");
                }
            }
        }
    }

    #[test]
    fn a_target_that_is_missing_or_absent_is_named() {
        let refusal = |target| point_to_point(&settings(target)).err().unwrap().to_string();
        assert!(refusal(None).contains("--target"));
        assert!(refusal(Some("not a host".to_owned())).contains("not a host"));
        // A port that was free a moment ago.
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        assert!(refusal(Some(format!("127.0.0.1:{port}"))).contains("warpt serve"));
    }
}

//! How ranks find each other: all call rank 0, which tells each where the next one listens.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs as _};
use std::time::{Duration, Instant};

use super::Meeting;
use crate::Error;

/// How long ranks wait for each other.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long a caller may take to say who it is.
const HELLO: Duration = Duration::from_secs(5);

const PAUSE: Duration = Duration::from_millis(10);

/// What every message begins with: a name and the version of the protocol.
const MAGIC: [u8; 5] = *b"WFPG\x01";

/// The connections of a rank.
pub(super) struct Links {
    pub(super) next: TcpStream,
    pub(super) previous: TcpStream,
    /// Of rank 0, one to each other rank; of another, the one to rank 0.
    pub(super) control: Vec<(usize, TcpStream)>,
}

/// A port of this machine that other ranks of this machine can call: for a parent that is rank 0 and starts the others.
///
/// # Errors
///
/// When there is none.
pub fn listen() -> std::io::Result<TcpListener> {
    TcpListener::bind(("127.0.0.1", 0))
}

/// Who calls, and where it listens for its neighbour.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Hello {
    size: u32,
    rank: u32,
    port: u16,
}

impl Hello {
    const BYTES: usize = MAGIC.len() + 10;

    fn send(self, stream: &mut TcpStream) -> std::io::Result<()> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&self.size.to_le_bytes());
        bytes.extend_from_slice(&self.rank.to_le_bytes());
        bytes.extend_from_slice(&self.port.to_le_bytes());
        stream.write_all(&bytes)
    }

    /// `None` where the caller is no rank.
    fn receive(stream: &mut TcpStream) -> Option<Self> {
        let mut bytes = [0; Self::BYTES];
        stream.set_read_timeout(Some(HELLO)).ok()?;
        stream.read_exact(&mut bytes).ok()?;
        stream.set_read_timeout(None).ok()?;
        let rest = bytes.strip_prefix(&MAGIC)?;
        Some(Self {
            size: u32::from_le_bytes(rest.get(..4)?.try_into().ok()?),
            rank: u32::from_le_bytes(rest.get(4..8)?.try_into().ok()?),
            port: u16::from_le_bytes(rest.get(8..10)?.try_into().ok()?),
        })
    }
}

/// Connects a rank with all that it talks to.
pub(super) fn meet(rank: usize, size: usize, meeting: Meeting) -> Result<Links, Error> {
    let address = format!("{}:{}", meeting.host, meeting.port);
    let wrong = |reason: String| Error::Rendezvous { rank, size, address: address.clone(), reason };
    let deadline = Instant::now() + PATIENCE;
    let joined = match rank {
        0 => host(size, meeting, deadline),
        _ => call(rank, size, &meeting, deadline),
    };
    let Joined { control, data, next } = joined.map_err(wrong)?;
    let failed = |error: std::io::Error| wrong(error.to_string());
    let mut to_next = TcpStream::connect_timeout(&next, PATIENCE).map_err(failed)?;
    Hello { size: size as u32, rank: rank as u32, port: 0 }.send(&mut to_next).map_err(failed)?;
    let before = (rank + size - 1) % size;
    let previous = loop {
        let mut stream = accept(&data, deadline).map_err(wrong)?;
        if Hello::receive(&mut stream).is_some_and(|hello| hello.rank as usize == before) {
            break stream;
        }
    };
    for stream in control.iter().map(|(_, stream)| stream).chain([&to_next, &previous]) {
        stream.set_nodelay(true).map_err(failed)?;
    }
    Ok(Links { next: to_next, previous, control })
}

/// What a rank knows when it has talked to rank 0.
struct Joined {
    control: Vec<(usize, TcpStream)>,
    /// Where it listens for the rank before it.
    data: TcpListener,
    /// Where the next rank listens.
    next: SocketAddr,
}

#[allow(clippy::needless_pass_by_value, reason = "what `map_err` takes")]
fn text(error: std::io::Error) -> String {
    error.to_string()
}

/// Rank 0: waits until all others have called.
fn host(size: usize, meeting: Meeting, deadline: Instant) -> Result<Joined, String> {
    let listener = match meeting.listener {
        Some(listener) => listener,
        None => TcpListener::bind((meeting.host.as_str(), meeting.port)).map_err(text)?,
    };
    let own = listener.local_addr().map_err(text)?.ip();
    let data = TcpListener::bind((own, 0)).map_err(text)?;
    let mut found: Vec<Option<(TcpStream, SocketAddr)>> = (1..size).map(|_| None).collect();
    while found.iter().any(Option::is_none) {
        let missing = || {
            let missing = found.iter().enumerate().filter(|(_, one)| one.is_none());
            missing.map(|(at, _)| (at + 1).to_string()).collect::<Vec<_>>().join(", ")
        };
        let mut stream =
            accept(&listener, deadline).map_err(|error| format!("{error}: no call of rank {}", missing()))?;
        // Whoever calls and is no rank is left alone.
        let Some(hello) = Hello::receive(&mut stream) else { continue };
        if hello.size as usize != size {
            return Err(format!("rank {} says that there are {} ranks, not {size}", hello.rank, hello.size));
        }
        let ip = stream.peer_addr().map_err(text)?.ip();
        match (hello.rank as usize).checked_sub(1).and_then(|at| found.get_mut(at)) {
            Some(place @ None) => *place = Some((stream, SocketAddr::new(ip, hello.port))),
            Some(Some(_)) => return Err(format!("two processes are rank {}", hello.rank)),
            None => return Err(format!("a process says that it is rank {} of {size}", hello.rank)),
        }
    }
    let mut control: Vec<(usize, TcpStream)> = Vec::new();
    let mut places = vec![SocketAddr::new(own, data.local_addr().map_err(text)?.port())];
    for (at, (stream, place)) in found.into_iter().flatten().enumerate() {
        control.push((at + 1, stream));
        places.push(place);
    }
    for (rank, stream) in &mut control {
        // Of rank 0 the others know the address: they called it.
        let next = places[(*rank + 1) % size];
        let shown = if (*rank + 1) % size == 0 { String::new() } else { next.ip().to_string() };
        let mut answer = MAGIC.to_vec();
        answer.extend_from_slice(&next.port().to_le_bytes());
        answer.push(shown.len() as u8);
        answer.extend_from_slice(shown.as_bytes());
        stream.write_all(&answer).map_err(|error| format!("rank {rank}: {error}"))?;
    }
    let next = places.get(1).copied().ok_or("there are no other ranks")?;
    Ok(Joined { control, data, next })
}

/// Any other rank: calls rank 0 until it answers.
fn call(rank: usize, size: usize, meeting: &Meeting, deadline: Instant) -> Result<Joined, String> {
    let mut stream = loop {
        let resolved = (meeting.host.as_str(), meeting.port).to_socket_addrs();
        let tried = resolved.and_then(|mut all| {
            let first = all.next().ok_or_else(|| std::io::Error::other("the host has no address"))?;
            TcpStream::connect_timeout(&first, Duration::from_secs(5))
        });
        match tried {
            Ok(stream) => break stream,
            Err(error) if Instant::now() > deadline => {
                return Err(format!("rank 0 does not answer: {error}"));
            }
            Err(_) => std::thread::sleep(PAUSE),
        }
    };
    let own = stream.local_addr().map_err(text)?.ip();
    let data = TcpListener::bind((own, 0)).map_err(text)?;
    let port = data.local_addr().map_err(text)?.port();
    Hello { size: size as u32, rank: rank as u32, port }.send(&mut stream).map_err(text)?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(text)?;
    let mut head = [0; MAGIC.len() + 3];
    let refused = |error: std::io::Error| format!("rank 0 does not let it in: {error}");
    stream.read_exact(&mut head).map_err(refused)?;
    stream.set_read_timeout(Some(HELLO)).map_err(text)?;
    let Some(&[low, high, length]) = head.strip_prefix(&MAGIC) else {
        return Err("what answers there is no rank 0 of this program and version".to_owned());
    };
    let mut shown = vec![0; usize::from(length)];
    stream.read_exact(&mut shown).map_err(refused)?;
    stream.set_read_timeout(None).map_err(text)?;
    let ip = match shown.is_empty() {
        true => stream.peer_addr().map_err(text)?.ip(),
        false => String::from_utf8_lossy(&shown)
            .parse::<IpAddr>()
            .map_err(|_| "rank 0 names no address of the next rank".to_owned())?,
    };
    let next = SocketAddr::new(ip, u16::from_le_bytes([low, high]));
    Ok(Joined { control: vec![(0, stream)], data, next })
}

/// Waits for a caller.
fn accept(listener: &TcpListener, deadline: Instant) -> Result<TcpStream, String> {
    listener.set_nonblocking(true).map_err(text)?;
    loop {
        match listener.accept() {
            Ok((stream, _)) => {
                stream.set_nonblocking(false).map_err(text)?;
                return Ok(stream);
            }
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error.to_string()),
        }
        if Instant::now() > deadline {
            return Err(format!("nobody called for {} s", PATIENCE.as_secs()));
        }
        std::thread::sleep(PAUSE);
    }
}

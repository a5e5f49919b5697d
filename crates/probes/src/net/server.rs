//! The server: accepts connections, checks what they ask for, and does it.

use std::fmt;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::net::sockopt::{Timeout, set_socket_timeout};

use super::NetError;
use super::flow;
use super::wire::{PATIENCE, Request, Service, Status, Summary, WORDS_FOR_STRANGERS, write_reply};
use crate::affinity;

/// Connections served at a time. It bounds threads and memory.
pub const MAX_CLIENTS: usize = 64;

/// How often the server looks whether it should stop.
const STOP_INTERVAL: Duration = Duration::from_millis(50);

/// A server that listens.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    cpu: Option<usize>,
}

/// What became of a connection.
#[derive(Debug)]
pub struct Served {
    /// Who it was.
    pub peer: SocketAddr,
    /// Payload received, payload sent and the time it took, or why it was not served.
    pub outcome: Result<Traffic, NetError>,
}

/// Payload that went over one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Traffic {
    /// From the client.
    pub received_bytes: u64,
    /// To the client.
    pub sent_bytes: u64,
    /// How long that took.
    pub time: Duration,
}

impl fmt::Display for Served {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.outcome {
            Ok(Traffic { received_bytes: 0, sent_bytes: 0, .. }) => {
                write!(f, "{}: looked whether the server answers", self.peer)
            }
            Ok(Traffic { received_bytes, sent_bytes, time }) => write!(
                f,
                "{}: received {received_bytes} bytes, sent {sent_bytes} bytes in {:.2} s",
                self.peer,
                time.as_secs_f64()
            ),
            Err(error) => write!(f, "{}: {error}", self.peer),
        }
    }
}

impl Server {
    /// Begins to listen. Port 0 lets the system choose one.
    ///
    /// # Errors
    /// If the address is in use, is not this machine's, or needs permission.
    pub fn bind(address: SocketAddr) -> Result<Self, NetError> {
        let failed = |cause| NetError::Listen { address, cause };
        let listener = TcpListener::bind(address).map_err(failed)?;
        // Linux applies the time-out for receiving to accepting too.
        set_socket_timeout(&listener, Timeout::Recv, Some(STOP_INTERVAL)).map_err(|e| failed(e.into()))?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self { listener, address, cpu: None })
    }

    /// The address it listens on, with the real port.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `stop` says so; `report` hears of every connection when it is over. What a client does wrong is
    /// told to it and reported, and the server goes on. Connections still open at the end are left to their threads.
    ///
    /// # Errors
    /// If the system does not let it accept connections any more.
    pub fn serve(
        &self,
        stop: &dyn Fn() -> bool,
        report: impl Fn(&Served) + Send + Sync + 'static,
    ) -> Result<(), NetError> {
        let clients = Arc::new(AtomicUsize::new(0));
        let report = Arc::new(report);
        while !stop() {
            let (stream, peer) = match self.listener.accept() {
                Ok(connection) => connection,
                Err(error) if is_passing(&error) => continue,
                Err(cause) => return Err(NetError::Listen { address: self.address, cause }),
            };
            let Some(seat) = Seat::take(&clients) else {
                report(&Served { peer, outcome: Err(turn_away(&stream)) });
                continue;
            };
            let (report, cpu) = (Arc::clone(&report), self.cpu);
            let spawned = thread::Builder::new().name("net-server".to_owned()).spawn(move || {
                if let Some(cpu) = cpu {
                    // Placement makes figures steadier; without it they are still figures.
                    let _ = affinity::pin_to(cpu);
                }
                let outcome = attend(&stream);
                drop((stream, seat));
                report(&Served { peer, outcome });
            });
            spawned.map_err(|cause| NetError::System { what: "start a thread for a client", cause })?;
        }
        Ok(())
    }
}

/// One of the places for clients, given back when dropped.
struct Seat(Arc<AtomicUsize>);

impl Seat {
    fn take(clients: &Arc<AtomicUsize>) -> Option<Self> {
        let taken = clients.fetch_update(Ordering::AcqRel, Ordering::Acquire, |count| {
            (count < MAX_CLIENTS).then_some(count + 1)
        });
        taken.is_ok().then(|| Self(Arc::clone(clients)))
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Whether accepting failed for a reason that passes: nobody came, they left again, or the system is short of
/// something, in which case a moment must pass.
fn is_passing(error: &std::io::Error) -> bool {
    use rustix::io::Errno;
    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted | ErrorKind::ConnectionAborted) {
        return true;
    }
    let scarce = [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM];
    let is_scarce = scarce.iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()));
    if is_scarce {
        thread::sleep(STOP_INTERVAL);
    }
    is_scarce
}

/// Tells a client that there are too many.
fn turn_away(mut stream: &TcpStream) -> NetError {
    let message = format!("{MAX_CLIENTS} clients are being served already; try again later");
    let _ = write_reply(&mut stream, Status::Busy, &message);
    linger(stream, STOP_INTERVAL);
    NetError::Refused { message }
}

/// Closes after the other side has had a chance to read the answer: closing with unread data would reset the
/// connection and take the message with it.
fn linger(mut stream: &TcpStream, time: Duration) {
    let _ = stream.shutdown(Shutdown::Write);
    let _ = stream.set_read_timeout(Some(time));
    let start = Instant::now();
    let mut ignored = [0; 4096];
    while start.elapsed() < time && matches!(stream.read(&mut ignored), Ok(1..)) {}
}

/// Reads the request of a connection and does what it asks for, or answers why not.
fn attend(mut stream: &TcpStream) -> Result<Traffic, NetError> {
    let setup = |cause| NetError::System { what: "set up a connection", cause };
    stream.set_read_timeout(Some(PATIENCE)).map_err(setup)?;
    stream.set_write_timeout(Some(PATIENCE)).map_err(setup)?;
    let request = match Request::read(&mut stream) {
        Ok(request) => request,
        Err(error) => {
            // They may be gone; then nobody needs an answer.
            let _ = match &error {
                NetError::Foreign { .. } => {
                    stream.write_all(WORDS_FOR_STRANGERS).map_err(NetError::lost("refusing"))
                }
                NetError::Version { .. } => {
                    write_reply(&mut stream, Status::OtherVersion, &error.to_string())
                }
                _ => write_reply(&mut stream, Status::BadRequest, &error.to_string()),
            };
            linger(stream, Duration::from_secs(1));
            return Err(error);
        }
    };
    write_reply(&mut stream, Status::Agreed, "")?;
    let block_bytes = request.block_bytes as usize;
    let moved = AtomicU64::new(0);
    match request.service {
        Service::Take => {
            let Summary { payload_bytes, time } = flow::receive(stream, block_bytes, request.time, &moved)?;
            let answer = Summary { payload_bytes, time }.to_bytes();
            stream.write_all(&answer).map_err(NetError::lost("sending the summary"))?;
            Ok(Traffic { received_bytes: payload_bytes, sent_bytes: 0, time })
        }
        Service::Send => {
            let Summary { payload_bytes, time } =
                flow::send(stream, block_bytes, request.time, &|| false, &moved)?;
            Ok(Traffic { received_bytes: 0, sent_bytes: payload_bytes, time })
        }
        Service::Return => return_blocks(stream, block_bytes, request.time),
    }
}

/// Returns block after block until the client closes its direction.
fn return_blocks(mut stream: &TcpStream, block_bytes: usize, time: Duration) -> Result<Traffic, NetError> {
    let lost = NetError::lost("returning blocks");
    stream.set_nodelay(true).map_err(&lost)?;
    let mut block = vec![0; block_bytes];
    let start = Instant::now();
    let mut returned = 0;
    while start.elapsed() < time + PATIENCE {
        // A block may arrive in parts, but the end comes only between two of them.
        let first = match stream.read(&mut block) {
            Ok(0) => {
                return Ok(Traffic { received_bytes: returned, sent_bytes: returned, time: start.elapsed() });
            }
            outcome => outcome.map_err(&lost)?,
        };
        stream.read_exact(&mut block[first..]).map_err(&lost)?;
        stream.write_all(&block).map_err(&lost)?;
        returned += block_bytes as u64;
    }
    Err(NetError::BadRequest { reason: "blocks kept coming after the time agreed upon".to_owned() })
}

/// A server on this machine's loopback, in threads of this process, for as long as this value lives.
#[derive(Debug)]
pub struct LocalServer {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl LocalServer {
    /// Starts one on a port that the system chooses; its connections run on the given processor.
    ///
    /// # Errors
    /// If there is no loopback, or a thread cannot be started.
    pub fn start(cpu: Option<usize>) -> Result<Self, NetError> {
        let server = Server { cpu, ..Server::bind((Ipv4Addr::LOCALHOST, 0).into())? };
        let (address, stop) = (server.address(), Arc::new(AtomicBool::new(false)));
        let asked = Arc::clone(&stop);
        let thread = thread::Builder::new()
            .name("net-accept".to_owned())
            // Should it fail, the client finds nobody and says so.
            .spawn(move || drop(server.serve(&|| asked.load(Ordering::Acquire), |_| {})))
            .map_err(|cause| NetError::System { what: "start a thread for the server", cause })?;
        Ok(Self { address, stop, thread: Some(thread) })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for LocalServer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            // There is nobody to tell if it panicked.
            let _ = thread.join();
        }
    }
}

//! Client and server together, and clients that violate the protocol.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use super::*;

const SHORT: Duration = Duration::from_millis(60);

/// A server that reports what it served, until it is dropped.
struct Watched {
    address: SocketAddr,
    served: Receiver<Result<Traffic, String>>,
    stop: Arc<AtomicBool>,
}

impl Watched {
    fn start() -> Self {
        let server = Server::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let (address, stop) = (server.address(), Arc::new(AtomicBool::new(false)));
        let (report, served) = channel();
        let asked = Arc::clone(&stop);
        thread::spawn(move || {
            let tell = move |served: &Served| {
                let outcome = served.outcome.as_ref().map(|traffic| *traffic).map_err(ToString::to_string);
                let _ = report.send(outcome);
            };
            server.serve(&|| asked.load(Ordering::Acquire), tell)
        });
        Self { address, served, stop }
    }

    /// What became of the next connection.
    fn next(&self) -> Result<Traffic, String> {
        self.served.recv_timeout(Duration::from_secs(20)).unwrap()
    }

    /// Sends bytes, closes that direction, and returns all that comes back.
    fn say(&self, bytes: &[u8]) -> Vec<u8> {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.write_all(bytes).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        answer
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
    }
}

fn load(direction: Direction, streams: usize) -> Load {
    Load { direction, streams, block_bytes: 5000, cpu: None }
}

#[test]
fn both_sides_count_the_same_in_every_direction() {
    let server = Watched::start();
    for (direction, streams) in [(Direction::Send, 1), (Direction::Receive, 3), (Direction::Both, 2)] {
        // The client compares the counts itself and fails if they differ.
        let rates = measure_throughput(server.address, &load(direction, streams), SHORT, &|| false).unwrap();
        assert!(!rates.is_empty() && rates.iter().all(|rate| rate.is_finite()), "{rates:?}");
        let (mut received, mut sent) = (0, 0);
        for _ in 0..streams * if direction == Direction::Both { 2 } else { 1 } {
            let traffic = server.next().unwrap();
            received += traffic.received_bytes;
            sent += traffic.sent_bytes;
        }
        assert_eq!(received > 0, direction != Direction::Receive, "{direction:?}");
        assert_eq!(sent > 0, direction != Direction::Send, "{direction:?}");
        assert_eq!((received % 5000, sent % 5000), (0, 0));
    }
}

#[test]
fn round_trips_are_counted_and_come_back_unchanged() {
    let server = Watched::start();
    let latencies = measure_round_trips(server.address, SHORT, None, &|| false).unwrap();
    let traffic = server.next().unwrap();
    assert!(latencies.count() > 0 && traffic.received_bytes >= latencies.count() * 64);
    assert_eq!(traffic.received_bytes, traffic.sent_bytes);
}

#[test]
fn strangers_are_told_and_the_server_goes_on() {
    let server = Watched::start();
    let answer = server.say(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n");
    assert!(answer.starts_with(b"HTTP/1.0 400 Bad Request") && answer.ends_with(b"talk to it.\r\n"));
    assert!(server.next().unwrap_err().contains("begins with \"GET"));

    let answer = server.say(b"warptnet\x00\x02future request");
    assert_eq!(answer[..12], *b"warptnet\x00\x01\x00\x01");
    assert!(server.next().unwrap_err().contains("version 2"));

    let huge = b"warptnet\x00\x01\x01\x00\xff\xff\xff\xff\x00\x00\x00\x01\x00\x00\x00\x00";
    assert_eq!(server.say(huge)[10..12], [0, 2]);
    assert!(server.next().unwrap_err().contains("blocks of 4294967295 bytes"));

    for cut_short in [&b""[..], b"warpt", &huge[..20]] {
        server.say(cut_short);
        assert!(server.next().unwrap_err().contains("went away while reading the request"));
    }
    assert_eq!(check(&[server.address]).unwrap(), server.address);
    assert!(server.next().is_ok());
}

#[test]
fn a_sender_that_leaves_in_the_middle_is_noticed() {
    let server = Watched::start();
    let mut stream = TcpStream::connect(server.address).unwrap();
    wire::Request { service: wire::Service::Take, block_bytes: 100, time: SHORT }.write(&mut stream).unwrap();
    wire::read_reply(&mut stream).unwrap();
    stream.write_all(&[7; 150]).unwrap();
    drop(stream);
    assert!(server.next().unwrap_err().contains("went away while receiving data"));
}

#[test]
fn a_wrong_count_is_noticed() {
    let server = Watched::start();
    let mut stream = TcpStream::connect(server.address).unwrap();
    wire::Request { service: wire::Service::Take, block_bytes: 100, time: SHORT }.write(&mut stream).unwrap();
    wire::read_reply(&mut stream).unwrap();
    stream.write_all(&[7; 100]).unwrap();
    stream.write_all(&wire::Summary { payload_bytes: 101, time: SHORT }.to_bytes()).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(server.next().unwrap_err(), "101 bytes were sent but 100 arrived");
}

#[test]
fn a_silent_server_is_an_error_and_not_a_hang() {
    // It accepts connections, as the system does for it, and never answers.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let error = check(&[listener.local_addr().unwrap()]).unwrap_err();
    assert!(matches!(error, NetError::Lost { .. }), "{error}");
    assert!(error.to_string().contains("nothing moved for 5 s"), "{error}");
}

#[test]
fn another_kind_of_server_is_recognised() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let other = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.read_exact(&mut [0; 24]).unwrap();
        stream.write_all(b"SSH-2.0-OpenSSH_9.9\r\n").unwrap();
    });
    let error = check(&[address]).unwrap_err();
    assert!(matches!(error, NetError::Foreign { .. }), "{error}");
    other.join().unwrap();
}

#[test]
fn nobody_there_and_a_port_in_use_are_named() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let error = Server::bind(address).unwrap_err();
    assert!(matches!(error, NetError::Listen { .. }) && error.to_string().contains(&address.to_string()));
    drop(listener);
    let error = check(&[address]).unwrap_err();
    assert!(
        matches!(error, NetError::Connect { .. }) && error.to_string().contains("warpt serve"),
        "{error}"
    );
}

#[test]
fn more_clients_than_seats_are_turned_away() {
    let server = Watched::start();
    let waiting: Vec<_> = (0..MAX_CLIENTS).map(|_| TcpStream::connect(server.address).unwrap()).collect();
    let error = check(&[server.address]).unwrap_err();
    assert!(matches!(&error, NetError::Refused { message } if message.contains("64 clients")), "{error}");
    drop(waiting);
    // The refused one was told first, then those that left without a word.
    for _ in 0..=MAX_CLIENTS {
        assert!(server.next().is_err());
    }
    assert_eq!(check(&[server.address]).unwrap(), server.address);
}

#[test]
fn a_stopped_measurement_ends_and_the_server_goes_on() {
    let server = LocalServer::start(None).unwrap();
    for direction in Direction::ALL {
        let rates =
            measure_throughput(server.address(), &load(direction, 1), Duration::from_secs(3000), &|| true);
        assert!(rates.unwrap().is_empty());
    }
    let none = measure_round_trips(server.address(), Duration::from_secs(3000), None, &|| true).unwrap();
    assert_eq!(none.percentile(0.5), None);
    assert!(check(&[server.address()]).is_ok());
}

#[test]
fn blocks_come_back_as_they_went() {
    let server = LocalServer::start(None).unwrap();
    let mut echo = Echo::open(server.address(), 4096, Duration::from_secs(60)).unwrap();
    // More than the buffers of the sockets hold: sending must not wait until all has been read.
    let mut payload = vec![0; 16 << 20];
    fastrand::Rng::with_seed(7).fill(&mut payload);
    let mut back = vec![0; payload.len()];
    for _ in 0..2 {
        back.fill(0);
        echo.exchange(&payload, &mut back).unwrap();
        assert!(back == payload, "something changed on the way");
    }
    assert!(Echo::open(server.address(), 0, Duration::ZERO).is_err(), "no blocks of zero bytes");
}

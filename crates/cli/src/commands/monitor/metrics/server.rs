//! The server behind `--listen`. It has its own threads and never makes the sampler wait.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use warpforge_inventory::live::TimelineRecord;

use super::http::Request;
use super::text;
use crate::place::Place;

/// What clients may ask of the server.
#[derive(Debug, Clone, Copy)]
struct Limits {
    /// A client has this long to ask, this long to take the answer, and this long to close.
    patience: Duration,
    /// More clients at a time than this are told to come again, as many again; those beyond are dropped.
    clients: usize,
}

const LIMITS: Limits = Limits { patience: Duration::from_secs(3), clients: 16 };

/// The newest record; none before the first sample.
type Latest = Arc<Mutex<Option<Arc<TimelineRecord>>>>;

/// Bound sockets that answer until the program ends.
#[derive(Debug)]
pub(crate) struct Endpoint {
    place: Place,
    latest: Latest,
}

/// The sampler's end.
pub(crate) struct Publisher(Latest);

impl Endpoint {
    /// Binds every address of the place and starts to answer.
    pub(crate) fn bind(place: &Place) -> anyhow::Result<Self> {
        Self::bind_within(place, LIMITS)
    }

    fn bind_within(place: &Place, limits: Limits) -> anyhow::Result<Self> {
        let addresses = place.addresses().with_context(|| format!("cannot listen on {place}"))?;
        let mut listeners: Vec<TcpListener> = Vec::new();
        let mut refused = None;
        let mut port = place.port();
        for address in addresses {
            // A port that the system chose for the first address is that of all.
            match TcpListener::bind(SocketAddr::new(address.ip(), port)) {
                Ok(listener) => {
                    port = listener.local_addr().context("cannot tell the address listened on")?.port();
                    listeners.push(listener);
                }
                Err(error) => refused = Some(error),
            }
        }
        if listeners.is_empty() {
            let advice = match refused.as_ref().map(io::Error::kind) {
                Some(io::ErrorKind::AddrInUse) => "; choose another port",
                Some(io::ErrorKind::PermissionDenied) => "; choose a port above 1023",
                Some(io::ErrorKind::AddrNotAvailable) => "; it is no address of this machine",
                _ => "",
            };
            let reason = refused.map_or_else(|| "it has no address".to_owned(), |error| error.to_string());
            anyhow::bail!("cannot listen on {place}: {reason}{advice}");
        }
        let (latest, clients) = (Latest::default(), Arc::new(AtomicUsize::new(0)));
        for listener in listeners {
            let (latest, clients) = (Arc::clone(&latest), Arc::clone(&clients));
            thread::Builder::new()
                .name("warpt-metrics".to_owned())
                .spawn(move || serve(&listener, &latest, &clients, limits))
                .context("cannot start the metrics server")?;
        }
        Ok(Self { place: place.with_port(port), latest })
    }

    /// Where the metrics are.
    pub(crate) fn url(&self) -> String {
        format!("http://{}/metrics", self.place)
    }

    pub(crate) fn publisher(&self) -> Publisher {
        Publisher(Arc::clone(&self.latest))
    }
}

impl Publisher {
    /// Makes this record the one that is handed out.
    pub(crate) fn publish(&self, record: &TimelineRecord) {
        let record = Some(Arc::new(record.clone()));
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = record;
    }
}

fn serve(listener: &TcpListener, latest: &Latest, clients: &Arc<AtomicUsize>, limits: Limits) {
    for stream in listener.incoming() {
        // An error here is the client's, or a shortage of file descriptors that needs a moment to pass.
        let Ok(stream) = stream else {
            thread::sleep(Duration::from_millis(50));
            continue;
        };
        let counted = Counted(Arc::clone(clients));
        let others = clients.fetch_add(1, Ordering::SeqCst);
        if others >= 2 * limits.clients {
            continue;
        }
        let latest = Arc::clone(latest);
        let client = move || {
            let _counted = counted;
            let client = Client { stream, patience: limits.patience, deadline: Instant::now() };
            if let Err(error) = answer(client, &latest, others >= limits.clients) {
                tracing::debug!("a metrics client was not answered: {error}");
            }
        };
        let _ = thread::Builder::new().name("warpt-metrics-client".to_owned()).spawn(client);
    }
}

/// Gives a client's place free, also if its thread could not be started.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A connection that fails when its time is over, however many bytes came until then.
struct Client {
    stream: TcpStream,
    patience: Duration,
    deadline: Instant,
}

impl Client {
    /// Starts the time of the next step.
    fn begin(&mut self) {
        self.deadline = Instant::now() + self.patience;
    }

    fn left(&self) -> io::Result<Duration> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
    }
}

impl Read for Client {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(Some(self.left()?))?;
        self.stream.read(into)
    }
}

impl Write for Client {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(Some(self.left()?))?;
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

fn answer(mut client: Client, latest: &Latest, is_full: bool) -> io::Result<()> {
    client.begin();
    let request = Request::read(&mut client)?;
    let request = if is_full { Request::Full } else { request };
    let record = latest.lock().unwrap_or_else(PoisonError::into_inner).clone();
    client.begin();
    client.write_all(&request.answer(|form| text::render(record.as_deref(), form)))?;
    client.stream.shutdown(Shutdown::Write)?;
    // Closing with unread bytes would reset the connection and could take the answer back from the client.
    let mut rest = [0; 1024];
    client.begin();
    while client.read(&mut rest)? > 0 {}
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Patience that no test waits for.
    const PATIENT: Limits = Limits { patience: Duration::from_secs(600), clients: 4 };

    fn endpoint(limits: Limits) -> Endpoint {
        Endpoint::bind_within(&"localhost:0".parse().unwrap(), limits).unwrap()
    }

    fn connect(endpoint: &Endpoint) -> TcpStream {
        TcpStream::connect(&endpoint.place.addresses().unwrap()[..]).unwrap()
    }

    fn ask(endpoint: &Endpoint, request: &[u8]) -> String {
        let mut stream = connect(endpoint);
        stream.write_all(request).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn it_hands_out_the_newest_record() {
        let endpoint = endpoint(PATIENT);
        let request = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
        assert!(!ask(&endpoint, request).contains("warpt_cpu_utilization_ratio"));
        let record = TimelineRecord { cpu_utilization_percent: Some(25.0), ..TimelineRecord::default() };
        endpoint.publisher().publish(&record);
        assert!(ask(&endpoint, request).contains("\nwarpt_cpu_utilization_ratio 0.25\n"));
        assert!(ask(&endpoint, b"DELETE / HTTP/1.1\r\nHost: x\r\n\r\n").starts_with("HTTP/1.1 404 "));
    }

    #[test]
    fn when_it_is_full_it_says_so() {
        let endpoint = endpoint(PATIENT);
        let idle: Vec<TcpStream> = (0..PATIENT.clients).map(|_| connect(&endpoint)).collect();
        let answer = ask(&endpoint, b"GET /metrics HTTP/1.0\r\n\r\n");
        assert!(answer.starts_with("HTTP/1.1 503 ") && answer.contains("Retry-After: 1\r\n"), "{answer}");
        drop(idle);
    }

    #[test]
    fn a_client_that_does_nothing_is_dropped() {
        let endpoint = endpoint(Limits { patience: Duration::from_millis(10), clients: 1 });
        let mut idle = connect(&endpoint);
        let mut answer = Vec::new();
        // This returns when the server closes the connection.
        let _ = idle.read_to_end(&mut answer);
        assert_eq!(answer, b"");
    }

    #[test]
    fn an_idle_client_does_not_keep_others_waiting() {
        let endpoint = endpoint(PATIENT);
        let _idle = connect(&endpoint);
        let answer = ask(&endpoint, b"GET /metrics HTTP/1.0\r\n\r\n");
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    }

    #[test]
    fn a_port_in_use_names_the_place() {
        let endpoint = endpoint(PATIENT);
        let error = Endpoint::bind(&endpoint.place).unwrap_err().to_string();
        assert!(error.contains(&endpoint.place.to_string()), "{error}");
        assert!(error.contains("choose another port"), "{error}");
    }
}

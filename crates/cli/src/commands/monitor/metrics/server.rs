//! The server behind `--listen`. It has its own threads and never makes the sampler wait.

use std::io::{self, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use warpforge_inventory::live::TimelineRecord;

use super::http::Request;
use super::text;

/// A client has this long to ask, and this long to take the answer.
const PATIENCE: Duration = Duration::from_secs(3);

/// More clients at a time than this are turned away.
const MOST_CLIENTS: usize = 16;

/// The newest record; none before the first sample.
type Latest = Arc<Mutex<Option<Arc<TimelineRecord>>>>;

/// A bound socket that answers until the program ends.
#[derive(Debug)]
pub(crate) struct Endpoint {
    address: SocketAddr,
    latest: Latest,
}

/// The sampler's end.
pub(crate) struct Publisher(Latest);

impl Endpoint {
    /// Binds the address and starts to answer.
    pub(crate) fn bind(address: SocketAddr) -> anyhow::Result<Self> {
        let listener = TcpListener::bind(address).map_err(|error| {
            let advice = match error.kind() {
                io::ErrorKind::AddrInUse => "; choose another port",
                io::ErrorKind::PermissionDenied => "; choose a port above 1023",
                io::ErrorKind::AddrNotAvailable => "; it is no address of this machine",
                _ => "",
            };
            anyhow::anyhow!("cannot listen on {address}: {error}{advice}")
        })?;
        let address = listener.local_addr().context("cannot tell the address listened on")?;
        let latest = Latest::default();
        let shared = Arc::clone(&latest);
        thread::Builder::new()
            .name("warpt-metrics".to_owned())
            .spawn(move || serve(&listener, &shared))
            .context("cannot start the metrics server")?;
        Ok(Self { address, latest })
    }

    /// Where the metrics are.
    pub(crate) fn url(&self) -> String {
        format!("http://{}/metrics", self.address)
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

fn serve(listener: &TcpListener, latest: &Latest) {
    let clients = Arc::new(AtomicUsize::new(0));
    for stream in listener.incoming() {
        // An error here is the client's, or a shortage of file descriptors that needs a moment to pass.
        let Ok(stream) = stream else {
            thread::sleep(Duration::from_millis(50));
            continue;
        };
        if clients.fetch_add(1, Ordering::SeqCst) >= MOST_CLIENTS {
            clients.fetch_sub(1, Ordering::SeqCst);
            continue;
        }
        let (latest, counted) = (Arc::clone(latest), Counted(Arc::clone(&clients)));
        let client = move || {
            let _counted = counted;
            if let Err(error) = answer(stream, &latest) {
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

fn answer(mut stream: TcpStream, latest: &Latest) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let request = Request::read(&mut stream, Instant::now() + PATIENCE)?;
    let record = latest.lock().unwrap_or_else(PoisonError::into_inner).clone();
    stream.write_all(&request.answer(|| text::render(record.as_deref())))?;
    stream.shutdown(Shutdown::Write)?;
    // Closing with unread bytes would reset the connection and could take the answer back from the client.
    let mut rest = [0; 1024];
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline && io::Read::read(&mut stream, &mut rest)? > 0 {}
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    fn ask(endpoint: &Endpoint, request: &[u8]) -> String {
        let mut stream = TcpStream::connect(endpoint.address).unwrap();
        stream.write_all(request).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn it_hands_out_the_newest_record() {
        let endpoint = Endpoint::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let request = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
        assert!(!ask(&endpoint, request).contains("warpt_cpu_utilization_ratio"));
        let record = TimelineRecord { cpu_utilization_percent: Some(25.0), ..TimelineRecord::default() };
        endpoint.publisher().publish(&record);
        assert!(ask(&endpoint, request).contains("\nwarpt_cpu_utilization_ratio 0.25\n"));
        assert!(ask(&endpoint, b"DELETE / HTTP/1.1\r\nHost: x\r\n\r\n").starts_with("HTTP/1.1 404 "));
    }

    #[test]
    fn an_idle_client_does_not_keep_others_waiting() {
        let endpoint = Endpoint::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let _idle = TcpStream::connect(endpoint.address).unwrap();
        let answer = ask(&endpoint, b"GET /metrics HTTP/1.0\r\n\r\n");
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    }

    #[test]
    fn a_port_in_use_names_the_address() {
        let endpoint = Endpoint::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let error = Endpoint::bind(endpoint.address).unwrap_err().to_string();
        assert!(
            error.contains(&endpoint.address.to_string()) && error.contains("choose another port"),
            "{error}"
        );
    }
}

//! `warpt monitor --listen`, asked as scrapers do.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Stdio};

use crate::warpt::Warpt;

/// A monitor that serves metrics, and where. It ends with the test.
pub(crate) struct Served {
    child: Child,
    address: String,
}

impl Served {
    /// Starts one that listens there.
    pub(crate) fn at(warpt: &Warpt, place: &str) -> Self {
        let arguments = ["monitor", "--json", "--interval", "0.1", "--listen", place];
        let mut command = warpt.command(&arguments);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.split_once("http://").and_then(|(_, rest)| rest.split_once('/'));
        let address = address.unwrap_or_else(|| panic!("no address in {line:?}")).0.to_owned();
        Self { child, address }
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    pub(crate) fn ask(&self, path: &str, accept: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nAccept: {accept}\r\nConnection: close\r\n\r\n")
            .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// The metrics with a sample, for which one may have to ask again.
    pub(crate) fn metrics(&self, accept: &str) -> String {
        loop {
            let answer = self.ask("/metrics", accept);
            assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
            if answer.contains("warpt_sample_timestamp_seconds") {
                return answer;
            }
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

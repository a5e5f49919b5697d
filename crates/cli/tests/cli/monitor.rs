//! `warpt monitor` without a terminal, and its endpoint.

use std::io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;

use crate::served::Served;
use crate::warpt::Warpt;

#[test]
fn json_is_one_object_a_line_until_nobody_reads() {
    let warpt = Warpt::new();
    let mut command = warpt.command(&["monitor", "--json", "--interval", "0.1"]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().take(3);
    let records: Vec<Value> = lines.map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(records.len(), 3);
    for record in &records {
        assert!(record["total_memory_bytes"].as_u64() > Some(0));
        assert!(record["gpu_usage"].is_array());
    }
    let times: Vec<_> = records.iter().map(|record| record["timestamp"].as_str().unwrap()).collect();
    assert!(times.is_sorted());
}

#[test]
fn a_duration_ends_with_a_record() {
    let done = Warpt::new().run(&["monitor", "--json", "--interval", "10", "--duration", "0.1"]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert_eq!(done.stdout.lines().count(), 1, "{}", done.stdout);
}

#[test]
fn without_a_terminal_there_are_lines_for_people() {
    let done = Warpt::new().run(&["monitor", "--interval", "0.1", "--duration", "0.3"]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert!(!done.stdout.contains('\u{1b}') && done.stdout.lines().count() >= 2, "{}", done.stdout);
}

#[test]
fn the_endpoint_speaks_what_the_client_accepts() {
    let warpt = Warpt::new();
    let served = Served::at(&warpt, "127.0.0.1:0");
    let open = served.metrics("application/openmetrics-text;version=1.0.0,text/plain;q=0.5");
    assert!(open.contains("Content-Type: application/openmetrics-text; version=1.0.0"), "{open}");
    assert!(open.contains("# UNIT warpt_") && open.ends_with("# EOF\n"), "{open}");
    for accept in ["*/*", "text/plain", "text/html, application/xml;q=0.9"] {
        let text = served.metrics(accept);
        assert!(text.contains("Content-Type: text/plain; version=0.0.4"), "{text}");
        assert!(!text.contains("# UNIT") && !text.contains("# EOF"), "{text}");
        assert!(text.contains("# TYPE warpt_build_info gauge\n"), "{text}");
    }
    let other = served.ask("/nothing", "*/*");
    assert!(other.starts_with("HTTP/1.1 404"), "{other}");
}

#[test]
fn the_endpoint_takes_names() {
    let warpt = Warpt::new();
    let served = Served::at(&warpt, "localhost:0");
    assert!(served.address().starts_with("localhost:"), "{}", served.address());
    served.metrics("*/*");
    let unknown = warpt.run(&["monitor", "--json", "--listen", "no.such.host.invalid:9188"]);
    assert_eq!((unknown.code, unknown.stdout.as_str()), (3, ""));
    assert!(unknown.stderr.contains("no.such.host.invalid:9188"), "{}", unknown.stderr);
    let wrong = warpt.run(&["monitor", "--json", "--listen", "9188"]);
    assert_eq!(wrong.code, 2);
    assert!(wrong.stderr.contains("expected HOST:PORT, such as localhost:9188"), "{}", wrong.stderr);
}

#[test]
fn a_full_endpoint_says_so_and_a_silent_client_is_dropped() {
    let warpt = Warpt::new();
    let served = Served::at(&warpt, "127.0.0.1:0");
    // Clients that say nothing for three seconds are dropped: on a busy machine they may be before all have come.
    let full = (0..20).any(|_| {
        let silent: Vec<TcpStream> = (0..16).map(|_| TcpStream::connect(served.address()).unwrap()).collect();
        let answer = served.ask("/metrics", "*/*");
        drop(silent);
        answer.starts_with("HTTP/1.1 503 ") && answer.contains("Retry-After: 1\r\n")
    });
    assert!(full, "sixteen clients were not enough");
    // The places are free again.
    assert!((0..1000).any(|_| served.ask("/metrics", "*/*").starts_with("HTTP/1.1 200 ")));

    let mut slow = TcpStream::connect(served.address()).unwrap();
    slow.write_all(b"GET /metrics HTTP/1.1\r\nHost:").unwrap();
    slow.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
    let mut answer = Vec::new();
    let ended = slow.read_to_end(&mut answer);
    let waited = ended.as_ref().is_err_and(|error| error.kind() == ErrorKind::WouldBlock);
    assert!(!waited && answer.is_empty(), "{ended:?}: {}", String::from_utf8_lossy(&answer));

    // One that goes on sending, a byte now and then, has no longer than one that says nothing.
    let mut slow = TcpStream::connect(served.address()).unwrap();
    slow.write_all(b"GET /metrics HTTP/1.1\r\nHost: ").unwrap();
    let dropped = (0..1200).any(|_| {
        std::thread::sleep(Duration::from_millis(100));
        slow.write_all(b"x").is_err()
    });
    assert!(dropped, "a client that never ends its request was not dropped");
    assert!(served.ask("/metrics", "*/*").starts_with("HTTP/1.1 200 "));
}

#[test]
fn a_server_of_the_network_benchmark_takes_names() {
    let warpt = Warpt::new();
    let mut command = warpt.command(&["serve", "--listen", "localhost:0"]);
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(line.starts_with("listening on 127.0.0.1:") || line.starts_with("listening on [::1]:"), "{line}");
    let unknown = warpt.run(&["serve", "--listen", "no.such.host.invalid:5210"]);
    assert_eq!(unknown.code, 3, "{}", unknown.stderr);
    assert!(unknown.stderr.contains("no.such.host.invalid:5210"), "{}", unknown.stderr);
    assert_eq!(warpt.run(&["serve", "--listen", "5210"]).code, 2);
}

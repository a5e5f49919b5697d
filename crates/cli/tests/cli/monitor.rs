//! `warpt monitor` without a terminal, and its endpoint.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::Stdio;

use serde_json::Value;

use crate::warpt::Warpt;

#[test]
fn json_is_one_object_a_line_until_the_duration_is_over() {
    let done = Warpt::new().run(&["monitor", "--json", "--interval", "0.1", "--duration", "0.5"]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    let records: Vec<Value> = done.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(records.len() >= 2, "{}", done.stdout);
    for record in &records {
        assert!(record["total_memory_bytes"].as_u64() > Some(0));
        assert!(record["gpu_usage"].is_array());
    }
    let times: Vec<_> = records.iter().map(|record| record["timestamp"].as_str().unwrap()).collect();
    assert!(times.is_sorted());
}

#[test]
fn without_a_terminal_there_are_lines_for_people() {
    let done = Warpt::new().run(&["monitor", "--interval", "0.1", "--duration", "0.3"]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert!(!done.stdout.contains('\u{1b}') && done.stdout.lines().count() >= 2, "{}", done.stdout);
}

#[test]
fn the_endpoint_speaks_openmetrics() {
    let warpt = Warpt::new();
    let arguments = ["monitor", "--json", "--interval", "0.1", "--listen", "127.0.0.1:0", "--duration", "60"];
    let mut command = warpt.command(&arguments);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
    let start = line.find("127.0.0.1:").unwrap_or_else(|| panic!("no address in {line:?}"));
    let address: String =
        line[start..].chars().take_while(|c| c.is_ascii_digit() || ['.', ':'].contains(c)).collect();

    let ask = |path: &str| {
        let mut stream = TcpStream::connect(&address).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let metrics = ask("/metrics");
    let other = ask("/nothing");
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(metrics.starts_with("HTTP/1.1 200"), "{metrics}");
    assert!(
        metrics.to_lowercase().contains("content-type: application/openmetrics-text; version=1.0.0"),
        "{metrics}"
    );
    assert!(metrics.contains("# TYPE warpt_") && metrics.ends_with("# EOF\n"), "{metrics}");
    assert!(other.starts_with("HTTP/1.1 404"), "{other}");
}

//! Prometheus' own tool reads the metrics.

use std::io::Write as _;
use std::process::{Command, Stdio};

use libtest_mimic::Trial;

use crate::served::Served;
use crate::trial;
use crate::warpt::Warpt;

const TOOL: &str = "promtool";

/// Why there is nothing to test with.
pub(crate) fn missing() -> Option<String> {
    let error = Command::new(TOOL).arg("--version").output().err()?;
    Some(format!("there is no {TOOL} ({error}); the Debian package `prometheus` has it"))
}

pub(crate) fn trials() -> Vec<Trial> {
    vec![trial("prometheus_has_nothing_to_say_against_the_metrics", metrics)]
}

fn metrics() {
    let warpt = Warpt::new();
    let answer = Served::at(&warpt, "localhost:0").metrics("*/*");
    let (_, metrics) = answer.split_once("\r\n\r\n").unwrap();
    let mut tool = Command::new(TOOL);
    tool.args(["check", "metrics"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut tool = tool.spawn().unwrap();
    tool.stdin.take().unwrap().write_all(metrics.as_bytes()).unwrap();
    let done = tool.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&[done.stdout, done.stderr].concat()).into_owned();
    assert!(done.status.success() && said.is_empty(), "{said}\n{metrics}");
}

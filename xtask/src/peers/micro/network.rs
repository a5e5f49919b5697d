//! `net_bandwidth` beside iperf3, both over loopback.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use serde_json::Value;

use super::{Stage, find};
use crate::command::output;
use crate::peers::table::{Bound, Contest, Figures, Row};
use crate::peers::tools;

const SECONDS: &str = "4";

/// One TCP stream, one way.
pub(super) fn hold(stage: &Stage) -> anyhow::Result<Vec<Row>> {
    tools::require("iperf3", "iperf3")?;
    let theirs = || Ok(Figures::from([("loopback, one way".to_owned(), iperf3()?)]));
    let ours = || {
        let metrics = stage.measure("net_bandwidth", 12.0, &[])?;
        let rate = find(&metrics, "throughput", &[("direction", "send")])?;
        Ok(Figures::from([("loopback, one way".to_owned(), rate)]))
    };
    let contest = Contest {
        name: "net_bandwidth",
        peer: "iperf3",
        unit: "Gbit/s",
        bound: Bound::AtLeast(0.9),
        theirs: &theirs,
        ours: &ours,
    };
    contest.hold(stage.alternations)
}

/// Ends the server when the measurement is over, whatever came of it.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn iperf3() -> anyhow::Result<f64> {
    // A port that was free a moment ago: iperf3 cannot choose one itself.
    let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port().to_string();
    let mut command = Command::new("iperf3");
    command.args(["--server", "--one-off", "--bind", "127.0.0.1", "--port", &port]).stdout(Stdio::null());
    let _server = Server(command.spawn().context("cannot start iperf3")?);
    let client = ["--client", "127.0.0.1", "--port", &port, "--time", SECONDS, "--omit", "1", "--json"];
    let began = Instant::now();
    loop {
        // iperf3 reports in JSON, and with success, that the server was not listening yet.
        let report: Value = serde_json::from_str(&output(Command::new("iperf3").args(client))?)?;
        match report["end"]["sum_received"]["bits_per_second"].as_f64() {
            Some(bits) => return Ok(bits / 1e9),
            None if began.elapsed() > Duration::from_secs(20) => bail!("iperf3: {}", report["error"]),
            None => std::thread::sleep(Duration::from_millis(100)),
        }
    }
}

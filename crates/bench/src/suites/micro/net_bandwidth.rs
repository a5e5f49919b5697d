//! `net_bandwidth`: TCP throughput and round trips, over loopback or to another host.

use std::net::SocketAddr;

use warpforge_probes::net::{
    Direction, Load, LocalServer, MAX_BLOCK_BYTES, MAX_CLIENTS, NetError, Placement, check,
    measure_round_trips, measure_throughput, resolve,
};

use super::spec;
use crate::benchmark::{Benchmark, BenchmarkError, MetricKey, RunContext, int, text};
use crate::record::{BenchmarkComponent, BenchmarkSpec, ParamValue, Params};
use crate::suites::percentiles;

/// Both ways at once take two connections for each stream.
const MAX_STREAMS: i64 = MAX_CLIENTS as i64 / 2;

/// The benchmark.
#[derive(Debug)]
pub(super) struct NetBandwidth;

impl Benchmark for NetBandwidth {
    fn spec(&self) -> BenchmarkSpec {
        let description = "TCP throughput each way and both ways at once, and round-trip percentiles, over loopback \
                           or to the `host` that runs `warpt serve`. `streams` are connections each way.";
        spec(
            "net_bandwidth",
            BenchmarkComponent::Network,
            6,
            description,
            &[
                ("host", ParamValue::Text(String::new())),
                ("streams", ParamValue::Int(1)),
                ("block_bytes", ParamValue::Int(128 << 10)),
            ],
        )
    }

    fn takes(&self) -> Vec<(&'static str, String)> {
        vec![
            ("host", "a name or address, with or without a port; empty for loopback".to_owned()),
            ("streams", format!("1 to {MAX_STREAMS}")),
            ("block_bytes", format!("1 to {MAX_BLOCK_BYTES}")),
        ]
    }

    fn prepare(&self, params: &Params) -> Result<(), BenchmarkError> {
        let settings = Settings::from(params)?;
        if let Some(addresses) = settings.addresses {
            check(&addresses)?;
        }
        Ok(())
    }

    fn run(&self, context: &mut RunContext<'_>) -> Result<(), BenchmarkError> {
        let settings = Settings::from(context.params())?;
        context.plan(Direction::ALL.len() + 1);
        let far_end = FarEnd::reach(&settings)?;
        let load = |direction| Load {
            direction,
            streams: settings.streams,
            block_bytes: settings.block_bytes,
            cpu: far_end.client_cpu,
        };
        let stop = || context.stopped();
        measure_throughput(far_end.address, &load(Direction::Send), context.burn_in(), &stop)?;
        for direction in Direction::ALL {
            context.begin(&format!("throughput {}", direction.name()));
            let stop = || context.stopped();
            let rates = measure_throughput(far_end.address, &load(direction), context.share(), &stop);
            let gigabits = rates?.into_iter().map(|bytes| bytes * 8.0 / 1e9).collect();
            let key = MetricKey::more_is_better("throughput", "Gbit/s").tag("direction", direction.name());
            context.record(far_end.tag(key), gigabits)?;
        }
        context.begin("round trips");
        let stop = || context.stopped();
        let latencies = measure_round_trips(far_end.address, context.share(), far_end.client_cpu, &stop);
        percentiles::record(context, "rtt", &latencies?, |key| far_end.tag(key))
    }
}

/// The parameters, checked.
struct Settings {
    /// The other host; none for loopback.
    addresses: Option<Vec<SocketAddr>>,
    streams: usize,
    block_bytes: u32,
}

impl Settings {
    fn from(params: &Params) -> Result<Self, BenchmarkError> {
        let within = |name, most: i64| {
            let value = int(params, name);
            if (1..=most).contains(&value) {
                return Ok(value);
            }
            Err(BenchmarkError::BadInput(format!("`{name}` is {value}: it takes 1 to {most}")))
        };
        let streams = within("streams", MAX_STREAMS)? as usize;
        let block_bytes = within("block_bytes", MAX_BLOCK_BYTES.into())? as u32;
        let host = text(params, "host");
        let addresses = (!host.is_empty()).then(|| resolve(host)).transpose()?;
        Ok(Self { addresses, streams, block_bytes })
    }
}

/// The server that is measured against.
struct FarEnd {
    address: SocketAddr,
    /// The processor for this side, where the other side is on the same machine.
    client_cpu: Option<usize>,
    /// Keeps the server alive that this process runs itself.
    local: Option<LocalServer>,
}

impl FarEnd {
    fn reach(settings: &Settings) -> Result<Self, NetError> {
        if let Some(addresses) = &settings.addresses {
            return Ok(Self { address: check(addresses)?, client_cpu: None, local: None });
        }
        // More than one stream has more threads than two processors should carry.
        let placement = if settings.streams == 1 { Placement::on_different_cores() } else { None };
        let local = LocalServer::start(placement.map(|place| place.server))?;
        let client_cpu = placement.map(|place| place.client);
        Ok(Self { address: local.address(), client_cpu, local: Some(local) })
    }

    /// Says over which path a metric was measured.
    fn tag(&self, key: MetricKey) -> MetricKey {
        key.tag("path", if self.local.is_some() { "loopback" } else { "host" })
    }
}

/// A host that does not exist is the user's mistake; one that does not answer is not possible.
impl From<NetError> for BenchmarkError {
    fn from(error: NetError) -> Self {
        let message = error.to_string();
        match error {
            NetError::BadHost { .. } | NetError::UnknownHost { .. } => Self::BadInput(message),
            NetError::Connect { .. }
            | NetError::Listen { .. }
            | NetError::Foreign { .. }
            | NetError::Version { .. }
            | NetError::Refused { .. } => Self::NotPossible(message),
            _ => Self::Failed(message),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::benchmark::{Event, Round};
    use crate::suites::testing::{out_of_range, with};

    fn params(overrides: &[(&str, ParamValue)]) -> Params {
        with(&NetBandwidth, overrides)
    }

    fn metrics(params: Params) -> Vec<String> {
        // No time at all: a round takes what it needs for its figures, however busy the machine is.
        let round =
            Round { id: NetBandwidth.spec().id, params, seconds: 0.0, burn_in_seconds: 0.0, beside: None };
        let mut metrics = Vec::new();
        let mut report = |event| {
            if let Event::Metric { key, values } = event {
                assert!(values.iter().all(|&value| value >= 0.0), "{key:?}: {values:?}");
                metrics.push(key.label());
            }
        };
        NetBandwidth.run(&mut RunContext::new(&round, &|| false, &mut report)).unwrap();
        metrics
    }

    #[test]
    fn a_round_over_loopback_reports_every_metric() {
        let metrics = metrics(params(&[]));
        assert_eq!(
            metrics[..4],
            [
                "throughput send loopback",
                "throughput receive loopback",
                "throughput both loopback",
                "rtt_p50 loopback"
            ]
        );
    }

    #[test]
    fn a_host_that_serves_is_measured_with_several_streams() {
        let server = LocalServer::start(None).unwrap();
        let params = params(&[
            ("host", ParamValue::Text(server.address().to_string())),
            ("streams", ParamValue::Int(3)),
        ]);
        NetBandwidth.prepare(&params).unwrap();
        assert_eq!(metrics(params)[2], "throughput both host");
    }

    #[test]
    fn parameters_out_of_range_are_named_with_what_is_accepted() {
        for (name, value, accepted) in
            [("streams", 0, "1 to 32"), ("streams", 33, "1 to 32"), ("block_bytes", 1 << 40, "1 to 16777216")]
        {
            out_of_range(&NetBandwidth, name, value, accepted);
        }
    }

    #[test]
    fn a_host_that_makes_no_sense_is_bad_input_and_one_that_does_not_answer_is_not_possible() {
        let host = |text: &str| params(&[("host", ParamValue::Text(text.to_owned()))]);
        let error = NetBandwidth.prepare(&host("a:b:c")).unwrap_err();
        assert!(matches!(error, BenchmarkError::BadInput(_)), "{error}");
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let error = NetBandwidth.prepare(&host(&free.to_string())).unwrap_err();
        assert!(matches!(error, BenchmarkError::NotPossible(_)), "{error}");
    }
}

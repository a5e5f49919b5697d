//! What network interfaces receive and send, from `/proc/net/dev`.

use std::collections::BTreeMap;
use std::path::Path;

use super::record::NetworkUsage;
use super::sampler::rate;
use crate::sysfs;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NetworkCounters {
    receive: u64,
    transmit: u64,
}

/// The usage of the interface between two readings of its counters.
pub(super) fn usage(
    name: &str,
    now: &NetworkCounters,
    before: Option<&NetworkCounters>,
    seconds: f64,
) -> NetworkUsage {
    NetworkUsage {
        name: name.to_owned(),
        receive_bytes_per_second: rate(before.map(|before| before.receive), now.receive, seconds),
        transmit_bytes_per_second: rate(before.map(|before| before.transmit), now.transmit, seconds),
        receive_bytes_total: now.receive,
        transmit_bytes_total: now.transmit,
    }
}

/// Interfaces with hardware behind them, and loopback. A container often has none with hardware: there, those that
/// have carried anything.
pub(super) fn read(root: &Path) -> BTreeMap<String, NetworkCounters> {
    let text = sysfs::text(root.join("proc/net/dev")).unwrap_or_default();
    let mut interfaces: BTreeMap<String, NetworkCounters> = text.lines().filter_map(parse).collect();
    let is_real = |name: &str| root.join("sys/class/net").join(name).join("device").exists();
    if interfaces.keys().any(|name| is_real(name)) {
        interfaces.retain(|name, _| name == "lo" || is_real(name));
    } else {
        interfaces.retain(|name, counters| name == "lo" || counters.receive + counters.transmit > 0);
    }
    interfaces
}

fn parse(line: &str) -> Option<(String, NetworkCounters)> {
    let (name, values) = line.split_once(':')?;
    let values: Vec<&str> = values.split_whitespace().collect();
    let number = |index: usize| values.get(index)?.parse().ok();
    Some((name.trim().to_owned(), NetworkCounters { receive: number(0)?, transmit: number(8)? }))
}

#[cfg(test)]
mod tests {
    use super::super::counters::CounterSampler;
    use super::super::testing::FakeRoot;
    use super::*;

    const HEADER: &str = "Inter-|   Receive | Transmit\n face |bytes packets |bytes\n";

    fn table(rows: &[(&str, u64, u64)]) -> String {
        rows.iter().fold(HEADER.to_owned(), |text, (name, receive, transmit)| {
            text + &format!("  {name}: {receive} 1 0 0 0 0 0 0 {transmit} 1 0 0 0 0 0 0\n")
        })
    }

    fn names(usage: &[NetworkUsage]) -> Vec<&str> {
        usage.iter().map(|network| network.name.as_str()).collect()
    }

    #[test]
    fn rates_are_differences_of_real_interfaces() {
        let root = FakeRoot::new();
        root.write("sys/class/net/eth0/device/vendor", "x");
        root.write("proc/net/dev", &table(&[("lo", 5, 5), ("eth0", 1000, 2000), ("veth1", 7, 7)]));
        let mut networks = CounterSampler::new(root.path(), read, usage);
        root.write("proc/net/dev", &table(&[("lo", 5, 5), ("eth0", 3000, 2500), ("veth1", 9, 9)]));
        let usage = networks.sample(0.5);
        assert_eq!(names(&usage), ["eth0", "lo"]);
        assert_eq!(usage[0].receive_bytes_per_second, Some(4000.0));
        assert_eq!(usage[0].transmit_bytes_per_second, Some(1000.0));
    }

    #[test]
    fn a_container_shows_what_has_carried_something() {
        let root = FakeRoot::new();
        root.write(
            "proc/net/dev",
            &(table(&[("lo", 0, 0), ("eth0", 10, 0), ("tunl0", 0, 0)]) + "  bad: 1 2\n"),
        );
        let usage = CounterSampler::new(root.path(), read, usage).sample(1.0);
        assert_eq!(names(&usage), ["eth0", "lo"]);
    }
}

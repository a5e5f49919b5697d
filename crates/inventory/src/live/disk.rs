//! What disks read and write, from `/proc/diskstats`.

use std::collections::BTreeMap;
use std::path::Path;

use super::record::{DiskUsage, percent};
use crate::sysfs;

/// The kernel counts in sectors of this size whatever the disk's own is.
const SECTOR_BYTES: u64 = 512;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DiskCounters {
    read_bytes: u64,
    write_bytes: u64,
    busy_milliseconds: u64,
}

/// The usage of the disk between two readings of its counters.
pub(super) fn usage(
    name: &str,
    now: &DiskCounters,
    before: Option<&DiskCounters>,
    seconds: f64,
) -> DiskUsage {
    let rate =
        |counter: fn(&DiskCounters) -> u64| super::sampler::rate(before.map(counter), counter(now), seconds);
    DiskUsage {
        name: name.to_owned(),
        read_bytes_per_second: rate(|counters| counters.read_bytes),
        write_bytes_per_second: rate(|counters| counters.write_bytes),
        // A request in flight at both ends can make this a hair more than all the time.
        busy_percent: rate(|counters| counters.busy_milliseconds)
            .and_then(|busy| percent(busy, 1000.0))
            .map(|busy| busy.min(100.0)),
        read_bytes_total: now.read_bytes,
        write_bytes_total: now.write_bytes,
    }
}

/// The counters of the disks with hardware behind them: partitions, loops and mapped devices would count twice.
pub(super) fn read(root: &Path) -> BTreeMap<String, DiskCounters> {
    let text = sysfs::text(root.join("proc/diskstats")).unwrap_or_default();
    let blocks = root.join("sys/block");
    text.lines().filter_map(parse).filter(|(name, _)| blocks.join(name).join("device").exists()).collect()
}

fn parse(line: &str) -> Option<(String, DiskCounters)> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
    let counters = DiskCounters {
        read_bytes: number(5)?.checked_mul(SECTOR_BYTES)?,
        write_bytes: number(9)?.checked_mul(SECTOR_BYTES)?,
        busy_milliseconds: number(12)?,
    };
    Some(((*fields.get(2)?).to_owned(), counters))
}

#[cfg(test)]
mod tests {
    use super::super::counters::CounterSampler;
    use super::super::testing::FakeRoot;
    use super::*;

    fn line(name: &str, read: u64, written: u64, busy: u64) -> String {
        format!(" 254 0 {name} 1 0 {read} 1 1 0 {written} 1 0 {busy} 1\n")
    }

    #[test]
    fn rates_are_differences_of_whole_disks_only() {
        let root = FakeRoot::new();
        root.write("sys/block/vda/device/vendor", "x").write("sys/block/loop0/size", "0");
        root.write(
            "proc/diskstats",
            &(line("vda", 100, 200, 0) + &line("vda1", 100, 200, 0) + &line("loop0", 9, 9, 9)),
        );
        let mut disks = CounterSampler::new(root.path(), read, usage);
        root.write("proc/diskstats", &(line("vda", 300, 200, 500) + &line("loop0", 99, 9, 9)));
        let usage = disks.sample(2.0);
        assert_eq!(usage.len(), 1);
        assert_eq!(usage[0].name, "vda");
        assert_eq!(usage[0].read_bytes_per_second, Some(51200.0));
        assert_eq!(usage[0].write_bytes_per_second, Some(0.0));
        assert_eq!(usage[0].busy_percent, Some(25.0));
        assert_eq!(usage[0].read_bytes_total, 300 * 512);
    }

    #[test]
    fn a_new_disk_has_no_rate_and_a_reset_counter_neither() {
        let root = FakeRoot::new();
        root.write("sys/block/vda/device/vendor", "x").write("proc/diskstats", "");
        let mut disks = CounterSampler::new(root.path(), read, usage);
        root.write("proc/diskstats", &(line("vda", 300, 200, 500) + "garbage\n254 1 vdb 1 0 x\n"));
        assert_eq!(disks.sample(1.0)[0].read_bytes_per_second, None);
        root.write("proc/diskstats", &line("vda", 10, 200, 500));
        assert_eq!(disks.sample(1.0)[0].read_bytes_per_second, None);
    }
}

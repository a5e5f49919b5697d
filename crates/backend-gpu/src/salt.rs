//! Instrumentation buffers and their summary in profiles.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use warpforge_codegen::Salt;
use warpforge_codegen::salt::Record;
use warpforge_runtime::profile::Event;

use crate::driver::{Address, Buffer, Gpu, Stream};
use crate::error::Result;

/// The profile track of blocks.
const TRACK: u32 = 1;

/// The instrumentation buffers of a program.
#[derive(Default)]
pub(crate) struct SaltBuffers {
    salt: Salt,
    buffer: Option<Buffer>,
    /// Name, offset and size of each kernel's buffer.
    kernels: Vec<(String, usize, usize)>,
    /// The cost of the instrumentation per block.
    cost: Duration,
}

impl SaltBuffers {
    /// Allocates buffers for these kernels.
    pub(crate) fn new(
        gpu: &Arc<Gpu>,
        salt: Salt,
        kernels: impl Iterator<Item = (String, u64)>,
    ) -> Result<Self> {
        let mut made = Self { salt, ..Self::default() };
        let mut at = 0;
        for (name, bytes) in kernels {
            let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
            made.kernels.push((name, at, bytes));
            at += bytes.next_multiple_of(256);
        }
        if at > 0 {
            made.buffer = Some(gpu.allocate(at)?);
        }
        Ok(made)
    }

    /// Sets the calibrated cost.
    pub(crate) fn set_cost(&mut self, cost: Duration) {
        self.cost = cost;
    }

    /// Whether any kernel is instrumented.
    pub(crate) fn any(&self) -> bool {
        self.buffer.is_some()
    }

    /// The buffer address of a kernel.
    pub(crate) fn address(&self, kernel: usize) -> Address {
        let place = self.kernels.get(kernel).map_or(0, |(_, at, _)| *at as u64);
        self.buffer.as_ref().map_or(0, |buffer| buffer.address() + place)
    }

    /// Clears the buffers.
    pub(crate) fn clear(&self, stream: &Stream) -> Result<()> {
        self.buffer.as_ref().map_or(Ok(()), |buffer| stream.fill(buffer.address(), 0, buffer.bytes()))
    }

    /// Reads the summaries of all kernels.
    pub(crate) fn read(&self, stream: &Stream) -> Result<Vec<SaltSummary>> {
        let Some(buffer) = &self.buffer else { return Ok(Vec::new()) };
        let mut bytes = vec![0u8; buffer.bytes()];
        stream.read(buffer.address(), &mut bytes)?;
        let records = |at: usize, size: usize| self.salt.records(&bytes[at..at + size]);
        let all: Vec<Vec<Record>> = self.kernels.iter().map(|&(_, at, size)| records(at, size)).collect();
        let starts = all.iter().flatten().filter(|one| one.start > 0).map(|one| one.start);
        let origin = starts.min().unwrap_or(0);
        let names = self.kernels.iter().map(|(name, ..)| name);
        Ok(names
            .zip(&all)
            .map(|(name, records)| SaltSummary::new(name, records, origin, self.cost))
            .collect())
    }
}

/// The summary of a kernel; empty if it did not run.
pub(crate) struct SaltSummary {
    /// From the first block's start to the last block's end, by the device clock.
    pub(crate) event: Option<Event>,
}

impl SaltSummary {
    fn new(name: &str, records: &[Record], origin: u64, cost: Duration) -> Self {
        Self { event: event(name, records, origin, cost) }
    }

    /// Details for the kernel's profile event.
    pub(crate) fn details(&self) -> impl Iterator<Item = (&'static str, String)> {
        self.event.iter().flat_map(|event| event.details.iter().cloned())
    }
}

fn event(name: &str, records: &[Record], origin: u64, cost: Duration) -> Option<Event> {
    let ran: Vec<&Record> =
        records.iter().filter(|record| record.end >= record.start && record.start > 0).collect();
    let (first, last) = (ran.iter().map(|one| one.start).min()?, ran.iter().map(|one| one.end).max()?);
    let microseconds = |time: Duration| format!("{:.3}", time.as_secs_f64() * 1e6);
    let less_cost = |nanoseconds: u64| Duration::from_nanos(nanoseconds).saturating_sub(cost);
    let blocks: u64 = ran.iter().map(|one| one.end - one.start).sum();
    let longest = ran.iter().map(|one| one.end - one.start).max().unwrap_or(0);
    let mut busy: HashMap<u64, u64> = HashMap::new();
    for one in &ran {
        *busy.entry(one.processor).or_default() += one.end - one.start;
    }
    let most = busy.values().copied().max().unwrap_or(0).max(1);
    let balance = blocks as f64 / busy.len() as f64 / most as f64;
    let mut details = vec![
        ("tiles", ran.len().to_string()),
        ("longest_tile_us", microseconds(less_cost(longest))),
        ("mean_tile_us", microseconds(less_cost(blocks / ran.len() as u64))),
        ("multiprocessors", busy.len().to_string()),
        ("balance", format!("{balance:.3}")),
        ("instrumentation_us", microseconds(cost)),
    ];
    let written: Vec<_> = ran.iter().filter_map(|one| one.written).collect();
    if !written.is_empty() {
        let least = written.iter().map(|one| one.least).fold(f64::INFINITY, f64::min);
        let largest = written.iter().map(|one| one.largest).fold(f64::NEG_INFINITY, f64::max);
        let count: u64 = written.iter().map(|one| one.count).sum();
        let sum: f64 = written.iter().map(|one| one.sum).sum();
        details.extend([
            ("values", count.to_string()),
            ("values_seen", count.to_string()),
            ("bytes_written", written.iter().map(|one| one.bytes).sum::<u64>().to_string()),
            ("nan", written.iter().map(|one| one.nan).sum::<u64>().to_string()),
            ("infinite", written.iter().map(|one| one.infinite).sum::<u64>().to_string()),
            ("min", least.to_string()),
            ("max", largest.to_string()),
            ("mean", (sum / count.max(1) as f64).to_string()),
        ]);
    }
    Some(Event {
        name: name.to_owned(),
        category: "blocks",
        track: TRACK,
        start: Duration::from_nanos(first - origin),
        duration: less_cost(last - first),
        details,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_become_one_event_less_instrumentation_cost() {
        let record = |start, end, processor| Record { start, end, processor, written: None };
        let none = Record::default();
        let event =
            event("k", &[record(1100, 1500, 0), record(1200, 1800, 1), none], 1000, Duration::from_nanos(50));
        let event = event.unwrap();
        assert_eq!((event.start, event.duration), (Duration::from_nanos(100), Duration::from_nanos(650)));
        assert!(event.details.contains(&("tiles", "2".to_owned())));
        assert!(event.details.contains(&("mean_tile_us", "0.450".to_owned())));
        assert!(event.details.contains(&("longest_tile_us", "0.550".to_owned())));
        // One multiprocessor is busy for 400 ns, the other for 600.
        assert!(event.details.contains(&("balance", "0.833".to_owned())));
        assert!(super::event("k", &[none], 0, Duration::ZERO).is_none());
    }
}

//! Collecting a timeline in the background.

use std::io;
use std::time::Duration;

use super::record::TimelineRecord;
use super::sampler::Sampler;
use super::ticker::Ticker;

/// A timeline holds fewer than this many records, over an hour at one a second.
const MOST_RECORDS: usize = 4096;

/// A background thread that collects records.
///
/// Its memory is bounded: when the timeline is full, every second record is dropped and from then on half as many are
/// taken, so that a long run keeps its whole course in less detail.
pub struct Watch(Ticker<Collector>);

impl Watch {
    /// Starts to take a record every `interval`.
    ///
    /// # Errors
    /// If the interval is zero, or the system has no thread to spare.
    pub fn start(interval: Duration) -> io::Result<Self> {
        if interval.is_zero() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "the monitoring interval must not be zero",
            ));
        }
        Ticker::start("warpt-watch", interval, Collector::new(Sampler::new()), Collector::tick).map(Self)
    }

    /// Takes a last record and returns the timeline, oldest first; it is never empty.
    #[must_use]
    pub fn stop(self) -> Vec<TimelineRecord> {
        let mut collector = self.0.stop();
        collector.take();
        collector.timeline.records
    }
}

struct Collector {
    sampler: Sampler,
    timeline: Timeline,
}

impl Collector {
    fn new(sampler: Sampler) -> Self {
        Self { sampler, timeline: Timeline::new(MOST_RECORDS) }
    }

    fn tick(&mut self) {
        if self.timeline.wants_one() {
            self.take();
        }
    }

    fn take(&mut self) {
        self.timeline.push(self.sampler.sample());
    }
}

/// Records, thinned when there are too many.
struct Timeline {
    records: Vec<TimelineRecord>,
    most: usize,
    /// Every how manieth tick is wanted.
    stride: u64,
    ticks: u64,
}

impl Timeline {
    fn new(most: usize) -> Self {
        Self { records: Vec::new(), most, stride: 1, ticks: 0 }
    }

    fn wants_one(&mut self) -> bool {
        self.ticks += 1;
        self.ticks.is_multiple_of(self.stride)
    }

    fn push(&mut self, record: TimelineRecord) {
        self.records.push(record);
        if self.records.len() >= self.most {
            let mut odd = false;
            self.records.retain(|_| {
                odd = !odd;
                !odd
            });
            self.stride = self.stride.saturating_mul(2);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watch_gives_its_records_in_order_and_at_least_one() {
        let watch = Watch::start(Duration::from_secs(3600)).unwrap();
        assert_eq!(watch.stop().len(), 1);
        assert!(Watch::start(Duration::ZERO).is_err_and(|error| error.kind() == io::ErrorKind::InvalidInput));
    }

    #[test]
    fn a_full_timeline_is_thinned_and_stays_even() {
        let mut timeline = Timeline::new(8);
        for second in 1..=100 {
            if timeline.wants_one() {
                timeline.push(TimelineRecord {
                    timestamp: jiff::Timestamp::from_second(second).unwrap(),
                    ..TimelineRecord::default()
                });
            }
        }
        let seconds: Vec<_> = timeline.records.iter().map(|record| record.timestamp.as_second()).collect();
        assert!(seconds.len() < 8 && seconds.len() >= 4, "{seconds:?}");
        assert!(seconds.windows(2).all(|pair| pair[1] - pair[0] == 16), "{seconds:?}");
        assert!(*seconds.last().unwrap() > 84, "the end of the run is kept: {seconds:?}");
    }
}

//! What the graphs show: the last values of everything that has one.

use std::collections::VecDeque;

use warpforge_inventory::live::TimelineRecord;

/// As many values as the widest terminal has columns.
const MOST_VALUES: usize = 1024;

/// The last values of one quantity, newest first; `None` where it was unknown.
#[derive(Debug, Default)]
pub(super) struct Series(VecDeque<Option<f64>>);

impl Series {
    fn push(&mut self, value: Option<f64>) {
        self.0.push_front(value);
        self.0.truncate(MOST_VALUES);
    }

    pub(super) fn newest_first(&self) -> impl Iterator<Item = Option<f64>> {
        self.0.iter().copied()
    }

    /// The highest of the newest values.
    pub(super) fn peak(&self, newest: usize) -> Option<f64> {
        self.newest_first().take(newest).flatten().reduce(f64::max)
    }
}

/// The history of a machine.
#[derive(Debug, Default)]
pub(super) struct History {
    pub(super) cpu: Series,
    pub(super) memory: Series,
    pub(super) disk_read: Series,
    pub(super) disk_write: Series,
    pub(super) network_in: Series,
    pub(super) network_out: Series,
    pub(super) gpus: Vec<Series>,
}

impl History {
    pub(super) fn push(&mut self, record: &TimelineRecord) {
        self.cpu.push(record.cpu_utilization_percent);
        self.memory.push(record.memory_utilization_percent);
        self.disk_read.push(record.disk_read_bytes_per_second());
        self.disk_write.push(record.disk_write_bytes_per_second());
        self.network_in.push(record.network_receive_bytes_per_second());
        self.network_out.push(record.network_transmit_bytes_per_second());
        self.gpus.resize_with(record.gpu_usage.len(), Series::default);
        for (series, gpu) in self.gpus.iter_mut().zip(&record.gpu_usage) {
            series.push(gpu.utilization_percent);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_keeps_the_newest_and_is_bounded() {
        let mut series = Series::default();
        for value in 0..2000 {
            series.push(Some(f64::from(value)));
        }
        series.push(None);
        assert_eq!(series.newest_first().count(), MOST_VALUES);
        assert_eq!(series.newest_first().take(2).collect::<Vec<_>>(), [None, Some(1999.0)]);
        assert_eq!(series.peak(1), None);
        assert_eq!(series.peak(3), Some(1999.0));
    }
}

//! Instrumentation of kernels.
//!
//! `Off` leaves the source unchanged. `Timing` records start, end and multiprocessor of each block. `Trace` adds
//! statistics of the values it wrote.

use crate::text::Text;

/// Instrumentation level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Salt {
    /// None; the source is unchanged.
    #[default]
    Off,
    /// Start and end of each block.
    Timing,
    /// Timing, and statistics of the written values.
    Trace,
}

/// The record of one block.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Record {
    /// Start, in nanoseconds of the device clock.
    pub start: u64,
    /// End.
    pub end: u64,
    /// The multiprocessor it ran on.
    pub processor: u64,
    /// Statistics of written values, with [`Salt::Trace`].
    pub written: Option<Written>,
}

/// Statistics of the values that a block wrote.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Written {
    /// Elements.
    pub count: u64,
    /// NaNs.
    pub nan: u64,
    /// Infinities.
    pub infinite: u64,
    /// Least finite value.
    pub least: f64,
    /// Largest finite value.
    pub largest: f64,
    /// Sum of finite values.
    pub sum: f64,
    /// Bytes.
    pub bytes: u64,
}

impl Salt {
    /// Bytes that each block writes.
    #[must_use]
    pub const fn record_bytes(self) -> usize {
        match self {
            Self::Off => 0,
            Self::Timing => 32,
            Self::Trace => 96,
        }
    }

    /// Parses records, in block order. An incomplete record at the end is dropped.
    #[must_use]
    pub fn records(self, bytes: &[u8]) -> Vec<Record> {
        if self == Self::Off {
            return Vec::new();
        }
        let record = |bytes: &[u8]| {
            let word = |at: usize| {
                bytes
                    .get(at * 8..at * 8 + 8)
                    .and_then(|word| word.try_into().ok())
                    .map_or(0, u64::from_le_bytes)
            };
            let number = |at: usize| f64::from_bits(word(at));
            let written = (self == Self::Trace).then(|| Written {
                count: word(4),
                nan: word(5),
                infinite: word(6),
                bytes: word(7),
                least: number(8),
                largest: number(9),
                sum: number(10),
            });
            Record { start: word(0), end: word(1), processor: word(2), written }
        };
        bytes.chunks_exact(self.record_bytes()).map(record).collect()
    }

    /// Emitted at the start of a kernel.
    pub(crate) fn begin(self, text: &mut Text) {
        match self {
            Self::Off => {}
            Self::Timing => text.line("const unsigned long long salt_start = wf_clock();"),
            Self::Trace => {
                text.line("const unsigned long long salt_start = wf_clock();");
                text.line("wf_statistics salt_seen;");
            }
        }
    }

    /// Emitted at each store.
    pub(crate) fn wrote(self, text: &mut Text, value: &str, bytes: usize) {
        if self == Self::Trace {
            text.line(format!("salt_seen.add((double)({value}), {bytes});"));
        }
    }

    /// Emitted at the end of a kernel, in uniform control flow.
    pub(crate) fn end(self, text: &mut Text) {
        match self {
            Self::Off => {}
            Self::Timing => text.line("wf_salt_timing(salt, salt_start);"),
            Self::Trace => text.line("wf_salt_trace(salt, salt_start, salt_seen);"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_as_they_are_written() {
        let mut words = [0u64; 12];
        (words[0], words[1], words[2]) = (5, 9, 3);
        (words[4], words[5], words[8]) = (7, 1, (-2.5f64).to_bits());
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let records = Salt::Trace.records(&bytes);
        assert_eq!(records.len(), 1);
        assert_eq!((records[0].start, records[0].end, records[0].processor), (5, 9, 3));
        let written = records[0].written.unwrap_or_default();
        assert_eq!((written.count, written.nan, written.least), (7, 1, -2.5));
        assert!(Salt::Off.records(&bytes).is_empty());
        assert_eq!(Salt::Timing.records(&bytes).len(), 3);
    }
}

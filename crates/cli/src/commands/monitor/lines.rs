//! A line a sample: a table for people, or JSON for programs.

use std::io::{self, Write as _};

use anyhow::anyhow;
use jiff::tz::TimeZone;
use warpforge_inventory::live::{GpuUsage, TimelineRecord};

use super::feed::{Event, Feed};
use super::format;
use crate::exit::{Exit, Failure, Outcome};
use crate::term;

/// The heading comes again after this many lines, so that it stays on the screen.
const LINES_PER_HEADING: usize = 20;

/// One column of the table.
struct Column {
    heading: &'static str,
    width: usize,
    /// Columns of the highest rank go first where the line is too long.
    rank: u8,
    value: fn(&TimelineRecord) -> Option<String>,
}

/// A column of bytes a second.
const fn rates(heading: &'static str, rank: u8, value: fn(&TimelineRecord) -> Option<String>) -> Column {
    Column { heading, width: 10, rank, value }
}

const COLUMNS: [Column; 12] = [
    Column { heading: "time", width: 10, rank: 0, value: |record| Some(local_time(record)) },
    Column { heading: "cpu%", width: 6, rank: 0, value: |record| one_digit(record.cpu_utilization_percent) },
    Column { heading: "steal%", width: 6, rank: 7, value: |record| one_digit(record.cpu_steal_percent) },
    Column {
        heading: "load",
        width: 6,
        rank: 2,
        value: |record| Some(format!("{:.2}", record.load_average?[0])),
    },
    Column { heading: "memory", width: 14, rank: 0, value: memory },
    rates("disk read", 5, |record| rate(record.disk_read_bytes_per_second())),
    rates("disk write", 5, |record| rate(record.disk_write_bytes_per_second())),
    rates("net in", 6, |record| rate(record.network_receive_bytes_per_second())),
    rates("net out", 6, |record| rate(record.network_transmit_bytes_per_second())),
    Column { heading: "clock", width: 8, rank: 4, value: |record| record.mean_mhz().map(format::clock) },
    Column {
        heading: "power",
        width: 7,
        rank: 3,
        value: |record| Some(format!("{:.1} W", record.package_watts()?)),
    },
    Column {
        heading: "heat",
        width: 6,
        rank: 3,
        value: |record| Some(format!("{:.0}°C", record.cpu_celsius()?)),
    },
];

/// What stands between two columns.
const GAP: &str = "  ";

/// The width of a GPU's column.
const GPU_WIDTH: usize = 20;

/// The columns that a line has room for, after those of the GPUs. What the machine never reports is left out.
fn fitting(record: &TimelineRecord, screen: Option<usize>) -> Vec<&'static Column> {
    let knows_heat = record.cpu_celsius().is_some();
    let mut columns: Vec<&Column> =
        COLUMNS.iter().filter(|column| column.heading != "heat" || knows_heat).collect();
    let gpus = record.gpu_usage.len() * (GPU_WIDTH + GAP.len());
    let width = |columns: &[&Column]| {
        columns.iter().map(|column| column.width + GAP.len()).sum::<usize>() + gpus - GAP.len()
    };
    while let Some(screen) = screen
        && width(&columns) > screen
        && let Some(highest) = columns.iter().map(|column| column.rank).max().filter(|rank| *rank > 0)
    {
        columns.retain(|column| column.rank != highest);
    }
    columns
}

/// Prints samples until the duration is over, the user stops it or nobody reads any more.
pub(super) fn run(feed: &Feed, json: bool) -> Outcome {
    let screen = term::columns();
    let mut printed = 0;
    loop {
        let record = match feed.next() {
            Event::Sample(sample) => sample.record,
            Event::Stop | Event::Finished => return Ok(Exit::Pass),
            Event::Broken => return Err(Failure::not_possible(anyhow!("sampling failed"))),
            Event::Input(_) | Event::NoInput(_) | Event::Resumed => continue,
        };
        let text = if json {
            serde_json::to_string(&record).map_err(Failure::not_possible)? + "\n"
        } else if printed % LINES_PER_HEADING == 0 {
            heading(&record, screen) + &line(&record, screen)
        } else {
            line(&record, screen)
        };
        printed += 1;
        let mut out = io::stdout().lock();
        match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(Exit::Pass),
            Err(error) => {
                let error = anyhow::Error::from(error).context("cannot write to standard output");
                return Err(Failure::not_possible(error));
            }
        }
    }
}

fn heading(record: &TimelineRecord, screen: Option<usize>) -> String {
    let columns = fitting(record, screen);
    let columns = columns.iter().map(|column| format!("{:>width$}", column.heading, width = column.width));
    let gpus = record.gpu_usage.iter().map(|gpu| format!("{:<GPU_WIDTH$}", format!("gpu {}", gpu.index)));
    join(columns.chain(gpus))
}

fn line(record: &TimelineRecord, screen: Option<usize>) -> String {
    let columns = fitting(record, screen);
    let columns = columns
        .iter()
        .map(|column| format!("{:>width$}", format::or_dash((column.value)(record)), width = column.width));
    let gpus = record.gpu_usage.iter().map(|gpu| format!("{:<GPU_WIDTH$}", gpu_cell(gpu)));
    join(columns.chain(gpus))
}

fn join(cells: impl Iterator<Item = String>) -> String {
    let line = cells.collect::<Vec<_>>().join(GAP);
    format!("{}\n", line.trim_end())
}

/// Load, memory and power of one GPU: `84% mem 65% 310W`.
fn gpu_cell(gpu: &GpuUsage) -> String {
    let whole =
        |value: Option<f64>, unit: &str| format::or_dash(value.map(|value| format!("{value:.0}{unit}")));
    format!(
        "{} mem {} {}",
        whole(gpu.utilization_percent, "%"),
        whole(gpu.memory_utilization_percent, "%"),
        whole(gpu.power_watts, "W")
    )
}

fn local_time(record: &TimelineRecord) -> String {
    record.timestamp.to_zoned(TimeZone::system()).strftime("%H:%M:%S%.1f").to_string()
}

fn one_digit(percent: Option<f64>) -> Option<String> {
    percent.map(|percent| format!("{percent:.1}"))
}

fn memory(record: &TimelineRecord) -> Option<String> {
    Some(format::part_of(record.memory_used_bytes?, record.total_memory_bytes?))
}

fn rate(bytes_per_second: Option<f64>) -> Option<String> {
    bytes_per_second.map(format::rate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_values_are_dashes_and_gpus_have_columns() {
        let record = TimelineRecord {
            cpu_utilization_percent: Some(45.25),
            gpu_usage: vec![GpuUsage { index: 1, utilization_percent: Some(84.2), ..GpuUsage::default() }],
            ..TimelineRecord::default()
        };
        let line = line(&record, None);
        let cells: Vec<_> = line.split_whitespace().skip(1).collect();
        assert_eq!(cells[..3], ["45.2", "-", "-"]);
        assert!(line.ends_with("84% mem - -\n"), "{line}");
        assert!(heading(&record, None).ends_with("gpu 1\n"));
    }

    #[test]
    fn headings_and_values_line_up() {
        let record = TimelineRecord {
            memory_used_bytes: Some(1 << 30),
            total_memory_bytes: Some(24 << 30),
            load_average: Some([0.5, 0.4, 0.3]),
            ..TimelineRecord::default()
        };
        let (heading, line) = (heading(&record, None), line(&record, None));
        let end = heading.find("memory").unwrap() + "memory".len();
        assert!(line[..end].ends_with("1.00/24.0 GiB"), "{heading}{line}");
    }

    #[test]
    fn a_narrow_line_has_fewer_columns_and_whole_numbers() {
        let record = TimelineRecord {
            memory_used_bytes: Some(1 << 30),
            total_memory_bytes: Some(24 << 30),
            cpu_utilization_percent: Some(12.5),
            ..TimelineRecord::default()
        };
        for columns in [60, 80, 200] {
            let (heading, line) = (heading(&record, Some(columns)), line(&record, Some(columns)));
            assert!(heading.trim_end().chars().count() <= columns, "{heading}");
            assert!(line.contains("12.5") && line.contains("1.00/24.0 GiB"), "{line}");
            assert_eq!(heading.contains("steal%"), columns == 200, "{heading}");
        }
    }
}

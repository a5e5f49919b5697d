//! What a machine did over time, summed up: the least, the mean and the most of each quantity.

use warpforge_inventory::live::{GpuUsage, TimelineRecord};

use crate::number::significant;
use crate::table::{Align, Style, Table};

/// A quantity of a machine: what it is, its unit, and how a record has it.
type Quantity = (&'static str, &'static str, fn(&TimelineRecord) -> Option<f64>);

/// A quantity of one GPU.
type GpuQuantity = (&'static str, &'static str, fn(&GpuUsage) -> Option<f64>);

const GIB: f64 = (1u64 << 30) as f64;

const QUANTITIES: [Quantity; 6] = [
    ("CPU utilization", "%", |record| record.cpu_utilization_percent),
    ("CPU steal", "%", |record| record.cpu_steal_percent),
    ("CPU clock", "MHz", TimelineRecord::mean_mhz),
    ("CPU temperature", "°C", TimelineRecord::cpu_celsius),
    ("CPU power", "W", TimelineRecord::package_watts),
    ("memory used", "GiB", |record| record.memory_used_bytes.map(|bytes| bytes as f64 / GIB)),
];

const GPU_QUANTITIES: [GpuQuantity; 5] = [
    ("utilization", "%", |gpu| gpu.utilization_percent),
    ("clock", "MHz", |gpu| gpu.graphics_mhz),
    ("temperature", "°C", |gpu| gpu.temperature_celsius),
    ("power", "W", |gpu| gpu.power_watts),
    ("memory used", "GiB", |gpu| gpu.memory_used_bytes.map(|bytes| bytes as f64 / GIB)),
];

/// A row a quantity that the machine reports.
#[must_use]
pub fn table(records: &[TimelineRecord]) -> Table {
    let mut table = Table::new(&[
        ("", Align::Left),
        ("min", Align::Right),
        ("mean", Align::Right),
        ("max", Align::Right),
        ("unit", Align::Left),
    ]);
    for (name, unit, of) in QUANTITIES {
        row(&mut table, name, unit, records.iter().filter_map(of));
    }
    let mut gpus: Vec<u32> =
        records.iter().flat_map(|record| record.gpu_usage.iter().map(|gpu| gpu.index)).collect();
    gpus.sort_unstable();
    gpus.dedup();
    for index in gpus {
        for (name, unit, of) in GPU_QUANTITIES {
            let usage = records.iter().flat_map(|record| &record.gpu_usage);
            let values = usage.filter(|gpu| gpu.index == index).filter_map(of);
            row(&mut table, &format!("GPU {index} {name}"), unit, values);
        }
    }
    table
}

/// Adds the row of a quantity, unless nothing is known of it.
fn row(table: &mut Table, name: &str, unit: &str, values: impl Iterator<Item = f64>) {
    let values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
    let (Some(least), Some(most)) =
        (values.iter().copied().reduce(f64::min), values.iter().copied().reduce(f64::max))
    else {
        return;
    };
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let numbers = [least, mean, most].map(|value| significant(value, 4));
    let cells = [name.to_owned()].into_iter().chain(numbers).chain([unit.to_owned()]);
    table.row(Style::Plain, cells);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Screen;

    #[test]
    fn each_quantity_has_its_least_mean_and_most() {
        let record = |percent: f64, watts: Option<f64>| TimelineRecord {
            cpu_utilization_percent: Some(percent),
            gpu_usage: vec![GpuUsage { index: 3, power_watts: watts, ..GpuUsage::default() }],
            ..TimelineRecord::default()
        };
        let records = [record(10.0, None), record(40.0, Some(300.0)), record(10.0, Some(100.0))];
        let text = table(&records).to_text(Screen::PLAIN);
        let words: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(words[0], ["min", "mean", "max", "unit"]);
        assert_eq!(words[1], ["CPU", "utilization", "10.00", "20.00", "40.00", "%"]);
        assert_eq!(words[2], ["GPU", "3", "power", "100.0", "200.0", "300.0", "W"]);
        assert_eq!(words.len(), 3, "what is unknown has no row: {text}");
        assert!(table(&[]).is_empty());
    }
}

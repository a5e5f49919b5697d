//! How far workloads are from what the machine can do.

use std::path::Path;

use anyhow::Context as _;
use serde_json::Value;

use super::contest::Row;
use super::stats::figure;
use crate::peers::warpt::{find, measure};

/// The machine's limits, and what each workload has to do at least.
#[derive(Debug)]
pub(super) struct Roof {
    gflops: f64,
    /// To and from main memory.
    gbps: f64,
    /// Workload, floating-point operations, bytes.
    work: Vec<(String, f64, f64)>,
}

impl Roof {
    /// Measures the limits of f32 or bf16 with our own micro benchmarks, and reads the workloads' facts.
    pub(super) fn measure(warpt: &Path, dtype: &str, folder: &Path, names: &[&str]) -> anyhow::Result<Self> {
        let params = ["kernels=fma".to_owned(), format!("dtypes={dtype}")];
        let metrics = measure(warpt, "cpu_flops", 4.0, &params)?;
        let tags = [("dtype", dtype), ("kernel", "fma"), ("scope", "all_cores")];
        let gflops = find(&metrics, "gflops", &tags)?;
        let params = ["levels=DRAM".to_owned(), "kernels=triad".to_owned()];
        let metrics = measure(warpt, "mem_bandwidth", 6.0, &params)?;
        let tags = [("kernel", "triad"), ("stores", "ordinary"), ("scope", "all_cores")];
        let gbps = find(&metrics, "bandwidth", &tags)?;
        let work = names.iter().map(|name| facts(folder, name)).collect::<anyhow::Result<_>>()?;
        Ok(Self { gflops, gbps, work })
    }

    /// A sentence about the limits.
    pub(super) fn text(&self) -> String {
        format!(
            "Limits of the machine in the same run: {:.0} GFLOP/s, {:.1} GB/s (all cores).",
            self.gflops, self.gbps
        )
    }

    /// Our rate, and the part of the roofline: the least time that the workload's operations and bytes take, over ours.
    pub(super) fn cells(&self, row: &Row) -> [String; 2] {
        let work = self.work.iter().find(|(name, ..)| *name == row.workload);
        let (Some((_, flops, bytes)), Some(ms)) = (work, row.our_median()) else {
            return ["-".to_owned(), "-".to_owned()];
        };
        let least_ms = (flops / self.gflops).max(bytes / self.gbps) / 1e6;
        let rate = if *flops > 0.0 { figure(flops / ms / 1e6) } else { "-".to_owned() };
        [rate, format!("{:.0} %", least_ms / ms * 100.0)]
    }
}

fn facts(folder: &Path, name: &str) -> anyhow::Result<(String, f64, f64)> {
    let path = folder.join(name).join("facts.json");
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let facts: Value = serde_json::from_str(&text).with_context(|| path.display().to_string())?;
    let number =
        |field: &str| facts[field].as_f64().with_context(|| format!("{}: no {field}", path.display()));
    Ok((name.to_owned(), number("flops")?, number("bytes")?))
}

#[cfg(test)]
mod tests {
    use super::super::contest::Outcome;
    use super::super::contest::tests::{ran, row};
    use super::*;

    #[test]
    fn the_limit_is_the_slower_of_arithmetic_and_memory() {
        let roof = Roof {
            gflops: 100.0,
            gbps: 10.0,
            work: vec![("products".to_owned(), 4e8, 1e6), ("streams".to_owned(), 0.0, 2e7)],
        };
        // 4 ms of arithmetic, 0.1 ms of memory.
        assert_eq!(roof.cells(&row("products", 1.0, ran(&[5.0]))), ["80.0", "80 %"]);
        assert_eq!(roof.cells(&row("streams", 1.0, ran(&[4.0]))), ["-", "50 %"]);
        assert_eq!(roof.cells(&row("other", 1.0, ran(&[4.0]))), ["-", "-"]);
        let failed = row("streams", 1.0, Outcome::Failed(String::new()));
        assert_eq!(roof.cells(&failed), ["-", "-"]);
    }
}

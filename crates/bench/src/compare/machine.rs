//! Whether two runs are of the same machine.

use warpforge_inventory::ListOutput;
use warpforge_inventory::hardware::Gpu;

use crate::record::BenchmarkSuiteRun;

/// The kernel's idea of the memory's size differs a little from boot to boot; this share of it is no difference.
const MEMORY_TOLERANCE: f64 = 0.03;

/// What differs between the machines of two runs, each as `what: one and other`; empty if nothing known does.
#[must_use]
pub fn machine_differences(before: &BenchmarkSuiteRun, after: &BenchmarkSuiteRun) -> Vec<String> {
    match (system(before), system(after)) {
        (Some(before), Some(after)) => Identity::of(before).differences(&Identity::of(after)),
        _ => Vec::new(),
    }
}

fn system(run: &BenchmarkSuiteRun) -> Option<&ListOutput> {
    run.benchmarks.iter().find_map(|result| result.system.as_ref())
}

/// What makes a machine that machine, as far as speed goes.
#[derive(Debug, Clone, PartialEq)]
struct Identity {
    /// Facts that are equal or not, by name; unknown ones are left out.
    facts: Vec<(&'static str, Option<String>)>,
    memory_bytes: Option<u64>,
}

impl Identity {
    fn of(system: &ListOutput) -> Self {
        let cpu = &system.hardware.cpu;
        let text = |number: Option<u32>| number.map(|number| number.to_string());
        Self {
            facts: vec![
                ("CPU", cpu.model.clone()),
                ("architecture", cpu.architecture.clone()),
                ("sockets", text(cpu.sockets)),
                ("cores", text(cpu.physical_cores)),
                ("threads", text(cpu.threads)),
                ("usable threads", text(cpu.usable_threads)),
                ("GPUs", Some(gpus(&system.hardware.gpus))),
            ],
            memory_bytes: system.hardware.memory.total_bytes,
        }
    }

    fn differences(&self, other: &Self) -> Vec<String> {
        let mut found: Vec<String> = self
            .facts
            .iter()
            .zip(&other.facts)
            .filter_map(|((name, a), (_, b))| {
                let (a, b) = (a.as_ref()?, b.as_ref()?);
                (a != b).then(|| format!("{name}: {a} and {b}"))
            })
            .collect();
        if let (Some(a), Some(b)) = (self.memory_bytes, other.memory_bytes)
            && a.abs_diff(b) as f64 > MEMORY_TOLERANCE * a.max(b) as f64
        {
            let gib = |bytes: u64| bytes as f64 / f64::from(1 << 30);
            found.push(format!("memory: {:.1} GiB and {:.1} GiB", gib(a), gib(b)));
        }
        found
    }
}

/// The models, in an order that does not depend on how the bus was scanned.
fn gpus(gpus: &[Gpu]) -> String {
    let name = |gpu: &Gpu| gpu.model.clone().unwrap_or_else(|| gpu.vendor.clone());
    let mut names: Vec<String> = gpus.iter().map(name).collect();
    names.sort_unstable();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

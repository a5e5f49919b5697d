//! The options that select benchmarks, shared by `list`, `run` and `describe`.

use clap::Args;
use warpforge_bench::record::BenchmarkComponent;
use warpforge_bench::selection::Request;
use warpforge_inventory::hardware;

use crate::values;

/// Which benchmarks.
#[derive(Debug, Args)]
pub(super) struct Selector {
    /// The suite, such as `micro`
    #[arg(long, value_name = "SUITE", value_parser = values::suites())]
    pub(super) suite: Option<String>,
    /// A benchmark by name; may be given several times
    #[arg(long, value_name = "BENCHMARK", value_parser = values::benchmarks())]
    pub(super) benchmark: Vec<String>,
    /// Parts of the machine; may be given several times or separated by commas
    #[arg(long, value_name = "COMPONENT", value_delimiter = ',', value_parser = values::components())]
    pub(super) component: Vec<String>,
}

impl Selector {
    /// The selection as the library asks for it.
    pub(super) fn request(&self) -> Request {
        Request {
            suite: self.suite.clone(),
            benchmarks: self.benchmark.clone(),
            components: self.component.iter().map(|name| name.trim().to_lowercase()).collect(),
        }
    }
}

/// The components that this machine has.
pub(super) fn present_components() -> Vec<BenchmarkComponent> {
    let has =
        |component: &BenchmarkComponent| *component != BenchmarkComponent::Gpu || hardware::gpu_count() > 0;
    BenchmarkComponent::ALL.into_iter().filter(has).collect()
}

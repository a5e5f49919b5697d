//! Operating system, tools, frameworks and libraries.

mod command;
mod environment;
mod gpu_stacks;
mod host;
mod libraries;
mod os;
mod packages;
mod python;
mod tools;

use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use environment::Environment;
pub use gpu_stacks::{Cuda, Rocm, Toolkit};
pub use libraries::Library;
pub use os::Os;
pub use packages::Framework;
pub use python::Python;
pub use tools::{ContainerTools, Tool};

use command::Deadline;
use environment::Cpuid;
use host::Host;

use crate::joined;

/// How long programs have to print their version, all together: the inventory answers within a second.
const TIME_TO_ANSWER: Duration = Duration::from_millis(500);

/// The machine's software.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Software {
    /// The operating system and its kernel.
    pub os: Os,
    /// Container or virtual machine.
    pub environment: Environment,
    /// Python interpreters.
    pub python: Vec<Python>,
    /// CUDA; null without a driver and a toolkit.
    pub cuda: Option<Cuda>,
    /// ROCm; null without an installation and a driver of its own.
    pub rocm: Option<Rocm>,
    /// Container engines.
    pub containers: ContainerTools,
    /// Compilers.
    pub compilers: Vec<Tool>,
    /// Python packages of machine learning.
    pub frameworks: Vec<Framework>,
    /// Libraries of arithmetic and communication.
    pub libraries: Vec<Library>,
}

impl Software {
    pub(crate) fn detect() -> Self {
        Self::find(&Host::this(), &Cpuid::of_this_cpu())
    }

    fn find(host: &Host, cpuid: &Cpuid) -> Self {
        let deadline = Deadline::after(TIME_TO_ANSWER);
        std::thread::scope(|scope| {
            let compilers = scope.spawn(|| tools::compilers(host, deadline));
            let containers = scope.spawn(|| tools::containers(host, deadline));
            let loader = scope.spawn(|| libraries::loader_cache(host, deadline));
            let cuda = scope.spawn(|| Cuda::find(host));
            let python = python::find(host, deadline);
            let folders = packages::folders(host, &python);
            let frameworks = packages::frameworks(host, &folders);
            let cuda = joined(cuda);
            let rocm = Rocm::find(host);
            let toolkits = cuda
                .iter()
                .flat_map(|cuda| &cuda.toolkits)
                .chain(rocm.iter().flat_map(|rocm| &rocm.toolkits));
            let places = libraries::Places {
                cached: joined(loader),
                toolkits: toolkits.map(|toolkit| host.at(&toolkit.path)).collect(),
                prefixes: python
                    .iter()
                    .filter(|python| python.kind != "system")
                    .map(|python| host.at(&python.prefix))
                    .collect(),
                packages: folders,
            };
            Self {
                os: Os::read(host.root()),
                environment: Environment::read(host, cpuid),
                libraries: libraries::find(host, places),
                python,
                cuda,
                rocm,
                containers: joined(containers),
                compilers: joined(compilers),
                frameworks,
            }
        })
    }
}

//! The tests.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::error::StressError;
use crate::load::Load;
use crate::settings::Settings;
use crate::{cpu, gpu, network, ram, storage};

/// A part of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Component {
    /// The processors.
    Cpu,
    /// A GPU.
    Gpu,
    /// The main memory.
    Ram,
    /// A disk.
    Storage,
    /// The network.
    Network,
}

impl Component {
    /// All of them, in the order they are tested.
    pub const ALL: [Self; 5] = [Self::Cpu, Self::Gpu, Self::Ram, Self::Storage, Self::Network];

    /// The name used in arguments and results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Gpu => "gpu",
            Self::Ram => "ram",
            Self::Storage => "storage",
            Self::Network => "network",
        }
    }
}

impl fmt::Display for Component {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One test.
#[derive(Debug, Clone, Copy)]
pub struct Test {
    /// What it loads.
    pub component: Component,
    /// Its name, unlike that of every other test.
    pub name: &'static str,
    /// What its rate counts a second.
    pub unit: &'static str,
    /// What it does.
    pub what: &'static str,
    /// How each result is verified.
    pub verified: &'static str,
    /// Whether it takes a size: of memory, or of a file.
    pub has_size: bool,
    /// Makes the load, or says what is missing.
    pub(crate) prepare: fn(&Settings) -> Result<Box<dyn Load>, StressError>,
}

/// All tests, by component.
pub const TESTS: [Test; 19] = [
    Test {
        component: Component::Cpu,
        name: "compute",
        unit: "Gop/s",
        what: "register-only arithmetic on each core and GEMM on all, in every element type of the processor",
        verified: "bit for bit with the first run and between cores; Freivalds' check of each product against its operands",
        has_size: false,
        prepare: cpu::compute,
    },
    Test {
        component: Component::Cpu,
        name: "hashing",
        unit: "MB/s",
        what: "SHA-256 on each core",
        verified: "the digest of the standard's message of a million letters, and that of random data with the first run's",
        has_size: false,
        prepare: cpu::hashing,
    },
    Test {
        component: Component::Cpu,
        name: "compression",
        unit: "MB/s",
        what: "deflate and inflate of text on each core",
        verified: "what is inflated is what was deflated; the compressed bytes are those of the first run",
        has_size: false,
        prepare: cpu::compression,
    },
    Test {
        component: Component::Gpu,
        name: "fp32",
        unit: "Gop/s",
        what: "a chain of GEMMs in f32",
        verified: "once with the reference on the host, then bit for bit with the first run",
        has_size: false,
        prepare: gpu::fp32,
    },
    Test {
        component: Component::Gpu,
        name: "fp64",
        unit: "Gop/s",
        what: "a chain of GEMMs in f64",
        verified: "once with the reference on the host, then bit for bit with the first run",
        has_size: false,
        prepare: gpu::fp64,
    },
    Test {
        component: Component::Gpu,
        name: "memory",
        unit: "GB/s",
        what: "passes over an array that stays in the GPU's memory",
        verified: "sums of rows of whole numbers, which are exact, with what the host computes",
        has_size: true,
        prepare: gpu::memory,
    },
    Test {
        component: Component::Gpu,
        name: "precision",
        unit: "Gop/s",
        what: "chains of GEMMs in bf16 and in f16",
        verified: "once with the reference on the host, then bit for bit with the first run",
        has_size: false,
        prepare: gpu::precision,
    },
    Test {
        component: Component::Gpu,
        name: "cfd",
        unit: "Gpoint/s",
        what: "steps of a diffusion stencil on a periodic grid",
        verified: "once with the reference on the host, then bit for bit with the first run",
        has_size: false,
        prepare: gpu::cfd,
    },
    Test {
        component: Component::Ram,
        name: "bandwidth",
        unit: "MB/s",
        what: "patterns written to memory and read back, by all cores",
        verified: "every word with what was written there",
        has_size: true,
        prepare: ram::bandwidth,
    },
    Test {
        component: Component::Ram,
        name: "latency",
        unit: "Mload/s",
        what: "a chase of pointers in random order",
        verified: "every pointer with what was written there, and the end of each turn",
        has_size: true,
        prepare: ram::latency,
    },
    Test {
        component: Component::Ram,
        name: "swap",
        unit: "MB/s",
        what: "memory moved to swap space and back",
        verified: "every word with what was written there",
        has_size: true,
        prepare: ram::swap,
    },
    Test {
        component: Component::Storage,
        name: "sequential-read",
        unit: "MB/s",
        what: "direct reads of large blocks in order",
        verified: "every word with what was written there",
        has_size: true,
        prepare: storage::sequential_read,
    },
    Test {
        component: Component::Storage,
        name: "sequential-write",
        unit: "MB/s",
        what: "direct writes of large blocks in order, read back",
        verified: "every word read back with what was written",
        has_size: true,
        prepare: storage::sequential_write,
    },
    Test {
        component: Component::Storage,
        name: "random-read",
        unit: "MB/s",
        what: "direct reads of small blocks anywhere",
        verified: "every word with what was written there",
        has_size: true,
        prepare: storage::random_read,
    },
    Test {
        component: Component::Storage,
        name: "random-write",
        unit: "MB/s",
        what: "direct writes of small blocks anywhere, read back",
        verified: "every word read back with what was written",
        has_size: true,
        prepare: storage::random_write,
    },
    Test {
        component: Component::Storage,
        name: "mixed",
        unit: "MB/s",
        what: "direct reads and writes of small blocks in flight together, seven reads to three writes",
        verified: "every word read with what was last written there",
        has_size: true,
        prepare: storage::mixed,
    },
    Test {
        component: Component::Network,
        name: "loopback",
        unit: "MB/s",
        what: "blocks sent to a server in this process and returned",
        verified: "every byte returned with what was sent",
        has_size: false,
        prepare: network::loopback,
    },
    Test {
        component: Component::Network,
        name: "point-to-point",
        unit: "MB/s",
        what: "blocks sent to `warpt serve` on another host (--target) and returned, on one connection",
        verified: "every byte returned with what was sent",
        has_size: false,
        prepare: network::point_to_point,
    },
    Test {
        component: Component::Network,
        name: "bidirectional",
        unit: "MB/s",
        what: "blocks in both directions on several connections at once, to --target or this host",
        verified: "every byte returned with what was sent",
        has_size: false,
        prepare: network::bidirectional,
    },
];

/// The test of a component with this name.
#[must_use]
pub fn find(component: &str, name: &str) -> Option<&'static Test> {
    TESTS.iter().find(|test| test.component.name() == component && test.name == name)
}

/// The tests of a component.
pub fn of_component(component: Component) -> impl Iterator<Item = &'static Test> {
    TESTS.iter().filter(move |test| test.component == component)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn names_are_unlike_each_other_and_every_component_has_tests() {
        let names: HashSet<_> = TESTS.iter().map(|test| test.name).collect();
        assert_eq!(names.len(), TESTS.len());
        for component in Component::ALL {
            assert!(of_component(component).count() >= 3, "{component}");
        }
        assert!(TESTS.iter().all(|test| !test.what.is_empty() && !test.verified.is_empty()));
    }
}

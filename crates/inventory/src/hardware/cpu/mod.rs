//! The processors: what they are called, how they are built, how fast they run.

mod caches;
mod cpuinfo;
mod features;
mod frequency;
mod numa;
mod topology;

use std::path::Path;

use serde::{Deserialize, Serialize};

pub use caches::{Cache, CacheKind};
pub use numa::NumaNode;
pub use topology::CoreKind;

use cpuinfo::CpuInfo;
use frequency::CpuidFrequencies;

/// The processors of the machine, taken together.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Cpu {
    /// The vendor, such as `Intel`, `AMD` or `ARM`.
    pub vendor: Option<String>,
    /// The model's name as the processor or the firmware gives it.
    pub model: Option<String>,
    /// The instruction set architecture, such as `x86_64` or `aarch64`.
    pub architecture: Option<String>,
    /// The vendor's family number (x86).
    pub family: Option<u32>,
    /// The vendor's model number (x86) or part number (ARM).
    pub model_number: Option<u32>,
    /// The stepping (x86) or revision (ARM).
    pub stepping: Option<u32>,
    /// The microcode's revision.
    pub microcode: Option<String>,
    /// Processor packages.
    pub sockets: Option<u32>,
    /// Physical cores that are online, of all sockets.
    pub physical_cores: Option<u32>,
    /// Hardware threads that are online, of all sockets.
    pub threads: Option<u32>,
    /// Hardware threads this process may use: fewer than `threads` under an affinity mask or a container's quota.
    pub usable_threads: Option<u32>,
    /// The guaranteed clock.
    pub base_mhz: Option<f64>,
    /// The highest clock of any core.
    pub boost_mhz: Option<f64>,
    /// The mean clock of all cores at the moment of the inventory.
    pub current_mhz: Option<f64>,
    /// The policy that chooses the clock, such as `performance`.
    pub governor: Option<String>,
    /// The instruction sets that matter to arithmetic, in a fixed order.
    pub instruction_sets: Vec<String>,
    /// The caches, a record for each level, kind and size.
    pub caches: Vec<Cache>,
    /// The memory nodes.
    pub numa_nodes: Vec<NumaNode>,
    /// The kinds of cores, where they differ.
    pub core_kinds: Vec<CoreKind>,
}

impl Cpu {
    /// Reads the processors of this machine; it takes a few milliseconds.
    #[must_use]
    pub fn detect() -> Self {
        let mut cpu = Self::read(Path::new("/"), CpuidFrequencies::of_this_cpu());
        cpu.architecture = Some(std::env::consts::ARCH.to_owned());
        cpu.usable_threads =
            std::thread::available_parallelism().ok().and_then(|n| u32::try_from(n.get()).ok());
        cpu
    }

    fn read(root: &Path, cpuid: CpuidFrequencies) -> Self {
        let info = CpuInfo::read(root);
        let topology = topology::read(root);
        let clocks = frequency::read(root, &info, cpuid);
        Self {
            vendor: info.vendor(),
            model: info.model(root),
            architecture: None,
            family: info.number("cpu family"),
            model_number: info.number("model").or_else(|| info.number("CPU part")),
            stepping: info.number("stepping").or_else(|| info.number("CPU revision")),
            microcode: info.field("microcode").map(str::to_owned),
            sockets: topology.sockets,
            physical_cores: topology.physical_cores,
            threads: topology.threads.or_else(|| info.threads()),
            usable_threads: None,
            base_mhz: clocks.base_mhz,
            boost_mhz: clocks.boost_mhz,
            current_mhz: clocks.current_mhz,
            governor: clocks.governor,
            instruction_sets: features::instruction_sets(info.flags()),
            caches: caches::read(root),
            numa_nodes: numa::read(root),
            core_kinds: topology.core_kinds,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::tree;

    #[test]
    fn two_sockets_with_two_threads_a_core() {
        let mut files = vec![(
            "proc/cpuinfo".to_owned(),
            "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 143\n\
             model name\t: Intel(R) Xeon(R) Platinum 8480+\nstepping\t: 8\nflags\t\t: fpu sse2 avx2 avx512f amx_tile\n"
                .to_owned(),
        )];
        for cpu in 0..8 {
            let at = format!("sys/devices/system/cpu/cpu{cpu}");
            files.push((format!("{at}/topology/physical_package_id"), format!("{}\n", cpu / 2 % 2)));
            files.push((format!("{at}/topology/core_cpus_list"), format!("{},{}\n", cpu % 4, cpu % 4 + 4)));
            files.push((format!("{at}/cpufreq/base_frequency"), "2000000\n".to_owned()));
            files.push((format!("{at}/cpufreq/cpuinfo_max_freq"), "3800000\n".to_owned()));
            files
                .push((format!("{at}/cpufreq/scaling_cur_freq"), format!("{}\n", 2_000_000 + cpu * 100_000)));
        }
        files.push(("sys/devices/system/cpu/online".to_owned(), "0-7\n".to_owned()));
        let root = tree(&files);
        let cpu = Cpu::read(root.path(), CpuidFrequencies::default());
        assert_eq!(cpu.vendor.as_deref(), Some("Intel"));
        assert_eq!(cpu.model.as_deref(), Some("Intel(R) Xeon(R) Platinum 8480+"));
        assert_eq!((cpu.sockets, cpu.physical_cores, cpu.threads), (Some(2), Some(4), Some(8)));
        assert_eq!(
            (cpu.base_mhz, cpu.boost_mhz, cpu.current_mhz),
            (Some(2000.0), Some(3800.0), Some(2350.0))
        );
        assert!(cpu.instruction_sets.iter().any(|set| set == "avx512f"));
        assert_eq!(cpu.core_kinds, []);
    }

    #[test]
    fn an_empty_machine_is_unknown_and_never_zero() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(Cpu::read(root.path(), CpuidFrequencies::default()), Cpu::default());
    }

    #[test]
    fn malformed_files_are_unknown() {
        let at = "sys/devices/system/cpu/cpu0";
        let root = tree(&[
            ("proc/cpuinfo", "no colon here\n: empty key\nmodel name\ncpu family\t: many\nflags\t:\n"),
            (&format!("{at}/topology/physical_package_id"), "-1\n"),
            (&format!("{at}/topology/core_cpus_list"), "0-99999999999\n"),
            (&format!("{at}/cache/index0/size"), "lots\n"),
            (&format!("{at}/cpufreq/scaling_cur_freq"), "<unknown>\n"),
        ]);
        let cpu = Cpu::read(root.path(), CpuidFrequencies::default());
        assert_eq!((cpu.sockets, cpu.physical_cores, cpu.threads), (None, None, Some(1)));
        assert_eq!((cpu.family, cpu.current_mhz), (None, None));
        assert_eq!(cpu.caches, []);
    }
}

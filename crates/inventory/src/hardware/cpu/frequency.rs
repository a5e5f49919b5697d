//! The clocks: cpufreq where the kernel has it, else what the processor says of itself.

use std::path::Path;

use super::cpuinfo::CpuInfo;
use crate::sysfs;

/// The frequencies of CPUID leaf 0x16.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct CpuidFrequencies {
    pub(super) base_mhz: Option<f64>,
    pub(super) boost_mhz: Option<f64>,
}

impl CpuidFrequencies {
    #[cfg(target_arch = "x86_64")]
    pub(super) fn of_this_cpu() -> Self {
        let known = |mhz: u16| (mhz > 0).then_some(f64::from(mhz));
        raw_cpuid::CpuId::new().get_processor_frequency_info().map_or_else(Self::default, |info| Self {
            base_mhz: known(info.processor_base_frequency()),
            boost_mhz: known(info.processor_max_frequency()),
        })
    }

    #[cfg(not(target_arch = "x86_64"))]
    pub(super) fn of_this_cpu() -> Self {
        Self::default()
    }
}

#[derive(Debug, Default)]
pub(super) struct Clocks {
    pub(super) base_mhz: Option<f64>,
    pub(super) boost_mhz: Option<f64>,
    pub(super) current_mhz: Option<f64>,
    pub(super) governor: Option<String>,
}

pub(super) fn read(root: &Path, info: &CpuInfo, cpuid: CpuidFrequencies) -> Clocks {
    let folder = root.join("sys/devices/system/cpu");
    let cpus: Vec<u32> = sysfs::numbered(&folder, "cpu").into_iter().map(|(number, _)| number).collect();
    let first = |name: &str| cpus.iter().find_map(|&cpu| khz(&folder, cpu, name));
    let nominal = || {
        let mhz = |&cpu: &u32| sysfs::positive(folder.join(format!("cpu{cpu}/acpi_cppc/nominal_freq")));
        cpus.iter().find_map(mhz).map(|mhz| mhz as f64)
    };
    let named = || info.field("model name").and_then(clock_in_name);
    let current = mean(cpus.iter().filter_map(|&cpu| khz(&folder, cpu, "scaling_cur_freq")));
    let reported =
        || mean(info.fields("cpu MHz").filter_map(|mhz| mhz.parse().ok()).filter(|&mhz: &f64| mhz > 0.0));
    Clocks {
        base_mhz: first("base_frequency").or(cpuid.base_mhz).or_else(nominal).or_else(named),
        boost_mhz: boost_mhz(&folder, &cpus).or(cpuid.boost_mhz),
        current_mhz: current.or_else(reported),
        governor: cpus
            .first()
            .and_then(|cpu| sysfs::text(folder.join(format!("cpu{cpu}/cpufreq/scaling_governor")))),
    }
}

/// The highest clock that any of these CPUs can have.
pub(super) fn boost_mhz(folder: &Path, cpus: &[u32]) -> Option<f64> {
    cpus.iter().filter_map(|&cpu| khz(folder, cpu, "cpuinfo_max_freq")).max_by(f64::total_cmp)
}

/// A file of cpufreq, from kHz to MHz.
fn khz(folder: &Path, cpu: u32, name: &str) -> Option<f64> {
    sysfs::positive(folder.join(format!("cpu{cpu}/cpufreq/{name}"))).map(|khz| khz as f64 / 1000.0)
}

/// The clock in a name such as `Intel(R) Xeon(R) CPU E5-2690 v4 @ 2.60GHz`.
fn clock_in_name(name: &str) -> Option<f64> {
    let ghz: f64 = name.rsplit_once('@')?.1.trim().strip_suffix("GHz")?.trim().parse().ok()?;
    (ghz > 0.0 && ghz < 100.0).then(|| (ghz * 1000.0).round())
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0u32), |(sum, count), value| (sum + value, count + 1));
    (count > 0).then(|| (sum / f64::from(count)).round())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::tree;

    #[test]
    fn without_cpufreq_the_processors_own_words_count() {
        let root = tree(&[(
            "proc/cpuinfo",
            "processor : 0\nmodel name : Intel(R) Xeon(R) CPU @ 2.60GHz\ncpu MHz : 2593.9\n\nprocessor : 1\ncpu MHz : 0\n",
        )]);
        let info = CpuInfo::read(root.path());
        let clocks = read(root.path(), &info, CpuidFrequencies::default());
        assert_eq!(
            (clocks.base_mhz, clocks.boost_mhz, clocks.current_mhz),
            (Some(2600.0), None, Some(2594.0))
        );

        let cpuid = CpuidFrequencies { base_mhz: Some(2500.0), boost_mhz: Some(3500.0) };
        let clocks = read(root.path(), &info, cpuid);
        assert_eq!((clocks.base_mhz, clocks.boost_mhz), (Some(2500.0), Some(3500.0)));
    }

    #[test]
    fn names_without_a_clock_have_none() {
        for name in ["AMD EPYC 9654", "CPU @ fastGHz", "CPU @ -1GHz", "CPU @ 1e9GHz", "@"] {
            assert_eq!(clock_in_name(name), None, "{name}");
        }
    }
}

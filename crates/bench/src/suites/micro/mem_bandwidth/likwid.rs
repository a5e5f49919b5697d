//! likwid-bench as a peer of `mem_bandwidth`: copy and triad on working sets of the same sizes.

use std::process::Command;
use std::time::Duration;

use warpforge_probes::memory::stream::{Kernel, Stores};

use super::super::memory_levels::{DRAM, Machine};
use super::processors;
use super::settings::{Level, Settings};
use crate::benchmark::{BenchmarkError, MetricKey, Peer, RunContext};
use crate::external::{Tool, execute};
use crate::record::Params;

/// A test takes about a second.
const LONGEST: Duration = Duration::from_secs(120);

/// The peer.
#[derive(Debug)]
pub(super) struct Likwid;

impl Peer for Likwid {
    fn name(&self) -> &'static str {
        "likwid-bench"
    }

    fn description(&self) -> &'static str {
        "copy and triad by all threads, about a second each; Debian package likwid"
    }

    fn prepare(&self, params: &Params) -> Result<(), BenchmarkError> {
        let settings = Settings::new(params, &Machine::detect(), &processors()?)?;
        tests(&settings)?;
        tool().map(drop)
    }

    fn run(&self, context: &mut RunContext<'_>) -> Result<(), BenchmarkError> {
        let machine = Machine::detect();
        let settings = Settings::new(context.params(), &machine, &processors()?)?;
        let tool = tool()?;
        context.version(tool.version("-v")?);
        let tests = tests(&settings)?;
        context.plan(tests.len());
        let scopes = settings.scopes();
        // The widest comes first.
        let (scope, cpus) =
            scopes.first().ok_or_else(|| BenchmarkError::Failed("no processors".to_owned()))?;
        let hierarchy = machine.hierarchy(cpus);
        for test in &tests {
            let Some(bytes) = settings.bytes_per_thread(test.level, &hierarchy, cpus.len()) else { continue };
            let mut key = MetricKey::more_is_better("bandwidth", "GB/s")
                .tag("kernel", test.kernel.name())
                .tag("level", &test.level_name)
                .tag("scope", scope);
            if test.level_name == DRAM {
                key = key.tag("stores", test.stores.name());
            }
            context.begin(&key.label());
            let mut command = Command::new(tool.path());
            // The working set is divided among the threads.
            let set = format!("N:{}kB:{}", (bytes * cpus.len()).div_ceil(1000), cpus.len());
            command.args(["-t", &test.name(), "-w", &set]);
            let printed = execute(command, LONGEST, &|| context.stopped())?;
            let rate = megabytes(&printed).ok_or_else(|| {
                BenchmarkError::Failed(format!("likwid-bench {} printed no `MByte/s:` line", test.name()))
            })?;
            context.record(key, vec![rate / 1e3])?;
        }
        Ok(())
    }
}

fn tool() -> Result<Tool, BenchmarkError> {
    Tool::on_path(&["likwid-bench"], "likwid")
}

/// A test that both have.
struct Test {
    level: Level,
    level_name: String,
    kernel: Kernel,
    stores: Stores,
}

impl Test {
    /// What likwid-bench calls it.
    fn name(&self) -> String {
        // Its triad has four arrays; that of STREAM is called stream.
        let kernel = if self.kernel == Kernel::Copy { "copy" } else { "stream" };
        let past = if self.stores == Stores::Nontemporal { "_mem" } else { "" };
        format!("{kernel}{past}{}", instructions())
    }
}

/// The widest instructions that its tests are named by.
fn instructions() -> &'static str {
    #[cfg(target_arch = "x86_64")]
    {
        if std::is_x86_feature_detected!("avx512f") {
            return "_avx512";
        }
        if std::is_x86_feature_detected!("avx") {
            return "_avx";
        }
        "_sse"
    }
    #[cfg(not(target_arch = "x86_64"))]
    ""
}

/// The tests of both among what is to be measured.
fn tests(settings: &Settings) -> Result<Vec<Test>, BenchmarkError> {
    let mut tests = Vec::new();
    for (level_name, level) in &settings.levels {
        for &stores in level.stores() {
            for (_, kernel) in &settings.kernels {
                if matches!(kernel, Kernel::Copy | Kernel::Triad) {
                    let (level, level_name) = (*level, level_name.clone());
                    tests.push(Test { level, level_name, kernel: *kernel, stores });
                }
            }
        }
    }
    if tests.is_empty() {
        return Err(BenchmarkError::NotPossible("likwid-bench has copy and triad alone".to_owned()));
    }
    Ok(tests)
}

/// The number behind `MByte/s:`.
fn megabytes(printed: &str) -> Option<f64> {
    let number = printed.lines().find_map(|line| line.trim().strip_prefix("MByte/s:"))?;
    number.trim().parse().ok().filter(|rate: &f64| rate.is_finite() && *rate > 0.0)
}

#[cfg(test)]
mod tests {
    use super::super::MemBandwidth;
    use super::*;
    use crate::suites::testing::round;

    #[test]
    fn the_tests_of_both_are_run() {
        let settings = |given| {
            Settings::new(&round(&MemBandwidth, given, 0.0).params, &Machine::unknown(), &[0, 1]).unwrap()
        };
        let names: Vec<_> =
            tests(&settings(&[("levels", "L1,DRAM")])).unwrap().iter().map(Test::name).collect();
        let plain = |name: &String| name.trim_end_matches(instructions()).to_owned();
        let plain: Vec<_> = names.iter().map(plain).collect();
        assert_eq!(plain, ["copy", "stream", "copy", "stream", "copy_mem", "stream_mem"]);
        assert!(matches!(tests(&settings(&[("kernels", "add")])), Err(BenchmarkError::NotPossible(_))));
    }

    #[test]
    fn the_rate_is_read() {
        assert_eq!(megabytes("Cycles:\t\t\t1\nMByte/s:\t\t1234.50\nCycles per update:\t0.6\n"), Some(1234.5));
        for none in ["", "MByte/s: nan", "MByte/s:", "MByte/s: 0"] {
            assert_eq!(megabytes(none), None, "{none}");
        }
    }
}

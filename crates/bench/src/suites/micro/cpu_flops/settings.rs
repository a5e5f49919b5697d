//! The parameters of `cpu_flops`, checked against the machine.

use warpforge_probes::cpu::Dtype;

use super::super::memory_levels::{list_of, named};
use crate::benchmark::{BenchmarkError, int, text};
use crate::record::Params;

/// The largest matrices: three of them, and their copies, in f64 take some 10 GB.
const LARGEST_GEMM: i64 = 16_384;
/// The largest handicap: a run that takes eleven times as long.
const LARGEST_HANDICAP: i64 = 1_000;

/// A kind of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kernel {
    /// Multiplications and additions in registers.
    Fma,
    /// Products of matrices.
    Gemm,
}

impl Kernel {
    const ALL: [Self; 2] = [Self::Fma, Self::Gemm];

    /// The name used in parameters and tags.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Fma => "fma",
            Self::Gemm => "gemm",
        }
    }
}

/// What the parameters take.
pub(super) fn takes() -> Vec<(&'static str, String)> {
    vec![
        ("threads", "as many as there are processors and fewer; 0 for all".to_owned()),
        ("dtypes", list_of(&Dtype::ALL.map(Dtype::name))),
        ("kernels", list_of(&Kernel::ALL.map(Kernel::name))),
        ("gemm_size", format!("1 to {LARGEST_GEMM}")),
        ("handicap_percent", format!("0 to {LARGEST_HANDICAP}")),
    ]
}

/// What to measure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Settings {
    cpus: Vec<usize>,
    /// Whether `cpus` are all that may be used.
    all: bool,
    /// The types by name, the widest first.
    pub(super) dtypes: Vec<(String, Dtype)>,
    /// The kinds of work by name.
    pub(super) kernels: Vec<(String, Kernel)>,
    /// Rows and columns of the matrices.
    pub(super) gemm_size: usize,
    handicap_percent: u64,
}

impl Settings {
    /// # Errors
    /// If a parameter makes no sense on this machine.
    pub(super) fn new(params: &Params, allowed: &[usize]) -> Result<Self, BenchmarkError> {
        let threads = within(params, "threads", 0, allowed.len() as i64, "; 0 stands for all")?;
        let threads = if threads == 0 { allowed.len() } else { threads };
        // The last processors first: the first ones serve most interrupts.
        let cpus: Vec<_> = allowed.iter().rev().take(threads).copied().collect();
        let dtypes = Dtype::ALL.map(|dtype| (dtype.name().to_owned(), dtype));
        let kernels = Kernel::ALL.map(|kernel| (kernel.name().to_owned(), kernel));
        Ok(Self {
            all: threads == allowed.len(),
            cpus,
            dtypes: named("dtypes", text(params, "dtypes"), &dtypes)?,
            kernels: named("kernels", text(params, "kernels"), &kernels)?,
            gemm_size: within(params, "gemm_size", 1, LARGEST_GEMM, "")?,
            handicap_percent: within(params, "handicap_percent", 0, LARGEST_HANDICAP, "")? as u64,
        })
    }

    /// The sets of processors to measure with, and what they are called.
    pub(super) fn scopes(&self) -> Vec<(&'static str, Vec<usize>)> {
        let one = ("one_core", self.cpus[..1].to_vec());
        match (self.cpus.len(), self.all) {
            (1, _) => vec![one],
            (_, true) => vec![one, ("all_cores", self.cpus.clone())],
            (_, false) => vec![one, ("some_cores", self.cpus.clone())],
        }
    }

    /// The work to do where this much is counted.
    pub(super) fn with_handicap(&self, counted: u64) -> u64 {
        counted + counted.saturating_mul(self.handicap_percent).div_ceil(100)
    }
}

fn within(params: &Params, name: &str, least: i64, most: i64, hint: &str) -> Result<usize, BenchmarkError> {
    let value = int(params, name);
    match usize::try_from(value) {
        Ok(number) if (least..=most).contains(&value) => Ok(number),
        _ => Err(BenchmarkError::BadInput(format!("{name}={value}: give {least} to {most}{hint}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::super::CpuFlops;
    use super::*;
    use crate::suites::testing::{refused, round};

    fn settings(name: &str, value: &str) -> Result<Settings, BenchmarkError> {
        Settings::new(&round(&CpuFlops, &[(name, value)], 0.0).params, &[4, 5, 7])
    }

    #[test]
    fn what_makes_no_sense_is_refused_and_what_exists_is_named() {
        refused(settings, "threads", &["4", "-1"], "0 to 3");
        refused(settings, "dtypes", &["f32,f16"], "bf16");
        refused(settings, "dtypes", &[""], "int8");
        refused(settings, "kernels", &["fft"], "gemm");
        refused(settings, "gemm_size", &["0", "99999"], "1 to 16384");
        refused(settings, "handicap_percent", &["-1"], "0 to 1000");
    }

    #[test]
    fn scopes_take_the_last_processors() {
        let scopes = |threads| settings("threads", threads).unwrap().scopes();
        assert_eq!(scopes("0"), [("one_core", vec![7]), ("all_cores", vec![7, 5, 4])]);
        assert_eq!(scopes("2"), [("one_core", vec![7]), ("some_cores", vec![7, 5])]);
        assert_eq!(scopes("1"), [("one_core", vec![7])]);
    }

    #[test]
    fn a_handicap_adds_work() {
        assert_eq!(settings("threads", "0").unwrap().with_handicap(1000), 1000);
        assert_eq!(settings("handicap_percent", "10").unwrap().with_handicap(1000), 1100);
        assert_eq!(settings("handicap_percent", "10").unwrap().with_handicap(1), 2);
    }
}

//! The parameters that the CPU's benchmarks share, checked against the machine.

use warpforge_linalg::{Kind, Problem};

use crate::benchmark::{BenchmarkError, int};
use crate::record::{ParamValue, Params};
use crate::suites::values::within;

/// The largest order: a matrix of it has 128 GiB.
pub(super) const LARGEST_ORDER: i64 = 131_072;
const LARGEST_BLOCK: i64 = 4096;

/// The parameters with their defaults.
pub(super) fn params() -> Params {
    Params::from([
        ("n".to_owned(), ParamValue::Int(4096)),
        ("nb".to_owned(), ParamValue::Int(256)),
        ("threads".to_owned(), ParamValue::Int(0)),
        ("seed".to_owned(), ParamValue::Int(1)),
    ])
}

/// What the parameters take.
pub(super) fn takes() -> Vec<(&'static str, String)> {
    vec![
        ("n", format!("2 to {LARGEST_ORDER}")),
        ("nb", format!("1 to {LARGEST_BLOCK}")),
        ("threads", "as many as there are processors and fewer; 0 for all".to_owned()),
        ("seed", "a whole number".to_owned()),
    ]
}

/// What to solve, and with what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Settings {
    pub(super) problem: Problem,
    pub(super) block: usize,
    /// The processors, one for each thread.
    pub(super) cpus: Vec<usize>,
}

impl Settings {
    /// # Errors
    /// If a parameter makes no sense on this machine, or the matrices do not fit its memory.
    pub(super) fn new(params: &Params, kind: Kind, bytes_per_element: u64) -> Result<Self, BenchmarkError> {
        let allowed = allowed_cpus()?;
        let order = within(params, "n", 2, LARGEST_ORDER)?;
        let block = within(params, "nb", 1, LARGEST_BLOCK)?;
        let threads = within(params, "threads", 0, allowed.len() as i64)?;
        let threads = if threads == 0 { allowed.len() } else { threads };
        // The last processors first: the first ones serve most interrupts.
        let cpus = allowed.into_iter().rev().take(threads).collect();
        let needed = (order as u64).pow(2) * bytes_per_element;
        if let Some(free) = warpforge_tensor::memory::available_bytes().filter(|&free| free < needed) {
            return Err(BenchmarkError::NotPossible(format!(
                "n={order} needs {} MiB of memory, {} MiB are free",
                needed >> 20,
                free >> 20
            )));
        }
        let seed = int(params, "seed").cast_unsigned();
        Ok(Self { problem: Problem { order, seed, kind }, block, cpus })
    }
}

/// The processors this process may use.
pub(super) fn allowed_cpus() -> Result<Vec<usize>, BenchmarkError> {
    warpforge_probes::affinity::allowed()
        .map_err(|error| BenchmarkError::Failed(format!("cannot tell which processors may be used: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(name: &str, value: i64) -> Result<Settings, BenchmarkError> {
        let mut params = params();
        params.insert(name.to_owned(), ParamValue::Int(value));
        Settings::new(&params, Kind::Uniform, 8)
    }

    #[test]
    fn what_makes_no_sense_is_refused_by_name() {
        for (name, value, expected) in [
            ("n", 1, "2 to 131072"),
            ("n", -5, "2 to 131072"),
            ("nb", 0, "1 to 4096"),
            ("threads", -1, "give 0 to"),
            ("threads", 1 << 40, "give 0 to"),
        ] {
            let error = with(name, value).unwrap_err();
            assert!(matches!(error, BenchmarkError::BadInput(_)), "{error:?}");
            let error = error.to_string();
            assert!(error.contains(&format!("{name}={value}")) && error.contains(expected), "{error}");
        }
        assert!(with("n", 100).is_ok());
        assert_eq!(with("threads", 1).unwrap().cpus.len(), 1);
    }

    #[test]
    fn a_matrix_larger_than_the_memory_is_not_possible() {
        let mut params = params();
        params.insert("n".to_owned(), ParamValue::Int(LARGEST_ORDER));
        let error = Settings::new(&params, Kind::Uniform, 1 << 20).unwrap_err();
        assert!(matches!(error, BenchmarkError::NotPossible(_)), "{error}");
        assert!(error.to_string().contains("n=131072"), "{error}");
    }
}

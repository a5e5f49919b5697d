//! The parameters of the GPU's benchmarks.

use warpforge_backend_gpu::probe::FactorType;
use warpforge_linalg::{Kind, Problem};

use super::super::settings::{LARGEST_ORDER, allowed_cpus};
use crate::benchmark::{BenchmarkError, int};
use crate::record::{ParamValue, Params};
use crate::suites::device::DEVICES;
use crate::suites::values::within;

/// The largest order that is chosen for a device.
const LARGEST_CHOSEN: usize = 32_768;

/// The parameters with their defaults.
pub(super) fn params() -> Params {
    Params::from([
        ("n".to_owned(), ParamValue::Int(0)),
        ("device".to_owned(), ParamValue::Int(0)),
        ("seed".to_owned(), ParamValue::Int(1)),
    ])
}

/// What the parameters take.
pub(super) fn takes() -> Vec<(&'static str, String)> {
    vec![
        (
            "n",
            format!("2 to {LARGEST_ORDER}, or 0 for the largest power of two to {LARGEST_CHOSEN} that fits"),
        ),
        ("device", DEVICES.to_owned()),
        ("seed", "a whole number".to_owned()),
    ]
}

/// What to solve.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Settings {
    /// The order, where it is not left to the device.
    order: Option<usize>,
    seed: u64,
    kind: Kind,
    pub(super) factors: FactorType,
    /// The processors that make the matrix and check the solution.
    pub(super) cpus: Vec<usize>,
}

impl Settings {
    /// # Errors
    /// If a parameter makes no sense.
    pub(super) fn new(params: &Params, kind: Kind, factors: FactorType) -> Result<Self, BenchmarkError> {
        let order = match int(params, "n") {
            0 => None,
            _ => Some(within(params, "n", 2, LARGEST_ORDER)?),
        };
        let seed = int(params, "seed").cast_unsigned();
        Ok(Self { order, seed, kind, factors, cpus: allowed_cpus()? })
    }

    /// The system to solve on a device with so many free bytes.
    ///
    /// # Errors
    /// If the device has no memory for the matrix.
    pub(super) fn problem(&self, free: usize) -> Result<Problem, BenchmarkError> {
        let needed = |order: usize| order.pow(2) * self.factors.bytes_per_element();
        let largest = (1..=LARGEST_CHOSEN.ilog2()).rev().map(|bits| 1 << bits).find(|&n| needed(n) <= free);
        let order = self.order.or(largest).unwrap_or(2);
        if free < needed(order) {
            return Err(BenchmarkError::NotPossible(format!(
                "n={order} needs {} MiB of device memory, {} MiB are free",
                needed(order) >> 20,
                free >> 20
            )));
        }
        Ok(Problem { order, seed: self.seed, kind: self.kind })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(order: i64) -> Settings {
        let mut params = params();
        params.insert("n".to_owned(), ParamValue::Int(order));
        Settings::new(&params, Kind::Uniform, FactorType::F64).unwrap()
    }

    #[test]
    fn an_order_that_is_not_given_is_the_largest_that_fits() {
        let order = |free| settings(0).problem(free).map(|problem| problem.order).ok();
        assert_eq!(order(140 << 30), Some(LARGEST_CHOSEN));
        assert_eq!(order(16 << 30), Some(32_768));
        assert_eq!(order((16 << 30) - 1), Some(16_384));
        assert_eq!(order(63), None);
    }

    #[test]
    fn an_order_that_is_given_fits_or_is_refused() {
        assert_eq!(settings(100).problem(160_000).unwrap().order, 100);
        let error = settings(65_536).problem(16 << 30).unwrap_err().to_string();
        assert!(error.contains("65536 MiB") && error.contains("16384 MiB"), "{error}");
    }
}

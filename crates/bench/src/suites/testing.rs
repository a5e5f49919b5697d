//! What the tests of the suites share.

use std::fmt::Debug;

use crate::benchmark::{Benchmark, BenchmarkError, Round, override_params};
use crate::record::{ParamValue, Params, params};

/// A round of a benchmark, some of its parameters as the user would give them.
pub(super) fn round(benchmark: &dyn Benchmark, values: &[(&str, &str)], seconds: f64) -> Round {
    let mut spec = benchmark.spec();
    for (name, value) in values {
        override_params(&mut spec, name, value).unwrap();
    }
    Round {
        id: spec.id,
        params: spec.params.unwrap_or_default(),
        seconds,
        burn_in_seconds: 0.0,
        beside: None,
    }
}

/// The defaults of a benchmark, some replaced.
pub(super) fn with(benchmark: &dyn Benchmark, overrides: &[(&str, ParamValue)]) -> Params {
    let mut all = benchmark.spec().params.unwrap();
    all.extend(params(overrides));
    all
}

/// A number that a benchmark refuses, named with what is accepted.
pub(super) fn out_of_range(benchmark: &dyn Benchmark, name: &str, value: i64, accepted: &str) {
    let error = benchmark.prepare(&with(benchmark, &[(name, ParamValue::Int(value))])).unwrap_err();
    let BenchmarkError::BadInput(message) = error else { panic!("{error}") };
    assert!(message.contains(&format!("`{name}` is {value}")) && message.contains(accepted), "{message}");
}

/// Values of a parameter that are refused, each named with what is accepted.
pub(super) fn refused<T: Debug>(
    settings: impl Fn(&str, &str) -> Result<T, BenchmarkError>,
    name: &str,
    values: &[&str],
    accepted: &str,
) {
    for value in values {
        let error = settings(name, value).unwrap_err();
        assert!(matches!(error, BenchmarkError::BadInput(_)), "{error:?}");
        let error = error.to_string();
        assert!(error.contains(&format!("{name}={value}")) && error.contains(accepted), "{error}");
    }
}

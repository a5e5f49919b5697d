//! Checked values of parameters.

use std::fmt::Display;

use crate::benchmark::{BenchmarkError, int};
use crate::record::Params;

/// A parameter that is a whole number of a range, both ends included.
///
/// # Errors
/// [`BenchmarkError::BadInput`] with the range.
pub(crate) fn within(params: &Params, name: &str, least: i64, most: i64) -> Result<usize, BenchmarkError> {
    let value = int(params, name);
    match usize::try_from(value) {
        Ok(number) if (least..=most).contains(&value) => Ok(number),
        _ => Err(bad_value(name, &value, &format!("give {least} to {most}"))),
    }
}

/// A parameter that makes no sense.
pub(crate) fn bad_value(name: &str, value: &dyn Display, reason: &str) -> BenchmarkError {
    BenchmarkError::BadInput(format!("{name}={value}: {reason}"))
}

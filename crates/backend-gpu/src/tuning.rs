//! Measures alternatives at compile time.

use std::sync::Arc;
use std::time::Duration;

use crate::driver::{Event, Gpu, Stream};
use crate::error::{GpuError, Result};

/// The environment variable that enables measuring.
const TUNING: &str = "WARPFORGE_TUNING";

/// Measured runs, after a warm-up.
const RUNS: usize = 3;

/// The least time of a few runs, after a warm-up. With tuning off it is zero, so the first alternative that runs is
/// chosen.
pub(crate) fn least_time(gpu: &Arc<Gpu>, stream: &Stream, run: impl Fn() -> Result<()>) -> Result<Duration> {
    run()?;
    stream.synchronise()?;
    if !is_tuned()? {
        return Ok(Duration::ZERO);
    }
    let (begin, end) = (Event::new(gpu)?, Event::new(gpu)?);
    let mut least = Duration::MAX;
    for _ in 0..RUNS {
        begin.record(stream)?;
        run()?;
        end.record(stream)?;
        stream.synchronise()?;
        least = least.min(end.since(&begin)?);
    }
    Ok(least)
}

/// Checks the value of the variable.
pub(crate) fn check() -> Result<()> {
    is_tuned().map(drop)
}

fn is_tuned() -> Result<bool> {
    is_on(std::env::var(TUNING).ok().as_deref())
}

fn is_on(variable: Option<&str>) -> Result<bool> {
    match variable {
        None | Some("on") => Ok(true),
        Some("off") => Ok(false),
        Some(other) => Err(GpuError::Other(format!("{TUNING} is `{other}`; there are on and off"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tuning_is_on_by_default() {
        assert!(is_on(None).unwrap() && is_on(Some("on")).unwrap() && !is_on(Some("off")).unwrap());
        let error = is_on(Some("fast")).unwrap_err().to_string();
        assert!(error.contains("WARPFORGE_TUNING is `fast`; there are on and off"), "{error}");
    }
}

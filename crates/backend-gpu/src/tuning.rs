//! Which of several ways is the fastest: each is run a few times while a program is compiled.

use std::sync::Arc;
use std::time::Duration;

use crate::driver::{Event, Gpu, Stream};
use crate::error::{GpuError, Result};

/// The variable that says whether ways are measured.
const TUNING: &str = "WARPFORGE_TUNING";

/// Times that a way is measured, after one run that is not.
const RUNS: usize = 3;

/// The least time of a few runs, after one that is not measured. With tuning off that is all, and every way takes no time:
/// then the first is taken that runs.
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

/// Whether the variable says something that is understood.
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
    fn tuning_is_on_unless_it_is_turned_off() {
        assert!(is_on(None).unwrap() && is_on(Some("on")).unwrap() && !is_on(Some("off")).unwrap());
        let error = is_on(Some("fast")).unwrap_err().to_string();
        assert!(error.contains("WARPFORGE_TUNING is `fast`; there are on and off"), "{error}");
    }
}

//! Loads of the main memory.

mod bandwidth;
mod latency;
mod swap;

use crate::error::StressError;
use crate::load::Load;
use crate::settings::Settings;
use crate::workers::Workers;

/// Least memory that a test makes sense with.
const LEAST_BYTES: u64 = 1 << 20;

/// The part of the available memory that is used unless the user says how much.
const USUAL_SHARE: f64 = 0.25;

pub(crate) fn bandwidth(settings: &Settings) -> Result<Box<dyn Load>, StressError> {
    let bytes = enough(settings.resources.memory(settings.bytes, USUAL_SHARE, u64::MAX)?)?;
    Ok(Box::new(bandwidth::Bandwidth::new(Workers::new(settings)?, bytes)?))
}

pub(crate) fn latency(settings: &Settings) -> Result<Box<dyn Load>, StressError> {
    let bytes = enough(settings.resources.memory(settings.bytes, USUAL_SHARE, latency::USUAL_BYTES)?)?;
    Ok(Box::new(latency::Latency::new(Workers::new(settings)?, bytes)?))
}

pub(crate) fn swap(settings: &Settings) -> Result<Box<dyn Load>, StressError> {
    let bytes = enough(settings.resources.swap(settings.bytes, swap::USUAL_BYTES)?)?;
    Ok(Box::new(swap::Swap::new(bytes)?))
}

/// Refuses so little memory that nothing would be tested.
fn enough(bytes: u64) -> Result<usize, StressError> {
    if bytes < LEAST_BYTES {
        return Err(StressError::Missing(format!(
            "{} of memory are too few: at least {} are needed",
            warpforge_diag::bytes(bytes),
            warpforge_diag::bytes(LEAST_BYTES)
        )));
    }
    usize::try_from(bytes)
        .map_err(|_| StressError::Missing(format!("{} have no addresses here", warpforge_diag::bytes(bytes))))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::load::Iteration;
    use crate::settings::Resources;

    fn settings(bytes: u64) -> Settings {
        let resources = Resources { memory_bytes: Some(256 << 20), swap_bytes: Some(0) };
        Settings { threads: Some(2), bytes: Some(bytes), resources, ..Settings::new(Duration::ZERO) }
    }

    #[test]
    fn memory_is_right_until_a_result_is_falsified() {
        for prepare in [bandwidth, latency] {
            let mut load = prepare(&settings(3 << 20)).unwrap();
            for number in 1..=5 {
                let work = load.iterate(Iteration { number, falsify: number == 4 }).unwrap();
                assert_eq!(work.errors > 0, number == 4, "{number}: {:?}", work.mismatches);
                assert!(work.amount > 0.0);
                for mismatch in &work.mismatches {
                    assert!(
                        mismatch.location.contains("core") && mismatch.location.contains("byte"),
                        "{mismatch:?}"
                    );
                    assert_ne!(mismatch.expected, mismatch.found);
                }
            }
        }
    }

    #[test]
    fn too_much_too_little_and_no_swap_are_refused() {
        let refusal = |bytes, prepare: fn(&Settings) -> Result<Box<dyn Load>, StressError>| {
            prepare(&settings(bytes)).err().map(|error| error.to_string()).unwrap_or_default()
        };
        assert!(refusal(200 << 20, bandwidth).contains("half of what is available"));
        assert!(refusal(1000, latency).contains("too few"));
        assert!(refusal(1 << 20, swap).contains("no free swap"));
    }
}

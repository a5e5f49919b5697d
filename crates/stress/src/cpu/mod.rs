//! Loads of the processors.

mod compression;
mod compute;
mod freivalds;
mod hashing;

use crate::error::StressError;
use crate::load::Load;
use crate::settings::Settings;
use crate::workers::Workers;

pub(crate) fn compute(settings: &Settings) -> Result<Box<dyn Load>, StressError> {
    Ok(Box::new(compute::Compute::new(Workers::new(settings)?)?))
}

pub(crate) fn hashing(settings: &Settings) -> Result<Box<dyn Load>, StressError> {
    Ok(Box::new(hashing::Hashing::new(Workers::new(settings)?)))
}

pub(crate) fn compression(settings: &Settings) -> Result<Box<dyn Load>, StressError> {
    Ok(Box::new(compression::Compression::new(Workers::new(settings)?)))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::load::Iteration;
    use crate::settings::Resources;

    #[test]
    fn each_load_is_right_until_a_result_is_falsified() {
        let settings = Settings {
            threads: Some(2),
            resources: Resources::default(),
            ..Settings::new(Duration::from_secs(1))
        };
        for prepare in [compute, hashing, compression] {
            let mut load = prepare(&settings).unwrap();
            for number in 1..=2 {
                let work = load.iterate(Iteration { number, falsify: false }).unwrap();
                assert_eq!(work.errors, 0, "{:?}", work.mismatches);
                assert!(work.amount > 0.0);
            }
            let work = load.iterate(Iteration { number: 3, falsify: true }).unwrap();
            assert!(work.errors > 0);
            let mismatch = &work.mismatches[0];
            assert!(mismatch.expected != mismatch.found && !mismatch.location.is_empty(), "{mismatch:?}");
            let work = load.iterate(Iteration { number: 4, falsify: false }).unwrap();
            assert_eq!(work.errors, 0, "a falsified copy must not stay: {:?}", work.mismatches);
        }
    }
}

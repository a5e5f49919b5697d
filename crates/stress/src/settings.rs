//! How tests run, and what they may take of the machine.

use std::path::PathBuf;
use std::time::Duration;

use warpforge::Device;
use warpforge_inventory::hardware::Memory;

use crate::error::StressError;

/// The largest part of the available memory that a test uses.
pub const MOST_MEMORY_SHARE: f64 = 0.5;
/// The largest part of the free space of a file system that a test uses.
pub const MOST_DISK_SHARE: f64 = 0.5;
/// The largest part of the free swap space that a test uses.
pub const MOST_SWAP_SHARE: f64 = 0.25;

/// How tests run.
#[derive(Debug, Clone)]
pub struct Settings {
    /// How long each test runs.
    pub duration: Duration,
    /// Threads; one on each processor when left out.
    pub threads: Option<usize>,
    /// Bytes of memory, or of the file, that a test uses; it has a default within the shares.
    pub bytes: Option<u64>,
    /// The folder for the file of the storage tests; the current one when left out.
    pub directory: Option<PathBuf>,
    /// The host that `warpt serve` runs on.
    pub target: Option<String>,
    /// The GPU; the first that works when left out.
    pub device: Option<Device>,
    /// Go on after an iteration with errors.
    pub keep_going: bool,
    /// Seconds between two samples of temperatures and power.
    pub monitor_interval: Duration,
    /// Falsify a result of this iteration, to test that it is found.
    pub falsify: Option<u64>,
    /// What the machine has to give.
    pub resources: Resources,
}

impl Settings {
    /// Tests that run so long, on this machine.
    #[must_use]
    pub fn new(duration: Duration) -> Self {
        Self {
            duration,
            threads: None,
            bytes: None,
            directory: None,
            target: None,
            device: None,
            keep_going: false,
            monitor_interval: Duration::from_secs(1),
            falsify: None,
            resources: Resources::here(),
        }
    }
}

/// What the machine has to give.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Resources {
    /// Memory that programs can have without swapping, within the limit of the control group.
    pub memory_bytes: Option<u64>,
    /// Free swap space.
    pub swap_bytes: Option<u64>,
}

impl Resources {
    /// What this machine has.
    #[must_use]
    pub fn here() -> Self {
        let memory = Memory::detect();
        let available = [memory.available_bytes, memory.limit_bytes].into_iter().flatten().min();
        Self { memory_bytes: available, swap_bytes: memory.swap_free_bytes }
    }

    /// Bytes of memory to use: those asked for, or this part of what is available; never more than
    /// [`MOST_MEMORY_SHARE`].
    pub(crate) fn memory(
        &self,
        asked: Option<u64>,
        usual_share: f64,
        usual_most: u64,
    ) -> Result<u64, StressError> {
        let unknown =
            || StressError::Missing("the system does not say how much memory is available".to_owned());
        let available = self.memory_bytes.ok_or_else(unknown)?;
        let most = part(available, MOST_MEMORY_SHARE);
        within(
            "memory",
            asked,
            most,
            part(available, usual_share).min(usual_most),
            "half of what is available",
        )
    }

    /// Bytes of memory to push into swap.
    pub(crate) fn swap(&self, asked: Option<u64>, usual_most: u64) -> Result<u64, StressError> {
        let missing = |reason: &str| Err(StressError::Missing(reason.to_owned()));
        let Some(free) = self.swap_bytes else {
            return missing("the system does not say whether there is swap space");
        };
        if free == 0 {
            return missing("this machine has no free swap space");
        }
        let most = part(free, MOST_SWAP_SHARE).min(self.memory(None, MOST_MEMORY_SHARE, u64::MAX)?);
        let rule = "a quarter of the free swap space and half of the available memory";
        within("swap", asked, most, most.min(usual_most), rule)
    }
}

/// Those asked for, or the usual ones, within the most that may be used.
pub(crate) fn within(
    what: &'static str,
    asked: Option<u64>,
    most: u64,
    usual: u64,
    share: &'static str,
) -> Result<u64, StressError> {
    match asked {
        Some(asked) if asked > most => Err(StressError::TooMuch { what, asked, most, share }),
        Some(asked) => Ok(asked),
        None => Ok(usual.min(most)),
    }
}

/// A part of so many bytes.
pub(crate) fn part(bytes: u64, share: f64) -> u64 {
    (bytes as f64 * share) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_than_its_share_is_ever_used() {
        let resources = Resources { memory_bytes: Some(1000), swap_bytes: Some(400) };
        assert_eq!(resources.memory(None, 0.25, u64::MAX).unwrap(), 250);
        assert_eq!(resources.memory(None, 0.25, 100).unwrap(), 100);
        assert_eq!(resources.memory(Some(500), 0.25, 100).unwrap(), 500);
        let error = resources.memory(Some(501), 0.25, 100).unwrap_err().to_string();
        assert!(error.contains("501") && error.contains("at most 500") && error.contains("half"), "{error}");
        assert_eq!(resources.swap(None, u64::MAX).unwrap(), 100);
        assert!(resources.swap(Some(101), u64::MAX).is_err());
    }

    #[test]
    fn what_is_unknown_or_absent_is_refused_before_anything_is_allocated() {
        let silent = Resources::default();
        assert!(silent.memory(Some(1), 0.25, 1).unwrap_err().to_string().contains("does not say"));
        let none = Resources { memory_bytes: Some(1000), swap_bytes: Some(0) };
        assert!(none.swap(None, 1).unwrap_err().to_string().contains("no free swap"));
    }
}

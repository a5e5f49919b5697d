//! Measures alternatives at compile time, and keeps what was chosen for later processes.

use std::sync::Arc;
use std::time::Duration;

use crate::disk_cache::{self, DiskCache};
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

/// The folder of choices.
pub(crate) fn choices() -> DiskCache {
    DiskCache::of_user("tuning")
}

/// A choice by measurement that later processes find on disk.
pub(crate) struct Choice<'c> {
    /// None where nothing is measured: the first alternative that runs is not worth keeping.
    cache: Option<&'c DiskCache>,
    key: String,
}

impl<'c> Choice<'c> {
    /// A choice on a device among what a library's version offers for a task.
    ///
    /// # Errors
    ///
    /// As [`check`].
    pub(crate) fn new(cache: Option<&'c DiskCache>, gpu: &Gpu, library: &str, task: &str) -> Result<Self> {
        let device = format!("{} {:?}", gpu.properties.name, gpu.properties.capability);
        let cache = if is_tuned()? { cache } else { None };
        Ok(Self { cache, key: disk_cache::key(&[&device, library, task]) })
    }

    /// The position of the alternative that was chosen before.
    pub(crate) fn known(&self) -> Option<usize> {
        let bytes = self.cache?.load(&self.key)?;
        Some(u32::from_le_bytes(bytes.try_into().ok()?) as usize)
    }

    /// Keeps the position of the alternative that was chosen.
    pub(crate) fn keep(&self, position: usize) {
        if let (Some(cache), Ok(position)) = (self.cache, u32::try_from(position)) {
            cache.keep(&self.key, &position.to_le_bytes());
        }
    }
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
    use crate::fake;
    use crate::vendor::Vendor;

    #[test]
    fn choices_are_found_by_device_library_and_task() {
        let folder = tempfile::tempdir().unwrap();
        let cache = DiskCache { folder: folder.path().join("tuning") };
        let gpu = fake::gpu(Vendor::Cuda).unwrap();
        let of = |library, task| Choice::new(Some(&cache), &gpu, library, task).unwrap();
        assert_eq!(of("cuDNN 1", "conv").known(), None);
        of("cuDNN 1", "conv").keep(5);
        assert_eq!(of("cuDNN 1", "conv").known(), Some(5));
        assert_eq!(of("cuDNN 2", "conv").known(), None);
        assert_eq!(of("cuDNN 1", "other").known(), None);
        // A file that is cut off is none.
        let entry = std::fs::read_dir(&cache.folder).unwrap().next().unwrap().unwrap();
        std::fs::write(entry.path(), [5]).unwrap();
        assert_eq!(of("cuDNN 1", "conv").known(), None);
    }

    #[test]
    fn tuning_is_on_by_default() {
        assert!(is_on(None).unwrap() && is_on(Some("on")).unwrap() && !is_on(Some("off")).unwrap());
        let error = is_on(Some("fast")).unwrap_err().to_string();
        assert!(error.contains("WARPFORGE_TUNING is `fast`; there are on and off"), "{error}");
    }
}

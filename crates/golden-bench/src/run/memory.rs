//! Whether a step fits into memory, before it runs.

use warpforge_runtime::Executable;

use crate::Error;

/// Refuses a step that needs more memory than the machine has left. Devices refuse by themselves.
pub(super) fn check(executable: &dyn Executable, batch_size: usize) -> Result<(), Error> {
    match (executable.peak_memory_bytes(), warpforge_tensor::memory::available_bytes()) {
        (Some(needed), Some(free)) => fits(needed, free, batch_size),
        _ => Ok(()),
    }
}

fn fits(needed: u64, free: u64, batch_size: usize) -> Result<(), Error> {
    if needed <= free {
        return Ok(());
    }
    let gib = |bytes: u64| bytes as f64 / (1u64 << 30) as f64;
    Err(Error::Stopped(format!(
        "a step of {batch_size} examples needs {:.2} GiB, and {:.2} GiB are free; record with a smaller --batch-size",
        gib(needed),
        gib(free)
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_that_does_not_fit_is_refused_with_its_size() {
        let free = 1 << 30;
        assert!(fits(1 << 30, free, 8).is_ok());
        let error = fits(3 << 30, free, 64).unwrap_err().to_string();
        assert!(error.contains("64 examples needs 3.00 GiB, and 1.00 GiB are free"), "{error}");
    }
}

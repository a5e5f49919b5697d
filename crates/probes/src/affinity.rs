//! Which processors the calling thread may run on.

use std::io;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The processors that this process may use, by number.
///
/// # Errors
/// If the system does not report it.
pub fn allowed() -> io::Result<Vec<usize>> {
    let set = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect())
}

/// Ties the calling thread to one processor.
///
/// # Errors
/// If the processor does not exist or is not among those [`allowed`].
pub fn pin_to(cpu: usize) -> io::Result<()> {
    if cpu >= CpuSet::MAX_CPU {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("there is no processor {cpu}")));
    }
    let mut set = CpuSet::new();
    set.set(cpu);
    Ok(sched_setaffinity(None, &set)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pinned_thread_may_use_one_processor() {
        let last = *allowed().unwrap().last().unwrap();
        std::thread::spawn(move || {
            pin_to(last).unwrap();
            assert_eq!(allowed().unwrap(), [last]);
        })
        .join()
        .unwrap();
        assert!(pin_to(usize::MAX).is_err());
    }
}

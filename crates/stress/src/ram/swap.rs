//! Memory moved to swap space and back.

use warpforge_probes::memory::{Mapping, Pages};

use crate::error::StressError;
use crate::load::{Iteration, Load, Work};
use crate::pattern::Pattern;

/// Memory that is moved unless the user says how much.
pub(super) const USUAL_BYTES: u64 = 256 << 20;

pub(super) struct Swap {
    memory: Mapping,
    /// The most bytes of this process that were seen in swap space.
    most_swapped: u64,
}

impl Swap {
    /// Tries it once, so that a system that moves nothing is not taken for one that was tested.
    pub(super) fn new(bytes: usize) -> Result<Self, StressError> {
        let mut load = Self { memory: Mapping::new(bytes, Pages::Default)?, most_swapped: 0 };
        Pattern::new(0).fill(&mut load.memory, 0);
        load.page_out()?;
        if load.most_swapped == 0 {
            let reason = "the system moved no memory to swap space when it was asked to";
            return Err(StressError::Missing(reason.to_owned()));
        }
        Ok(load)
    }

    fn page_out(&mut self) -> Result<(), StressError> {
        let failed = |cause| StressError::System { what: "move memory to swap space", cause };
        self.memory.page_out().map_err(failed)?;
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        self.most_swapped = self.most_swapped.max(swapped(&status).unwrap_or(0));
        Ok(())
    }
}

impl Load for Swap {
    fn iterate(&mut self, iteration: Iteration) -> Result<Work, StressError> {
        let pattern = Pattern::new(iteration.number);
        pattern.fill(&mut self.memory, 0);
        if iteration.falsify {
            let middle = self.memory.len() / 2;
            self.memory[middle] ^= 1;
        }
        self.page_out()?;
        let total = self.memory.len();
        let mut work = Work::of(2.0 * total as f64 / 1e6);
        pattern.check(&mut work, "memory that was in swap space", &self.memory, 0, |offset| {
            format!("byte {offset} of {total}")
        });
        Ok(work)
    }

    fn notes(&self) -> Vec<String> {
        vec![format!(
            "{} of memory, at most {} of them in swap space",
            warpforge_diag::bytes(self.memory.len() as u64),
            warpforge_diag::bytes(self.most_swapped)
        )]
    }
}

/// The bytes of a process in swap space, from its status.
fn swapped(status: &str) -> Option<u64> {
    let value = status.lines().find_map(|line| line.strip_prefix("VmSwap:"))?;
    value.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_says_how_much_is_in_swap() {
        assert_eq!(swapped("VmRSS:\t 12 kB\nVmSwap:\t    34 kB\n"), Some(34 << 10));
        assert_eq!(swapped("VmRSS:\t 12 kB\n"), None);
        assert_eq!(swapped("VmSwap: much kB"), None);
    }

    #[test]
    fn what_is_paged_out_is_checked_when_it_comes_back() {
        // Without swap space the pages stay, and the check is the same.
        let mut load = Swap { memory: Mapping::new(1 << 20, Pages::Default).unwrap(), most_swapped: 0 };
        for number in 1..=3 {
            let work = load.iterate(Iteration { number, falsify: number == 2 }).unwrap();
            assert_eq!(work.errors, u64::from(number == 2));
            if let Some(mismatch) = work.mismatches.first() {
                assert_eq!(mismatch.location, format!("byte {} of {}", 1 << 19, 1 << 20));
            }
        }
    }
}

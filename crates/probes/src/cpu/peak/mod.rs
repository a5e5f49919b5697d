//! Loops of arithmetic that touch nothing but registers: the highest rate the instructions can reach.

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod amx;
mod chain;
mod portable;
#[cfg(target_arch = "x86_64")]
mod x86;

use super::Dtype;

/// A register-only loop that this processor can run.
#[derive(Debug, Clone, Copy)]
pub struct PeakKernel {
    dtype: Dtype,
    isa: &'static str,
    ops_per_iteration: u64,
    run: fn(u64) -> f64,
    verify: fn() -> bool,
}

impl PeakKernel {
    /// The element type it multiplies.
    #[must_use]
    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// The instructions it uses: `amx`, `avx512`, `avx2`, `neon`, `portable`, …
    #[must_use]
    pub fn isa(&self) -> &'static str {
        self.isa
    }

    /// Operations in one iteration; a multiplication and its addition are two.
    #[must_use]
    pub fn ops_per_iteration(&self) -> u64 {
        self.ops_per_iteration
    }

    /// Runs the loop on the calling thread. The result depends on every operation; keep it from being optimised away.
    #[must_use]
    pub fn run(&self, iterations: u64) -> f64 {
        (self.run)(iterations)
    }

    /// Whether a few iterations compute, in every lane, what scalar code computes.
    #[must_use]
    pub fn verify(&self) -> bool {
        (self.verify)()
    }
}

/// A loop that this program has: its element type, its instructions, and the loop where the processor can run it.
#[derive(Debug, Clone, Copy)]
pub struct KnownPeak {
    /// The element type.
    pub dtype: Dtype,
    /// The instructions, as in [`PeakKernel::isa`].
    pub isa: &'static str,
    /// The loop; none where the processor lacks the instructions or the system does not permit them.
    pub kernel: Option<PeakKernel>,
}

/// Every loop for this architecture, the widest instructions of each [`Dtype`] before its narrower ones.
#[must_use]
pub fn known_peaks() -> Vec<KnownPeak> {
    let mut known = Vec::new();
    #[cfg(target_arch = "x86_64")]
    {
        known.extend(amx::kernels());
        known.extend(x86::kernels());
    }
    #[cfg(target_arch = "aarch64")]
    known.extend(aarch64::kernels());
    known.extend(portable::kernels());
    known
}

/// The loops that this processor can run, the widest instructions of each [`Dtype`] before its narrower ones. A type
/// that the processor has no instructions for is absent.
#[must_use]
pub fn peaks() -> Vec<PeakKernel> {
    known_peaks().into_iter().filter_map(|known| known.kernel).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kernel_gives_a_finite_result_however_long_it_runs() {
        for kernel in peaks() {
            for iterations in [0, 1, 2, 20_000] {
                let result = kernel.run(iterations);
                assert!(result.is_finite() && result.abs() < 1e12, "{kernel:?} {iterations}: {result}");
            }
        }
    }

    #[test]
    fn there_is_always_a_kernel_for_the_common_types() {
        for dtype in [Dtype::F64, Dtype::F32] {
            assert!(peaks().iter().any(|kernel| kernel.dtype() == dtype), "{dtype}");
        }
    }
}

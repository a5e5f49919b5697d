//! How many of the values that a kernel gives the observable tier looks at.

/// The cost of sampling values, as a fraction of the estimated time of the kernel.
const OVERHEAD_FRACTION: f64 = 0.02;
/// Estimated FLOP/s: accurate enough to choose a sampling interval.
const FLOPS_PER_SECOND: f64 = 2e11;
/// Estimated memory bandwidth, in bytes per second.
const BYTES_PER_SECOND: f64 = 2.5e10;
/// Values of fewer bytes are still in a cache when their kernel ends, where reading them is about five times cheaper.
const CACHED_BYTES: usize = 1 << 20;

/// The interval at which chunks of a result are sampled, so that observing costs at most [`OVERHEAD_FRACTION`].
pub(crate) fn sampling_interval(flops: u64, bytes: u64, output: usize) -> usize {
    let takes = (flops as f64 / FLOPS_PER_SECOND).max(bytes as f64 / BYTES_PER_SECOND);
    let speed = if output <= CACHED_BYTES { 5.0 } else { 1.0 };
    let look = output as f64 / (BYTES_PER_SECOND * speed);
    (look / (OVERHEAD_FRACTION * takes.max(1e-9))).ceil().max(1.0) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_large_results_of_cheap_kernels_are_sampled() {
        // A GEMM of 2048 cubed.
        assert_eq!(sampling_interval(17_179_869_184, 50_331_648, 16_777_216), 1);
        // A chain over four million elements.
        assert!((16..32).contains(&sampling_interval(20_000_000, 50_331_648, 16_777_216)));
        // A small one.
        assert!(sampling_interval(100_000, 800_000, 400_000) <= 8);
        assert_eq!(sampling_interval(0, 0, 0), 1);
    }
}

//! The observable tier: times of the tiles of each kernel, and statistics of its results.

// Values are read where the memory plan has put them.
#![allow(unsafe_code)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use warpforge_fusion::{Graph, NodeId};
use warpforge_kernels::pool::Pool;
use warpforge_kernels::statistics::{Statistics, statistics};
use warpforge_kernels::task_timing::{Recorder, Recording, TaskTiming};
use warpforge_runtime::profile::{Event, Part, Profile};
use warpforge_tensor::Tensor;

use crate::launch::KernelLaunch;

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

/// Observes the kernels of one run.
pub(crate) struct Observer<'a> {
    pool: &'a Pool,
    recorder: Arc<Recorder>,
    origin: Instant,
}

impl<'a> Observer<'a> {
    pub(crate) fn new(pool: &'a Pool, origin: Instant) -> Self {
        Self { pool, recorder: Recorder::new(pool.threads()), origin }
    }

    /// Records tiles until the guard is dropped.
    pub(crate) fn tiles(&self) -> Recording {
        self.recorder.start()
    }

    /// Adds statistics of tiles and values to the event of a kernel, and the tiles as its parts.
    ///
    /// # Safety
    ///
    /// The addresses of `values` are valid for reading their sizes.
    pub(crate) unsafe fn note(
        &self,
        profile: &mut Profile,
        mut event: Event,
        graph: &Graph,
        values: &[(NodeId, *mut u8)],
        sampling_interval: usize,
    ) {
        let tiles = self.recorder.take();
        event.details.extend(tile_details(&tiles, self.pool.threads()));
        // Of several results, the first numeric one is sampled.
        let mut numbers = values.iter().filter_map(|&(id, address)| {
            let node = graph.node(id);
            let elements = node.dims.iter().product();
            // SAFETY: guaranteed by the caller.
            let of = unsafe { statistics(self.pool, node.element, address, elements, sampling_interval) };
            Some((of?, elements))
        });
        if let Some((found, elements)) = numbers.next() {
            event.details.extend(value_details(&found, elements));
        }
        let parts = tiles.iter().map(|tile| Part {
            number: tile.task,
            // Track 0 has the kernels; a worker's tiles have its own.
            track: u32::try_from(tile.worker + 1).unwrap_or(u32::MAX),
            start: tile.start.duration_since(self.origin),
            duration: tile.end.duration_since(tile.start),
        });
        profile.push_with_parts(event, parts.collect());
    }
}

/// What is said of a kernel that ran while compiling: statistics of its result, at the beginning of each run.
pub(crate) fn constant(pool: &Pool, launch: &KernelLaunch, value: &Tensor) -> Event {
    let elements = value.dims().iter().product();
    let (element, interval) = (value.element_type(), launch.sampling_interval);
    // SAFETY: the tensor has so many elements of the type.
    let found = unsafe { statistics(pool, element, value.bytes().as_ptr(), elements, interval) };
    let mut details = vec![("flop", launch.flops.to_string()), ("bytes", launch.bytes.to_string())];
    details.extend(launch.provenance.iter().cloned());
    details.extend(found.iter().flat_map(|found| value_details(found, elements)));
    let (name, start) = (launch.kernel.name(), Duration::ZERO);
    Event { name, category: "computed once", track: 0, start, duration: Duration::ZERO, details }
}

fn tile_details(tiles: &[TaskTiming], workers: usize) -> Vec<(&'static str, String)> {
    let seconds = |tile: &TaskTiming| tile.end.duration_since(tile.start).as_secs_f64();
    let total: f64 = tiles.iter().map(seconds).sum();
    let longest = tiles.iter().map(seconds).fold(0.0, f64::max);
    let busy =
        |worker: usize| -> f64 { tiles.iter().filter(|tile| tile.worker == worker).map(seconds).sum() };
    let most = (0..workers).map(busy).fold(0.0, f64::max);
    let mut details = vec![("tiles", tiles.len().to_string())];
    if total > 0.0 {
        details.push(("longest_tile_us", format!("{:.2}", longest * 1e6)));
        // 1 when the load is perfectly balanced.
        details.push(("balance", format!("{:.3}", total / (most * workers as f64))));
    }
    details
}

fn value_details(found: &Statistics, count: usize) -> Vec<(&'static str, String)> {
    let mut details = vec![
        ("values", count.to_string()),
        ("values_seen", found.sampled.to_string()),
        ("nan", found.nan.to_string()),
        ("infinite", found.infinite.to_string()),
    ];
    if found.sampled > found.nan {
        details.push(("min", format!("{:e}", found.min)));
        details.push(("max", format!("{:e}", found.max)));
    }
    if let Some(mean) = found.mean() {
        details.push(("mean", format!("{mean:e}")));
    }
    details
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

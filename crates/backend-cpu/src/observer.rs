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

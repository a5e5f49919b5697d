//! The observable tier: when each tile of each kernel ran, and what the values are like that it gave.

// The values of a run are looked at where the plan has put them.
#![allow(unsafe_code)]

use std::sync::Arc;
use std::time::Instant;

use warpforge_fusion::{Graph, NodeId};
use warpforge_kernels::pool::Pool;
use warpforge_kernels::record::{Piece, Recorder, Recording};
use warpforge_kernels::statistics::{Statistics, statistics};
use warpforge_runtime::profile::{Event, Part, Profile};

/// What looking at values may cost, as a part of the time that a kernel probably takes.
const SHARE: f64 = 0.02;
/// What a processor does in a second, roughly: enough to say which values are too many to look at all of them.
const FLOPS_PER_SECOND: f64 = 2e11;
/// Bytes of main memory in a second, roughly.
const BYTES_PER_SECOND: f64 = 2.5e10;
/// Values of fewer bytes are still in a cache when their kernel ends, where reading them costs a fifth.
const CACHED: usize = 1 << 20;

/// How many thousands of a kernel's values to skip for each that is looked at, so that the run is hardly slower.
pub(crate) fn every(flops: u64, bytes: u64, output: usize) -> usize {
    let takes = (flops as f64 / FLOPS_PER_SECOND).max(bytes as f64 / BYTES_PER_SECOND);
    let speed = if output <= CACHED { 5.0 } else { 1.0 };
    let look = output as f64 / (BYTES_PER_SECOND * speed);
    (look / (SHARE * takes.max(1e-9))).ceil().max(1.0) as usize
}

/// Watches the kernels of one run.
pub(crate) struct Watch<'a> {
    pool: &'a Pool,
    recorder: Arc<Recorder>,
    origin: Instant,
}

impl<'a> Watch<'a> {
    pub(crate) fn new(pool: &'a Pool, origin: Instant) -> Self {
        Self { pool, recorder: Recorder::new(pool.threads()), origin }
    }

    /// Records tiles until the guard goes.
    pub(crate) fn tiles(&self) -> Recording {
        self.recorder.start()
    }

    /// Adds to a kernel's event what its tiles and values were like, and the tiles as its parts.
    ///
    /// # Safety
    ///
    /// The addresses of `values` are good for reading their sizes.
    pub(crate) unsafe fn note(
        &self,
        profile: &mut Profile,
        mut event: Event,
        graph: &Graph,
        values: &[(NodeId, *mut u8)],
        every: usize,
    ) {
        let tiles = self.recorder.take();
        event.details.extend(tile_details(&tiles, self.pool.threads()));
        // An operation of several results is judged by the first that has numbers.
        let mut numbers = values.iter().filter_map(|&(id, address)| {
            let node = graph.node(id);
            let elements = node.dims.iter().product();
            // SAFETY: as the caller promises.
            let of = unsafe { statistics(self.pool, node.element, address, elements, every) };
            Some((of?, elements))
        });
        if let Some((found, elements)) = numbers.next() {
            event.details.extend(value_details(&found, elements));
        }
        let parts = tiles.iter().map(|tile| Part {
            number: tile.piece,
            // Track 0 has the kernels; a worker's tiles have its own.
            track: u32::try_from(tile.worker + 1).unwrap_or(u32::MAX),
            start: tile.start.duration_since(self.origin),
            duration: tile.end.duration_since(tile.start),
        });
        profile.push_with_parts(event, parts.collect());
    }
}

fn tile_details(tiles: &[Piece], workers: usize) -> Vec<(&'static str, String)> {
    let seconds = |tile: &Piece| tile.end.duration_since(tile.start).as_secs_f64();
    let total: f64 = tiles.iter().map(seconds).sum();
    let longest = tiles.iter().map(seconds).fold(0.0, f64::max);
    let busy =
        |worker: usize| -> f64 { tiles.iter().filter(|tile| tile.worker == worker).map(seconds).sum() };
    let most = (0..workers).map(busy).fold(0.0, f64::max);
    let mut details = vec![("tiles", tiles.len().to_string())];
    if total > 0.0 {
        details.push(("longest_tile_us", format!("{:.2}", longest * 1e6)));
        // 1 when all workers had as much to do.
        details.push(("balance", format!("{:.3}", total / (most * workers as f64))));
    }
    details
}

fn value_details(found: &Statistics, count: usize) -> Vec<(&'static str, String)> {
    let mut details = vec![
        ("values", count.to_string()),
        ("values_seen", found.seen.to_string()),
        ("nan", found.nan.to_string()),
        ("infinite", found.infinite.to_string()),
    ];
    if found.seen > found.nan {
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
    fn only_large_values_of_cheap_kernels_are_looked_at_in_part() {
        // A product of 2048 cubed.
        assert_eq!(every(17_179_869_184, 50_331_648, 16_777_216), 1);
        // A chain over four million elements.
        assert!((16..32).contains(&every(20_000_000, 50_331_648, 16_777_216)));
        // A small one.
        assert!(every(100_000, 800_000, 400_000) <= 8);
        assert_eq!(every(0, 0, 0), 1);
    }
}

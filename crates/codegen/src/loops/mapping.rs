//! Mapping of the rows of a reduction to threads.

use warpforge_fusion::cluster::Body;
use warpforge_fusion::{Graph, View};
use warpforge_tensor::ElementType;

use super::access::width;
use super::stages::Stages;
use crate::index::IndexSpace;
use crate::options::{Effort, Options};

/// Row elements that a thread may hold in registers.
pub(super) const MAX_HELD: usize = 160;

/// Minimum threads per block.
const MIN_THREADS: usize = 128;

/// Threads that occupy a device.
const BUSY_THREADS: usize = 1 << 16;

/// Rows per block in a column reduction; the smaller where there are few rows.
const ACROSS: [usize; 3] = [32, 16, 8];

/// Blocks that occupy a device.
const BUSY_BLOCKS: usize = 256;

/// Chunks per thread: they are in flight together and amortise the cross-thread reduction.
const MIN_CHUNKS: usize = 4;

/// Threads of a warp.
const WARP: usize = 32;

/// Bytes of a memory transaction.
const LINE_BYTES: usize = 128;

/// Mapping of rows and columns to threads.
pub(super) struct ThreadMapping {
    /// Threads per block.
    pub(super) threads: usize,
    /// Rows across neighbouring threads: 1, or one of [`ACROSS`] in a column reduction.
    pub(super) across: usize,
    /// Threads per row.
    pub(super) group: usize,
    /// Vector width.
    pub(super) width: usize,
    /// Chunks per thread and row.
    pub(super) chunks: usize,
}

impl ThreadMapping {
    /// The mapping for a loop whose output has this element type.
    pub(super) fn new(
        graph: &Graph,
        body: &Body,
        rows: &IndexSpace,
        columns: &IndexSpace,
        stages: &Stages,
        element: ElementType,
        options: &Options,
    ) -> Self {
        let (row_count, len) = (rows.len(), columns.len());
        if options.effort == Effort::Naive {
            return Self { threads: MIN_THREADS, across: 1, group: 1, width: 1, chunks: len };
        }
        let size = |at: usize| graph.node(body.loads[at].value).element.byte_width();
        let varies = |at: &usize| columns.strides[*at].iter().any(|&stride| stride != 0);
        let loads: Vec<usize> = (0..body.loads.len()).filter(varies).collect();
        let beside = loads.iter().filter(|&&at| columns.inner(at) == Some(1)).count();
        let below = loads.iter().filter(|&&at| rows.inner(at) == Some(1)).count();
        if below > beside && rows.dims.last().is_some_and(|&last| last >= ACROSS[1]) {
            return Self::column_reduction(row_count, len);
        }
        let mut seen: Vec<(usize, &View, usize)> =
            loads.iter().map(|&at| (at, &body.loads[at].view, size(at))).collect();
        let last = body.steps.len() - 1;
        let mut output = None;
        if !stages.uniform[last] {
            seen.push((body.loads.len(), &body.output, element.byte_width()));
            output = Some(body.loads.len());
        }
        let width = width(columns, &seen, output);
        let pieces = (len / width).max(1);
        let bytes = width * seen.iter().map(|(_, _, size)| *size).max().unwrap_or(1).max(1);
        let mut group = group(pieces, bytes);
        while row_count * group < BUSY_THREADS && group < 1024 && group * 2 <= pieces.next_power_of_two() {
            group *= 2;
        }
        let crossing = stages.crossing(body).len();
        while crossing * pieces.div_ceil(group) * width > MAX_HELD && group < 1024 {
            group *= 2;
        }
        let threads = group.max(MIN_THREADS);
        Self { threads, across: 1, group, width, chunks: pieces.div_ceil(group) }
    }

    /// Column reductions: rows are contiguous across neighbouring threads.
    fn column_reduction(row_count: usize, len: usize) -> Self {
        let across = ACROSS.into_iter().find(|across| row_count / across >= BUSY_BLOCKS).unwrap_or(ACROSS[2]);
        let group = len.div_ceil(8).next_power_of_two().clamp(1, 512 / across);
        let threads = (across * group).max(MIN_THREADS);
        let group = threads / across;
        Self { threads, across, group, width: 1, chunks: len.div_ceil(group) }
    }

    /// Rows per block.
    pub(super) fn rows(&self) -> usize {
        self.threads / self.group
    }

    /// Chunks in flight per thread, where not all fit.
    pub(super) fn chunks_in_flight(&self) -> usize {
        (4 * MIN_CHUNKS / self.width).max(MIN_CHUNKS)
    }

    /// Chunks per thread that lie fully inside a row of this length.
    pub(super) fn whole(&self, len: usize) -> usize {
        len / (self.group * self.width)
    }
}

/// Threads per row for this number of chunks of this size.
fn group(pieces: usize, bytes: usize) -> usize {
    let line = (LINE_BYTES / bytes).clamp(1, WARP);
    let group = pieces.div_ceil(MIN_CHUNKS).max(line.min(pieces)).next_power_of_two().min(1024);
    // A single warp needs no barriers, so it is preferred to two warps.
    if group == 2 * WARP { WARP } else { group }
}

#[cfg(test)]
mod tests {
    use super::group;

    #[test]
    fn a_thread_has_four_chunks_and_a_group_a_line() {
        // Rows of 16, 256, 768, 1024, 4096 and 100000 elements of four bytes.
        let groups = [4, 64, 192, 256, 1024, 25000].map(|pieces| group(pieces, 16));
        assert_eq!(groups, [4, 16, 32, 32, 256, 1024]);
        // Without vectors, a warp reads a line.
        assert_eq!([3, 20, 50, 1000].map(|pieces| group(pieces, 4)), [4, 32, 32, 256]);
    }
}

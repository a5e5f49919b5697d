//! How threads share the rows of a loop with reductions.

use warpforge_fusion::cluster::Body;
use warpforge_fusion::{Graph, View};
use warpforge_tensor::ElementType;

use super::access::width;
use super::stages::Stages;
use crate::index::Space;
use crate::options::{Effort, Options};

/// Values of a row that a thread may hold in registers; most are dead when the next are computed.
pub(super) const MOST_HELD: usize = 160;

/// Least threads of a block.
const LEAST_THREADS: usize = 128;

/// Threads that keep a device busy.
const BUSY_THREADS: usize = 1 << 16;

/// Rows side by side that a block takes when their elements lie side by side: fewer where there are few.
const ACROSS: [usize; 3] = [32, 16, 8];

/// Blocks that a device should have.
const BUSY_BLOCKS: usize = 256;

/// Chunks of a row that a thread should have: they are on their way at once, and what a row costs once, its reduces over
/// threads above all, is shared by that many.
const CHUNKS: usize = 4;

/// Threads of a warp.
const WARP: usize = 32;

/// Bytes that memory gives at once.
const LINE_BYTES: usize = 128;

/// How threads share the work.
pub(super) struct Shape {
    /// Threads of a block.
    pub(super) threads: usize,
    /// Rows side by side: 1, or one of [`ACROSS`] where neighbouring threads read neighbouring rows.
    pub(super) across: usize,
    /// Threads that compute a row together.
    pub(super) group: usize,
    /// Neighbours that a thread takes at once.
    pub(super) width: usize,
    /// Chunks that a thread takes of a row.
    pub(super) chunks: usize,
}

impl Shape {
    /// The shape for the rows and columns of a loop whose output has elements of a type.
    pub(super) fn new(
        graph: &Graph,
        body: &Body,
        rows: &Space,
        columns: &Space,
        stages: &Stages,
        element: ElementType,
        options: &Options,
    ) -> Self {
        let (row_count, len) = (rows.len(), columns.len());
        if options.effort == Effort::Naive {
            return Self { threads: LEAST_THREADS, across: 1, group: 1, width: 1, chunks: len };
        }
        let size = |at: usize| graph.node(body.loads[at].value).element.byte_width();
        let varies = |at: &usize| columns.strides[*at].iter().any(|&stride| stride != 0);
        let loads: Vec<usize> = (0..body.loads.len()).filter(varies).collect();
        let beside = loads.iter().filter(|&&at| columns.inner(at) == Some(1)).count();
        let below = loads.iter().filter(|&&at| rows.inner(at) == Some(1)).count();
        if below > beside && rows.dims.last().is_some_and(|&last| last >= ACROSS[1]) {
            return Self::side_by_side(row_count, len);
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
        while crossing * pieces.div_ceil(group) * width > MOST_HELD && group < 1024 {
            group *= 2;
        }
        let threads = group.max(LEAST_THREADS);
        Self { threads, across: 1, group, width, chunks: pieces.div_ceil(group) }
    }

    /// Rows whose elements lie side by side: sums of columns.
    fn side_by_side(row_count: usize, len: usize) -> Self {
        let across = ACROSS.into_iter().find(|across| row_count / across >= BUSY_BLOCKS).unwrap_or(ACROSS[2]);
        let group = len.div_ceil(8).next_power_of_two().clamp(1, 512 / across);
        let threads = (across * group).max(LEAST_THREADS);
        let group = threads / across;
        Self { threads, across, group, width: 1, chunks: len.div_ceil(group) }
    }

    /// Rows of a block.
    pub(super) fn rows(&self) -> usize {
        self.threads / self.group
    }

    /// Chunks that a thread has on their way at once where they are too many for all.
    pub(super) fn ahead(&self) -> usize {
        (4 * CHUNKS / self.width).max(CHUNKS)
    }

    /// The chunks of every thread that lie in a row of a length as a whole; the others may end beyond it.
    pub(super) fn whole(&self, len: usize) -> usize {
        len / (self.group * self.width)
    }
}

/// Threads for a row of so many chunks of so many bytes, where there are rows enough.
fn group(pieces: usize, bytes: usize) -> usize {
    let line = (LINE_BYTES / bytes).clamp(1, WARP);
    let group = pieces.div_ceil(CHUNKS).max(line.min(pieces)).next_power_of_two().min(1024);
    // One warp needs no barriers: it takes twice the chunks rather than a second warp.
    if group == 2 * WARP { WARP } else { group }
}

#[cfg(test)]
mod tests {
    use super::group;

    #[test]
    fn a_thread_has_four_chunks_and_a_group_a_line() {
        // Rows of 16, 256, 768, 1024, 4096 and 100000 numbers of four bytes.
        let groups = [4, 64, 192, 256, 1024, 25000].map(|pieces| group(pieces, 16));
        assert_eq!(groups, [4, 16, 32, 32, 256, 1024]);
        // One by one, a warp reads a line.
        assert_eq!([3, 20, 50, 1000].map(|pieces| group(pieces, 4)), [4, 32, 32, 256]);
    }
}
